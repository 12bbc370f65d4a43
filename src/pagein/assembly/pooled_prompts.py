"""An agent whose window is a set of objects: requests in the pooled layout, calls of the tools for pools answered.

Rules of this file
------------------
1. The window is a fold over the entries of the session's branch. The same branch gives the same request in every process.
2. Results and files enter the window as objects. The caller keeps no message list.
"""

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from math import ceil
from threading import RLock
from typing import TYPE_CHECKING, Any, Final

from pagein.engine.conversation import answer_of
from pagein.errors import BadInput, BadSetting, StoreError
from pagein.model.entries import Body, EntryId, MessageEntry, RequestSent
from pagein.model.laid_prompts import LaidPrompt, LayoutFacts, PromptContents
from pagein.model.messages import Message, Text, ToolCall, ToolResult
from pagein.policy.layouts.pooled import PooledLayout
from pagein.policy.layouts.pooled_fold import PooledFold, PooledRequest
from pagein.policy.layouts.pooled_window import PRESETS, PooledRules
from pagein.policy.tiers.frozen_order import CacheTerms
from pagein.ports import Layout
from pagein.providers.caches.cache_rules import UNKNOWN_MINIMUM
from pagein.providers.prices.price_lookup import newest_prices
from pagein.providers.tokens.counters import counter_for
from pagein.providers.validity import Api
from pagein.providers.wire import check_body, format_named
from pagein.providers.wire.laid_requests import render_prompt
from pagein.providers.wire.tool_offers import ToolOffer, definition
from pagein.tools.calls import Call
from pagein.tools.pools import ACTIVATE, PIN, POOL_TOOLS, READ

if TYPE_CHECKING:
    from pagein.engine.conversation import Reply
    from pagein.engine.session import Session

_REMEMBERED: Final = 1 << 14
_OWN: Final = {tool.name: tool for tool in POOL_TOOLS}
_BRINGING: Final = frozenset([READ.name, ACTIVATE.name, PIN.name])


@dataclass(frozen=True, slots=True)
class PooledCall:
    """A call of one of the caller's own tools."""

    id: str
    name: str
    arguments: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class _At:
    """The fold at an entry of the branch.

    messages: the conversation as the journal has it. sent: the same with texts that must not be stored. moment: time of the last request. covered: messages up to its final breakpoint. last: entry of the last message.
    """

    entry: EntryId | None
    state: PooledRequest
    messages: tuple[Message, ...] = ()
    sent: tuple[Message, ...] = ()
    moment: float | None = None
    covered: int = 0
    last: EntryId | None = None


def pooled(
    model: str,
    session: "Session",
    *,
    system: str = "",
    tools: Iterable[Mapping[str, Any]] = (),
    rules: str | PooledRules = "pagein",
    api: Api = "anthropic",
    max_tokens: int = 8192,
) -> "PooledAgent":
    """Begin, or go on with, an agent on a session.

    session: keeps the conversation and the pools in its journal. `session.work_in(folder)` lets the model read files.
    system: instructions. What the model has to know of the pools is added.
    tools: definitions of the caller's own tools, in the wire format.
    rules: a preset, `pagein` or `spec`, or choices of one's own.

    Raises BadSetting for an unknown preset, BadInput for a tool with the name of one of pagein's.
    """
    if isinstance(rules, str) and rules not in PRESETS:
        raise BadSetting(f"there is no preset {rules!r} of the pooled layout; there are {', '.join(PRESETS)}")
    chosen = PRESETS[rules] if isinstance(rules, str) else rules
    return PooledAgent(model, session, chosen, system, tuple(tools), api, max_tokens)


