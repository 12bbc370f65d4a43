"""Render the body of a request with a known branch: splice the branch's changes into the client's body, and check it.

Rules of this file
------------------
1. Without replacement, insert, recall tool or added breakpoint, the client's own bytes are sent.
2. A change must not make a provider refuse a request that it would accept from the client (law 3). The final bytes are
   checked: each spliced message keeps its shape, and everything new since the request before on its branch obeys every
   rule, with all cache breakpoints if pagein set some. A small request with a decision is checked as a whole.
3. Costs as much as is new.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from pagein.engine.cache.cache_breakpoints import (
    AS_THE_CLIENT,
    NOTHING_LEFT,
    WITH_MARKS,
    Anew,
    BreakpointSettings,
    Half,
    OwnEntries,
    apply_breakpoints,
    choice_that_fits,
    chosen_for,
    entries_after,
    first_changes,
    read_up_to,
)
from pagein.engine.cache.marked_messages import MarkedMessages
from pagein.engine.intake.message_chain import Transcript
from pagein.engine.intake.recall_tools import Settled
from pagein.engine.log.journal import Fold, Journal
from pagein.engine.log.state import State
from pagein.engine.send import passthrough
from pagein.engine.send.call import PendingCall, SentPlace
from pagein.engine.send.fallback import fallback
from pagein.engine.send.message_changes import MessageChange
from pagein.engine.send.recall_exchanges import Exchanges, with_exchanges
from pagein.engine.send.rendered_bytes import Bytes, check_bytes
from pagein.engine.send.sent_changes import SentHistory, WindowLayout, binds_thinking, foreign
from pagein.engine.send.splice import HiddenExchange, Splicer
from pagein.model.entries import CompactionEntry, EntryId, RequestSent
from pagein.model.journal_notes import BreakpointChoice, DeferredToolsNote, ExchangeNote, PassthroughNote
from pagein.providers.wire.request_body import WireRequest, decode


class RequestRenderer:
    """Render the requests of a session. Not thread-safe."""

    def __init__(
        self,
        journal: Journal[State],
        showing: SentHistory,
        settled: Fold[Settled],
        exchanges: Mapping[EntryId, Sequence[ExchangeNote]],
        *,
        marks: BreakpointSettings = WITH_MARKS,
        deferral: Fold[DeferredToolsNote | None],
    ) -> None:
        self._journal = journal
        self._known = exchanges
        self._settled = settled
        self._deferral = deferral
        self._passed: Fold[bool] = Fold(
            journal, start=False, step=passthrough.step, name="passed", takes=(PassthroughNote, RequestSent)
        )
        self._marks = marks
        self._left: Fold[OwnEntries] = Fold(
            journal, NOTHING_LEFT, entries_after, "left", takes=(BreakpointChoice, CompactionEntry)
        )
        self.showing = showing
        self._exchanges = Exchanges()
        self._marked = MarkedMessages()

    def lay_out(self, call: PendingCall, entry: EntryId) -> WindowLayout:
        """Compute how the window at this entry differs from the client's messages."""
        script = call.script
        stood = self._exchanges.of(script, self._known, call.envelope) if self._known else {}
        return WindowLayout(self.showing.at(entry, script.units, script.api, stood), stood)

    def render(self, call: PendingCall, layout: WindowLayout) -> Bytes:
        """Render a request with the recall tools of the call. Cache breakpoints stay as the client set them."""
        script, envelope = call.script, call.envelope
        found, stood = layout.view, layout.stood
        shown = found.rendered
        splicer, made = found.splicer, with_exchanges(shown.changes, stood) if stood else shown.changes
        goes_on = splicer.basis is not None and splicer.basis[0] is found.before and splicer.basis[1] == stood
        splicer.basis = None
        since = found.since if goes_on else 0
        start = answer_start(script, since)
        items, first = script.raws, start
        if made or splicer.ends:
            items = splicer.items(script, made, since)
            first = splicer.ends[start - 1] if start else 0
        splicer.basis = shown, stood
        body = envelope.body(items) if made else call.body
        return Bytes(
            body,
            items,
            envelope.fields,
            shown.replaced,
            len(script.units),
            news=(first, start),
            rewritten=shown.rewritten,
            changes=shown.changes,
            marked=self._marked.find(items) if made else None,
        )

    def pass_through(self, call: PendingCall) -> Bytes:
        """Render the request of a client that rephrases its conversation: unchanged, with the call's recall tools."""
        start = answer_start(call.script, len(call.script.units))
        return Bytes(call.body, call.envelope.items, call.envelope.fields, news=(start, start))

    def choose_breakpoints(self, call: PendingCall, made: Bytes, entry: EntryId, anew: Anew) -> BreakpointChoice:
        """Choose the cache breakpoints to add to a request."""
        may = self._marks.adds and call.script.format.cache.takes_ttls and made.body is not call.original
        if not may or not (anew.opened is not None or anew.is_unread):
            return AS_THE_CLIENT
        changed = [] if anew.opened is None or anew.is_unread else first_changes(anew.opened)
        if changed and anew.opened is not None and anew.opened.is_uncached:
            wanted = read_up_to(made.items, changed)
        else:
            wanted = chosen_for(made.items, changed, self._first(entry), self._left[entry])
        return choice_that_fits(wanted, made.request(call.envelope))

    def check(self, call: PendingCall, made: Bytes, *, decided: bool) -> None:
        """Check the request as `check_bytes` does, unless it is the client's own. Raises HostError."""
        if made.body is not call.original:
            check_bytes(call, made, decided=decided)

    def render_last(self, call: PendingCall, sent: SentPlace | None, failure: str) -> Bytes:
        """Render the last sent version of the branch with the client's new messages; else the client's request without
        invalid thinking.

        sent: the last request that the call continues.

        `fields` of the result tells whether recall tools are in it.
        """
        return body_of_last(call, self._last(call, sent), failure)

    def clean(self, call: PendingCall, sent: SentPlace | None) -> bytes:
        """Return the client's request without the thinking that pagein's renderings made invalid.

        sent: the last request that the call continues.
        """
        if not _thinks(call):
            return call.original
        original = decode(call.original, call.script.api)
        return fallback("", original, None, _thoughtless(call, original, self._last(call, sent).first)).request.body()

    def _last(self, call: PendingCall, sent: SentPlace | None) -> "LastWindow":
        """Return the last sent version of this conversation, with the client's new messages unchanged."""
        script = call.script
        stood = self._exchanges.of(script, self._known, call.envelope)
        if sent is None:
            return with_news(call, LastWindow({}, 0, stood), had_tools=False, was_passed=False)
        shown = self.showing.at(sent.entry, script.units[: sent.count], script.api, stood).rendered
        last = LastWindow(shown.changes, sent.count, stood, shown.replaced)
        return with_news(call, last, had_tools=self._has_tools(sent.entry), was_passed=self._passed[sent.stand])

    def _has_tools(self, sent: EntryId) -> bool:
        """Return whether a request had recall tools or deferred tools."""
        settled, deferral = self._settled[sent], self._deferral[sent]
        return (isinstance(settled, tuple) and bool(settled)) or (deferral is not None and bool(deferral.deferred))

    def _first(self, entry: EntryId) -> Half | None:
        """Return the first resident, which may be evicted next."""
        standing = self._journal.states[entry].standing
        standing = standing if self._marks.arguments else standing.without_arguments()
        first = next(iter(standing.all()), None)
        return None if first is None else (first.call_id, first.form != "result")


