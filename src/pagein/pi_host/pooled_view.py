"""The pooled window of a session in pi: results stand as references, and active contents behind the messages that showed them.

Rules of this file
------------------
1. A session has one layout. The first request on its branch chooses, and the journal holds the choice.
2. The window is the fold that the gateway uses (`policy.layouts.pooled_branch`). pi's session and screen keep the full texts.
3. An object becomes active by what the branch shows. Nothing is read from disk, since pi's own tools read.
4. pi sets the cache breakpoints, so a window that is built anew reads only the prompt in front of the conversation from the cache.
5. While the store fails, a request is as pi has it.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Final

from pagein.engine.log.journal import Fold
from pagein.engine.pooled_stages import POOLED
from pagein.engine.prepared_request import CLOSED_GATE
from pagein.engine.session import Session
from pagein.engine.session_pools import PoolReply
from pagein.errors import HostError
from pagein.model.entries import Body, CompactionEntry, MessageEntry, RequestSent
from pagein.model.layout_notes import PooledRequestNote
from pagein.model.messages import Message, Thinking, ToolResult
from pagein.model.shared_collections import SharedMap
from pagein.pi_host.branch import PiBranch, name_of
from pagein.pi_host.protocol import Answer, CompactionVerdict, Insert, ModelCall, PiTool, WindowEdits, WindowUsage
from pagein.policy.layouts.pooled_branch import TAKES, BranchFold, PooledBranch
from pagein.policy.pools.pool_values import USUAL, PoolRules
from pagein.policy.tiers.frozen_order import CacheTerms
from pagein.providers.prices.price_lookup import newest_prices
from pagein.tools.calls import ArgumentReader
from pagein.tools.pool_commands import pool
from pagein.tools.pools import ACTIVATE, DEACTIVATE, PIN, UNPIN

_OFFERS: Final = (ACTIVATE, DEACTIVATE, PIN, UNPIN)
POOL_TOOLS: Final = tuple(one.name for one in _OFFERS)
"""The tools of a session in this layout."""
REMINDER: Final = "To see it again later, use activate with this id."
"""What stands behind each reference."""
_IDLE: Final = 3600.0
"""Seconds without a request after which no provider that pi speaks to has the prompt in its cache."""
_ABOVE: Final = "Its content stands above, in your context, below ACTIVE_CONTENT with this id."


@dataclass(frozen=True, slots=True)
class _Conversation:
    """The messages of the conversation, by number, from 1. sent: when the last request was sent; None before the first."""

    messages: SharedMap[Message] = field(default_factory=SharedMap)
    count: int = 0
    sent: float | None = None


class PooledView:
    """The pooled window of a session.

    wanted: whether a new conversation takes this layout. limit: share of the model's window up to which a request fits.
    """

    def __init__(self, session: Session, branch: PiBranch, rules: PoolRules, limit: float, *, wanted: bool) -> None:
        self._session, self._branch, self._rules = session, branch, rules
        self._limit, self._wanted = limit, wanted
        fold = BranchFold(session.name, session.pools.stored)
        self._windows: Fold[PooledBranch] = Fold(session.journal, fold.start(), fold.step, takes=TAKES)
        self._told: Fold[_Conversation] = Fold(
            session.journal, _Conversation(), _step, takes=(MessageEntry, CompactionEntry, RequestSent)
        )
        self._shown: PooledBranch | None = None
        self._is_full = False

    @property
    def may_be(self) -> bool:
        """Whether a branch of this session may have the layout."""
        return self._wanted or POOLED in self._session.journal.kinds

    @property
    def is_used(self) -> bool:
        """Whether the current branch has the layout."""
        if not self.may_be:
            return False
        if self._here.is_pooled:
            return True
        is_new = self._told[self._session.leaf].sent is None
        return self._wanted and is_new and not self._branch.has_markers and not self._branch.config.enabled

    @property
    def _here(self) -> PooledBranch:
        return self._windows[self._session.leaf]

    def edits(self, at: float, *, clears: bool = False) -> WindowEdits:
        """Return the edits for the next request, and journal the request as sent.

        at: seconds since 1970. clears: whether the provider may take earlier results out.
        """
        session, before = self._session, self._here
        told = self._told[session.leaf]
        session.note(self._facts(before, told, at))
        request = session.advance(at, replace(CLOSED_GATE, rereads=not clears))
        self._branch.stay()
        now, self._is_full = self._here, False
        if not session.is_kept:
            self._shown = None
            return WindowEdits(reset=True, failure=request.failure or "the store cannot be written")
        if now.window.messages != told.count:
            raise HostError(f"the pools know {now.window.messages} messages of a conversation of {told.count}")
        last = self._shown
        goes_on = (
            last is not None and last.window is before.window and now.window.rebuilt is None and now.front == last.front
        )
        results, inserts = self._changes(now, told, before.window.messages if goes_on else 0)
        self._shown = now
        front = () if goes_on or not now.front else (Insert("", now.front),)
        return WindowEdits(not goes_on, results, (*front, *inserts), request.failure or "")

    def forget_changes(self) -> None:
        """Assume that the extension knows no changes. The next request sends every change."""
        self._shown = None

    def _changes(self, now: PooledBranch, told: _Conversation, known: int) -> tuple[dict[str, str], list[Insert]]:
        """Return the references and the texts behind the messages after the first `known` ones."""
        results: dict[str, str] = {}
        inserts: list[Insert] = []
        for number in range(known + 1, told.count + 1):
            for block in told.messages[str(number)].blocks:
                if isinstance(block, ToolResult) and (line := now.window.reference(number, block)) is not None:
                    results[block.call_id] = f"{line}\n{REMINDER}"
            behind = now.told_behind(number)
            if behind:
                after = self._name_before(told, number)
                inserts += [Insert(after, text) for text in behind]
        return results, inserts

    def _name_before(self, told: _Conversation, number: int) -> str:
        """Return the name of the last message, up to a given message, that pi can find again; "" for none."""
        for place in range(number, 0, -1):
            name = name_of(told.messages[str(place)], self._branch.results)
            if name:
                return name
        return ""

    def _facts(self, before: PooledBranch, told: _Conversation, at: float) -> PooledRequestNote:
        terms, rules = _terms(self._session.model or ""), self._rules
        floor = _floor(told) if before.is_pooled and before.window.messages else 0
        is_cold = self._is_full or (told.sent is not None and at - told.sent > _IDLE)
        last = told.messages[str(told.count)].role if told.count else "user"
        return PooledRequestNote(
            model=self._session.model or "",
            read=terms.read,
            write=terms.write,
            anywhere=terms.anywhere,
            calls=rules.recent_calls,
            turns=rules.recent_turns,
            by_hand=rules.by_hand,
            floor=floor,
            cold=is_cold and not floor,
            whole=last not in ("user", "tool"),
            marked=False,
        )

    # --- compaction ---

    def judge_compaction(self, *, cancels: bool, usage: WindowUsage | None) -> CompactionVerdict:
        """Return whether pi's compaction is cancelled: while the request fits, and contents can leave with the next one."""
        shown = self._here.window.shown
        if not cancels or usage is None or self._branch.is_refused or all(one.is_live for one in shown):
            return CompactionVerdict()
        if usage.tokens > self._limit * usage.window or not self._session.is_kept:
            return CompactionVerdict()
        self._is_full = True
        return CompactionVerdict(
            cancel=True,
            reason=f"pagein: no compaction, since the session fits ({usage.tokens:,} of {usage.window:,} tokens). Contents that are "
            "no longer active leave with the next request.",
        )

    # --- tools and commands ---

    def answer(self, call: ModelCall) -> Answer:
        """Answer a call of a tool of this layout. What becomes active stands in the next request."""
        given = ArgumentReader(call.name, call.input)
        named = given.text("id")
        problem = given.problem()
        if problem is not None:
            return Answer(problem.text, "error")
        reply = self._act(call.name, named)
        details = {"id": reply.id} if reply.id else {}
        return Answer(reply.text, "error" if reply.is_error else "info", details)

    def _act(self, name: str, named: str) -> PoolReply:
        pools = self._session.pools.of_window
        if name in (DEACTIVATE.name, UNPIN.name):
            return pools.deactivate(named) if name == DEACTIVATE.name else pools.unpin(named)
        one = pools.find(named)
        is_shown = one is not None and one.version is not None and self._here.is_shown(one.id, one.version)
        reply = pools.activate(named) if name == ACTIVATE.name else pools.pin(named)
        return replace(reply, text=f"{reply.text}. {_ABOVE}") if is_shown and not reply.is_error else reply

    def listing(self) -> Answer:
        """Return the objects that the session knows, for a person."""
        return Answer(str(pool(self._session)["text"]))

    def line(self, usage: WindowUsage | None) -> str:
        """Return the line that tells a person how full the window is."""
        state = self._here.state.walk.state
        full = "?" if usage is None else f"{round(100 * usage.tokens / usage.window)}%"
        return (
            f"pagein: window {full}, {state.size:,} objects, {len(state.active):,} active, {len(state.pinned):,} pinned"
        )


