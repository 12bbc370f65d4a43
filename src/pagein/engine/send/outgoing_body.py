"""The bytes of a request that was placed: what its branch holds, spliced into what the client sent, and checked.

Rules of this file
------------------
1. Where nothing is replaced, inserted, offered or marked, the client's bytes go out, the very same.
2. What is not the client's own must not make a provider refuse it that would have taken that (law 3). It is held to the rules in its
   final bytes: each message that was spliced keeps its shape, and all that is not as in the request before on its branch is held to
   every rule, with all marks where some are ours. A small request for which something was decided is held to them as a whole.
3. Costs what is new; tools and instructions are read once.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Any, Final

from pagein.engine.cache.cache_breakpoints import (
    AS_THE_CLIENT,
    NOTHING_LEFT,
    WITH_MARKS,
    Anew,
    BreakpointChoice,
    BreakpointSettings,
    Half,
    OwnEntries,
    apply_breakpoints,
    choice_that_fits,
    chosen_for,
    entries_after,
    first_changes,
)
from pagein.engine.cache.prompt_prefix import PrefixDigests
from pagein.engine.intake.message_chain import Transcript
from pagein.engine.intake.recall_tools import Settled
from pagein.engine.log.folds import Fold
from pagein.engine.log.journal import Journal
from pagein.engine.log.message_index import MessageIndex
from pagein.engine.log.state import State
from pagein.engine.send import passthrough
from pagein.engine.send.call import PendingCall
from pagein.engine.send.fallback import fallback
from pagein.engine.send.recall_exchanges import Exchanges, with_exchanges
from pagein.engine.send.sent_changes import SentHistory, binds_thinking
from pagein.engine.send.splice import NOTHING_RENDERED, HiddenExchange, MessageChange, Splicer, foreign
from pagein.errors import HostError
from pagein.model.codec import decode_json
from pagein.model.entries import EntryId
from pagein.providers.validity import Api, check_body
from pagein.providers.wire.request_body import WireRequest, decode, items_key
from pagein.providers.wire.ttl_edits import blocks_in

_CHECKED_WHOLE: Final = 64 << 10
_SAID_BEFORE: Final = "what was said before"
_MARK: Final = "cache_control"
_MARKED: Final = b'"cache_control"'
_LASTING: Final = ("tools", "system", "instructions")


@dataclass(frozen=True, slots=True)
class Bytes:
    """A request as it goes out. items: its messages; fields: what stands around them. replaced: results that stand as something else;
    used: the messages it was rendered for. changes: what of its messages is not the client's, turns that the client did not see aside.
    is_last: False where its conversation was rendered otherwise, and that could not be sent.

    news: where that begins which is not as in the request before it on its branch, and what that rests on: in these messages, and in
    the client's. rewritten: whether an epoch was opened for it. remarked: whether its marks are others than the client's.
    """

    body: bytes
    items: Sequence[bytes] = ()
    fields: Mapping[str, bytes] | None = None
    replaced: int = 0
    used: int = 0
    why: str = ""
    news: tuple[int, int] = (0, 0)
    rewritten: bool = False
    remarked: bool = False
    changes: Mapping[int, MessageChange] = field(default_factory=dict)
    is_last: bool = True


class RequestRenderer:
    """Renders the requests of one session. Called by one thread at a time."""

    def __init__(
        self,
        journal: Journal[State],
        heads: Fold[PrefixDigests],
        settled: Fold[Settled],
        places: MessageIndex,
        *,
        marks: BreakpointSettings = WITH_MARKS,
    ) -> None:
        self._journal = journal
        self._places = places
        self._settled = settled
        self._passed: Fold[bool] = Fold(journal, False, passthrough.step, "passed")  # noqa: FBT003 -- a state
        self._marks = marks
        self._left: Fold[OwnEntries] = Fold(journal, NOTHING_LEFT, entries_after, "left")
        self.showing = SentHistory(journal, heads, settled)
        self._exchanges = Exchanges()

    def render(self, call: PendingCall, entry: EntryId) -> Bytes:
        """The request that stands at this entry, with the tools that the call offers; marks as the client has them."""
        script, envelope = call.script, call.envelope
        stood = self._exchanges.of(script, self._places.exchanges)
        found = self.showing.at(entry, script.units, script.api, min(stood, default=None))
        shown = found.rendered
        splicer, made = found.splicer, with_exchanges(shown.changes, stood)
        goes_on = splicer.basis is not None and splicer.basis[0] is found.before and splicer.basis[1] == stood
        splicer.basis = None
        since = found.since if goes_on else 0
        items: Sequence[bytes] = splicer.items(script, made, since)
        splicer.basis = shown, stood
        start = answer_start(script, since)
        body = envelope.body(items) if made else call.body
        return Bytes(
            body,
            items,
            envelope.fields,
            shown.replaced,
            len(script.units),
            news=(splicer.count(start), start),
            rewritten=shown.rewritten,
            changes=shown.changes,
        )

    def pass_through(self, call: PendingCall) -> Bytes:
        """The request of a client that says everything anew: as it came, with the tools that the call offers."""
        start = answer_start(call.script, len(call.script.units))
        return Bytes(call.body, call.envelope.items, call.envelope.fields, news=(start, start))

    def chosen(self, call: PendingCall, made: Bytes, entry: EntryId, anew: Anew) -> BreakpointChoice:
        """The marks of ours that a request is to have."""
        may = self._marks.adds and call.script.api == "anthropic" and made.body is not call.original
        if not may or not (anew.opened is not None or anew.is_unread):
            return AS_THE_CLIENT
        changed = [] if anew.opened is None or anew.is_unread else first_changes(anew.opened)
        wanted = chosen_for(made.items, changed, self._first(entry), self._left.at(entry))
        return choice_that_fits(wanted, call.envelope, made.items)

    def mark_breakpoints(self, call: PendingCall, made: Bytes, chosen: BreakpointChoice) -> Bytes:
        """The request with these marks."""
        return with_breakpoints(call, made, chosen)

    def hold(self, call: PendingCall, made: Bytes, *, decided: bool) -> None:
        """Raises HostError where a provider would refuse this request, and not the client's own (see `check_bytes`)."""
        check_bytes(call, made, decided=decided)

    def render_last(self, call: PendingCall, failure: str) -> Bytes:
        """The request as its branch was rendered last, with what the client said since as it came; else the client's own, without the
        thinking that our renderings made invalid. `fields` tells whether tools of ours are in it.
        """
        return body_of_last(call, self._last(call), failure)

    def clean(self, call: PendingCall) -> bytes:
        """The client's own request, without the thinking that our renderings made invalid."""
        if not _thinks(call):
            return call.original
        original = decode(call.original, call.script.api)
        return fallback("", original, None, _thoughtless(call, original, self._last(call).first)).request.body()

    def _last(self, call: PendingCall) -> "Last":
        """What was sent last of this conversation, and all that the client said since as it came."""
        script, units = call.script, call.script.units
        count = next(
            (at for at in range(len(units), 0, -1) if self._places.request_at(units[at - 1].name) is not None), 0
        )
        sent = self._places.request_at(units[count - 1].name) if count else None
        stood = self._exchanges.of(script, self._places.exchanges)
        shown = NOTHING_RENDERED
        if sent is not None:
            shown = self.showing.at(sent, units[:count], script.api, min(stood, default=None)).rendered
        last = Last(shown.changes, count, stood, shown.replaced)
        was_passed = sent is not None and self._passed.at(self._places.stand(units[count - 1].name))
        return with_news(call, last, had_tools=self._has_tools(sent), was_passed=was_passed)

    def _has_tools(self, sent: EntryId | None) -> bool:
        """Whether a request had tools of ours."""
        settled = None if sent is None else self._settled.at(sent)
        return isinstance(settled, tuple) and bool(settled)

    def _first(self, entry: EntryId) -> Half | None:
        """The first that may leave one day."""
        standing = self._journal.state_at(entry).standing
        standing = standing if self._marks.arguments else standing.without_arguments()
        first = next(iter(standing.all()), None)
        return None if first is None else (first.call_id, first.form != "result")