class PooledAgent:
    """An agent on a session. Thread-safe."""

    def __init__(
        self,
        model: str,
        session: "Session",
        rules: PooledRules,
        system: str,
        tools: tuple[Mapping[str, Any], ...],
        api: Api,
        max_tokens: int,
    ) -> None:
        self._model, self._session, self._api, self._max_tokens = model, session, api, max_tokens
        self._system, self._form = system, format_named(api)
        taken = {name for tool in tools if (name := _name_of(tool)) in _OWN}
        if taken:
            raise BadInput(f"the tools {', '.join(sorted(taken))} are pagein's own here; give yours other names")
        offers = (ToolOffer(tool.name, tool.description, dict(tool.schema)) for tool in POOL_TOOLS)
        self._tools = [*tools, *(definition(offer, api) for offer in offers)]
        table = newest_prices(model)
        anywhere = not self._form.cache.needs_breakpoints or (table is not None and table.cache.model != "breakpoints")
        terms = CacheTerms(anywhere=anywhere) if table is None else CacheTerms(table.read, table.write_5m, anywhere)
        self._lasts = 300.0 if table is None else table.cache.ttl
        counter = counter_for(model)
        self._count: Callable[[str], float] = lru_cache(_REMEMBERED)(lambda text: float(ceil(counter.count(text))))
        self._fold = PooledFold(session.pools.fold, rules, terms)
        self._layout: Layout[Any] = PooledLayout(rules)
        defined = self._count(json.dumps(self._tools))
        self._prefix = defined + self._count(system)
        least = UNKNOWN_MINIMUM if table is None else table.cache.min_prefix
        self._min_prefix = max(0, least - int(defined))  # definitions of tools come first
        self._originals: dict[EntryId, Message] = {}
        self._at = self._start()
        self._lock = RLock()
        self._results: dict[str, ToolResult] = {}  # of calls in the message `_results_of`, until each has one
        self._results_of: EntryId | None = None
        self._brought: list[str] = []  # objects that pagein's own tools showed for calls of this message
        self._answer_own()  # of calls that an earlier process left without results

    @property
    def calls(self) -> list[PooledCall]:
        """The calls of the caller's own tools that wait for a result."""
        with self._lock:
            waiting = [call for call in self._open().values() if call.name not in _OWN]
        return [PooledCall(call.id, call.name, _arguments(call)) for call in waiting]

    @property
    def is_done(self) -> bool:
        """Whether the model has answered, without a call."""
        with self._lock:
            return not self._open() and any(one.role == "assistant" for one in self._present().messages[-1:])

    def say(self, text: str) -> None:
        """Add words of the user. Raises BadInput while a call waits for its result, as no provider takes words there."""
        if not text.strip():
            raise BadInput("the user's words are empty")
        with self._lock:
            self._need_results()
            self._append(Message("user", (Text(text),)))

    def request(self, *, at: float | None = None) -> dict[str, Any]:
        """Return the arguments of the SDK's call for the next step.

        at: seconds since 1970, to know when the provider's cache has expired.

        Raises BadInput while a call waits for its result, and for a request that the provider would refuse.
        """
        with self._lock:
            self._need_results()
            self._session.pools.note_request(at)
            prompt = self.prompt()
            body = render_prompt(prompt, self._api, self._model, max_tokens=self._max_tokens)
            body["tools"] = self._tools
            for violation in check_body(body, self._api):
                raise BadInput(f"this request would be refused by the provider ({violation.rule}): {violation.text}")
            return body

    def prompt(self) -> LaidPrompt:
        """Return the blocks of the last request, with their sizes and breakpoints."""
        with self._lock:
            now = self._present()
            contents = PromptContents(
                system=self._system, conversation=now.sent[: now.state.window.messages], objects=self._texts(now)
            )
            return self._layout.lay_out(
                now.state.window, LayoutFacts(contents, self._count, self._min_prefix, now.covered)
            )

    def hear(self, reply: "Reply") -> list[PooledCall]:
        """Add the provider's reply. Answers calls of the tools for pools, and returns the others.

        reply: the provider's answer, as fields or as an SDK object.
        """
        with self._lock:
            for raw in answer_of(reply, self._api).messages:
                said = self._form.requests.message(json.loads(raw), len(self._present().messages))
                self._append(said)
            self._answer_own()
            return self.calls

    def answer(self, call: PooledCall, text: str, *, is_error: bool = False) -> None:
        """Add the result of a call."""
        with self._lock:
            waiting = self._open().get(call.id)
            if waiting is None:
                raise BadInput(f"there is no open call {call.id!r}")
            self._take(waiting, text, is_error=is_error)

    def _open(self) -> dict[str, ToolCall]:
        """Return the calls of the branch's last message that have no result yet."""
        now = self._present()
        if self._results_of != now.last:  # the session went on elsewhere
            self._results, self._results_of, self._brought = {}, now.last, []
        calls = (block for one in now.sent[-1:] for block in one.blocks if isinstance(block, ToolCall))
        return {call.id: call for call in calls if call.id not in self._results}

    def _need_results(self) -> None:
        self._answer_own()
        if waiting := self._open():
            raise BadInput(f"no result was given for {', '.join(waiting)}; give one with answer()")

    def _answer_own(self) -> None:
        for call in self._open().values():
            if call.name in _OWN:
                done = _OWN[call.name].answer(self._session, Call(_arguments(call), id=call.id))
                if call.name in _BRINGING and not done.is_error and "id" in done.details:
                    self._brought.append(str(done.details["id"]))
                self._take(call, done.text, is_error=done.is_error)

    def _take(self, call: ToolCall, text: str, *, is_error: bool) -> None:
        self._results[call.id] = ToolResult(call.id, text, call.name, is_error)
        if not self._open():
            brought = self._brought
            self._append(Message("tool", tuple(self._results.values())))
            self._show_again(brought)

    def _show_again(self, brought: Iterable[str]) -> None:
        """Read what was brought in once more if a call of the same reply changed it since, such as a read beside a `sed -i`."""
        for object_id in dict.fromkeys(brought):
            state = self._session.pools.state
            if state.index[object_id].content == "unread" and object_id not in state.put_away:
                self._session.pools.activate(object_id)

    def _append(self, message: Message) -> None:
        try:
            with self._session.turn():
                entry = self._session.append(message)
        except StoreError:
            entry = self._session.append(message)  # holds in memory at once; the next turn stores it
        self._originals[entry] = message

    def _texts(self, at: _At) -> "_Texts":
        return _Texts(self._session, at.state.walk.texts)

    # --- the fold ---

    def _start(self) -> _At:
        return _At(None, PooledRequest(self._fold.pools.start(self._session.folder or "")))

    def _present(self) -> _At:
        """Fold the entries since the last known one, or from the root if the session has moved elsewhere."""
        leaf, journal = self._session.leaf, self._session.journal
        entries = []
        at = leaf
        while at is not None and at != self._at.entry:
            entry = journal.entry(at)
            entries.append(entry)
            at = entry.parent
        now = self._at if at is not None or self._at.entry is None else self._start()
        for entry in reversed(entries):
            now = self._step(replace(now, entry=entry.id), entry.body)
        self._at = now
        return now

    def _step(self, now: _At, body: Body) -> _At:
        if isinstance(body, RequestSent):
            cold = body.moment is not None and now.moment is not None and body.moment - now.moment > self._lasts
            covered = now.state.window.messages
            state = self._fold.request(
                now.state, now.messages, self._count, texts=self._texts(now), cold=cold, prefix=self._prefix
            )
            return replace(now, state=state, moment=body.moment or now.moment, covered=covered)
        now = replace(now, state=self._fold.step(now.state, body))
        if not isinstance(body, MessageEntry):
            return now
        known = None if now.entry is None else self._originals.pop(now.entry, None)
        sent = body.message if known is None or known.blocks == body.message.blocks else known
        return replace(now, messages=(*now.messages, body.message), sent=(*now.sent, sent), last=now.entry)


class _Texts(Mapping[str, str]):
    """The contents of a session's objects, by version: from the branch, else from the store."""

    def __init__(self, session: "Session", told: Mapping[str, str]) -> None:
        self._session, self._told = session, told

    def __getitem__(self, version: str) -> str:
        told = self._told.get(version)
        if told is None:
            told = self._session.pools.stored(version)
        if told is None:
            raise KeyError(version)
        return told

    def __iter__(self) -> Iterator[str]:
        return iter(self._told)

    def __len__(self) -> int:
        return len(self._told)


def _name_of(tool: Mapping[str, Any]) -> str:
    function = tool.get("function")
    return str((function if isinstance(function, Mapping) else tool).get("name", ""))


def _arguments(call: ToolCall) -> dict[str, Any]:
    try:
        found = json.loads(call.arguments or "{}")
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}