@dataclass(frozen=True, slots=True)
class LastWindow:
    """The last sent version of a conversation, with the client's new messages.

    changes: its differences from the client's messages.
    count: messages that were sent.
    stood: hidden exchanges, by the number of the client's merged answer.
    replaced: number of replaced results.
    first: first message after which the prompt ever differed from the client's; -1 from the start, None never.
    """

    changes: Mapping[int, MessageChange]
    count: int
    stood: Mapping[int, HiddenExchange]
    replaced: int = 0
    first: int | None = None

    @property
    def with_exchanges(self) -> Mapping[int, MessageChange]:
        """All differences from the client's messages, with hidden exchanges."""
        return with_exchanges(self.changes, self.stood)


def with_news(call: PendingCall, last: LastWindow, *, had_tools: bool, was_passed: bool) -> LastWindow:
    """Add the client's new messages to the last sent version, without thinking that belongs to another prompt.

    had_tools: True if the last version had recall tools.
    was_passed: True if a retry of the last version was sent unmodified.
    """
    tools = -1 if call.own_tool_names or had_tools else None
    first = min((one for one in (tools, *last.stood, *last.changes) if one is not None), default=None)
    changes = dict(last.changes)
    for place in foreign(call.script.units, last.count - was_passed, lambda: first) if _thinks(call) else ():
        changes[place] = replace(changes.get(place, MessageChange()), thoughtless=True)
    return replace(last, changes=changes, first=first)


def body_of_last(call: PendingCall, last: LastWindow, failure: str) -> Bytes:
    """Render the last sent version with the client's new messages; if the provider would refuse it, the next best
    candidate.
    """
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


def with_breakpoints(call: PendingCall, made: Bytes, chosen: BreakpointChoice) -> tuple[Bytes, BreakpointChoice]:
    """Return the request with the chosen cache breakpoints, and the choice without a tail that could not be moved."""
    if chosen == AS_THE_CLIENT or not call.script.format.cache.takes_ttls:
        return made, replace(chosen, tail=None)
    request, chosen = apply_breakpoints(chosen, made.request(call.envelope))
    if not request.changed:
        return made, chosen
    body = call.envelope.body(request.items, request.fields)
    changed = replace(made, body=body, items=request.items, fields=request.fields, remarked=True)
    return replace(changed, marked=request.marked), chosen


def may_be_bound(call: PendingCall) -> bool:
    """Return whether thinking may be bound to the prompt before."""
    return binds_thinking(call.head, call.script.api)


def _thinks(call: PendingCall) -> bool:
    """Return whether a request holds thinking that may be bound to the prompt before."""
    units = call.script.units
    return bool(units) and units[-1].thought >= 0 and may_be_bound(call)


def _thoughtless(call: PendingCall, original: WireRequest, behind: int | None) -> WireRequest | None:
    """Return the client's request without the thinking after a message.

    None if there is no thinking to remove.
    """
    units = call.script.units
    if behind is None or not _thinks(call) or units[-1].thought <= behind:
        return None
    changes = {one.thought: MessageChange(thoughtless=True) for one in units if one.thought > behind}
    return replace(original, items=tuple(Splicer().items(call.script, changes)), changed=True)


def without_thinking(call: PendingCall) -> bytes:
    """Return the client's request without any thinking, for a conversation with unknown history."""
    original = decode(call.original, call.script.api)
    return fallback("", original, None, _thoughtless(call, original, -1)).request.body()


def answer_start(script: Transcript, since: int) -> int:
    """Return the index of the last assistant item before `since`; later messages may answer its tool calls."""
    units = script.units
    place = min(since, len(units)) - 1
    while place > 0 and units[place].message.role != "assistant":
        place -= 1
    return units[place].first if place > 0 else 0