@dataclass(frozen=True, slots=True)
class Last:
    """What was sent last of a conversation, with the client's news behind it. changes: what of it is not the client's. count: messages that
    were sent. stood: what stands in place of answers that the client saw as one. first: the first message behind which the prompt was ever
    another one than the client's, -1 for all of it, None: it never was.
    """

    changes: Mapping[int, MessageChange]
    count: int
    stood: Mapping[int, HiddenExchange]
    replaced: int = 0
    first: int | None = None

    @property
    def with_exchanges(self) -> Mapping[int, MessageChange]:
        """All that is not the client's."""
        return with_exchanges(self.changes, self.stood)


def with_news(call: PendingCall, last: Last, *, had_tools: bool, was_passed: bool) -> Last:
    """What was sent last with what the client said since, and without thinking about prompts that were none of these.

    had_tools: whether tools of ours were in it. was_passed: whether it went out as its client's, too.
    """
    tools = -1 if call.own_tool_names or had_tools else None
    first = min((one for one in (tools, *last.stood, *last.changes) if one is not None), default=None)
    changes = dict(last.changes)
    for place in foreign(call.script.units, last.count - was_passed, lambda: first) if _thinks(call) else ():
        changes[place] = replace(changes.get(place, MessageChange()), thoughtless=True)
    return replace(last, changes=changes, first=first)


def body_of_last(call: PendingCall, last: Last, failure: str) -> Bytes:
    """A request as it was sent last, with the client's news; where that would be refused, the next best."""
    original, request = decode(call.original, call.script.api), None
    changes = last.with_exchanges
    if changes or call.envelope is not call.theirs:
        items = Splicer().items(call.script, changes)
        request = replace(original, fields=call.envelope.fields, items=tuple(items), changed=True)
    found = fallback(failure, original, request, _thoughtless(call, original, last.first))
    is_last = found.used == "last"
    fields = call.envelope.fields if is_last else call.theirs.fields
    why, body = "; ".join(found.reasons), found.request.body()
    if not is_last:
        return Bytes(body, found.request.items, fields, 0, last.count, why, is_last=request is None)
    return Bytes(body, found.request.items, fields, last.replaced, last.count, why, changes=last.changes)