def offered_pool_tools() -> tuple[PiTool, ...]:
    """Return the tools of this layout, as pi registers them once a branch has the layout."""
    return tuple(
        PiTool(one.name, one.name, one.description, one.schema, one.description.partition(". ")[0], active=False)
        for one in _OFFERS
    )


def pool_rules(values: Mapping[str, object]) -> PoolRules:
    """Return the bounds of the active content. values: of pagein's settings, by name."""
    bounds = {"recent_calls": "pool_calls", "recent_turns": "pool_turns", "by_hand": "pool_by_hand"}
    found = {field: value for field, name in bounds.items() if isinstance(value := values.get(name), int)}
    return replace(USUAL, **found)


def _step(before: _Conversation, body: Body) -> _Conversation:
    match body:
        case MessageEntry(message=message):
            count = before.count + 1
            return replace(before, messages=before.messages.put(str(count), message), count=count)
        case CompactionEntry(lost=False):
            return replace(before, messages=SharedMap[Message](), count=0)
        case RequestSent(moment=at):
            return replace(before, sent=at or 0.0)
        case _:
            return before


def _floor(told: _Conversation) -> int:
    """Return the number of messages that must stay as sent. The model's thinking is bound to the messages before."""
    number, is_bound, in_loop = told.count, False, False
    answer = 0
    while number > 0 and (message := told.messages[str(number)]).role != "user":
        if message.role == "assistant":
            answer = answer or number
            is_bound = is_bound or any(isinstance(block, Thinking) for block in message.blocks)
        elif not answer:
            in_loop = True
        number -= 1
    return answer if is_bound and in_loop else 0


def _terms(model: str) -> CacheTerms:
    table = newest_prices(model)
    if table is None:
        return CacheTerms()
    return CacheTerms(table.read, table.write_5m, table.cache.model != "breakpoints")