def with_breakpoints(call: PendingCall, made: Bytes, chosen: BreakpointChoice) -> Bytes:
    """The request with these marks."""
    if chosen == AS_THE_CLIENT or call.script.api != "anthropic":
        return made
    request = apply_breakpoints(chosen, call.envelope, made.items)
    if not request.changed:
        return made
    body = call.envelope.body(request.items, request.fields)
    return replace(made, body=body, items=request.items, fields=request.fields, remarked=True)


def check_bytes(call: PendingCall, made: Bytes, *, decided: bool) -> None:
    """Raises HostError where a provider would refuse this request, and not the client's own. Costs what is new in it.

    decided: whether something was decided for it, so that a small one is checked as a whole.
    """
    if made.body is call.original:
        return
    whole = decided and len(made.body) <= _CHECKED_WHOLE
    fields = call.envelope.fields if made.fields is None else made.fields
    ours, theirs = (0, 0) if whole else made.news
    sent = _BodyPart(call.script.api, fields, made.items, ours, made.remarked)
    broken = sent.breaks(len(made.body))
    if broken:
        said = _BodyPart(call.script.api, call.theirs.fields, call.theirs.items, theirs, made.remarked)
        broken -= said.breaks(len(call.original))
    if broken:
        raise HostError(f"the rendered request would be refused by {', '.join(sorted(broken))}")


@dataclass(frozen=True, slots=True)
class _BodyPart:
    """A request from one of its messages on, as a body that is checked for what it stands for. marks: whether those in front count, too."""

    api: Api
    fields: Mapping[str, bytes]
    items: Sequence[bytes]
    start: int
    marks: bool

    def breaks(self, size: int) -> set[str]:
        """The rules of its provider that it breaks. size: bytes of the whole request."""
        return {one.rule for one in check_body(self._values(), self.api, size=size)}

    def _values(self) -> dict[str, Any]:
        body = {
            name: _parse_cached(bytes(raw)) if name in _LASTING else decode_json(raw)
            for name, raw in self.fields.items()
        }
        said = [one if isinstance(one := decode_json(raw), dict) else _spoken(one) for raw in self.items[self.start :]]
        return {**body, items_key(self.api): [*self._in_front(), *said]}

    def _in_front(self) -> list[dict[str, Any]]:
        if not self.start:
            return []
        blocks: list[dict[str, Any]] = [{"type": "text", "text": _SAID_BEFORE}]
        for raw in [one for one in self.items[: self.start] if _MARKED in one] if self.marks else ():
            blocks += [{**blocks[0], _MARK: mark} for mark in _marks(raw)]
        return [_spoken(blocks if self.marks else _SAID_BEFORE)]


def may_be_bound(call: PendingCall) -> bool:
    """Whether thinking must be taken for bound to what stands before it."""
    return binds_thinking(call.head, call.script.api)


def _thinks(call: PendingCall) -> bool:
    """Whether a request holds thinking that may be bound so."""
    units = call.script.units
    return bool(units) and units[-1].thought >= 0 and may_be_bound(call)


def _thoughtless(call: PendingCall, original: WireRequest, behind: int | None) -> WireRequest | None:
    """The request of a client without the thinking behind this message, None where there is none."""
    units = call.script.units
    if behind is None or not _thinks(call) or units[-1].thought <= behind:
        return None
    changes = {one.thought: MessageChange(thoughtless=True) for one in units if one.thought > behind}
    return replace(original, items=tuple(Splicer().items(call.script, changes)), changed=True)


def thoughtless(call: PendingCall) -> bytes:
    """The request of a client without any thinking, for when nobody can say which of it is valid."""
    original = decode(call.original, call.script.api)
    return fallback("", original, None, _thoughtless(call, original, -1)).request.body()


def answer_start(script: Transcript, since: int) -> int:
    """The item with which that begins which messages from this one on may answer: the last thing that the model said before."""
    units = script.units
    place = min(since, len(units)) - 1
    while place > 0 and units[place].message.role != "assistant":
        place -= 1
    return units[place].first if place > 0 else 0


@lru_cache(maxsize=16)
def _parse_cached(raw: bytes) -> object:
    """Tools and prompts are large, and the same from call to call."""
    return decode_json(raw)


def _marks(raw: bytes) -> Iterator[object]:
    """The marks in a message, those inside of results included, in their order."""
    for block in blocks_in(raw):
        inner = block.get("content")
        yield from (
            (one[_MARK] for one in inner if isinstance(one, dict) and _MARK in one) if isinstance(inner, list) else ()
        )
        if _MARK in block:
            yield block[_MARK]


def _spoken(content: object) -> dict[str, Any]:
    return {"role": "user", "content": content}
