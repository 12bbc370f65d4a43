"""The stages of a model call, in their order, from a client's request to the bytes to send.

Rules of this file
------------------
1. A stage takes the call as far as it is made, and returns it with what the stage found or decided. `CallStages` holds
   the order.
2. A sent request is sent again unchanged: if a request's last message ended an earlier request, there is no new
   decision in any process.
3. Everything happens in one turn of the session, up to the checked bytes: two processes on one store decide once, and
   only a journaled request is sent. Any failure takes back everything.
4. A decision and its caller race for the request (`DecisionClaim`).
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final, TypeAlias

from pagein.engine.branch_index import BranchIndex
from pagein.engine.cache import cache_breakpoints, cache_inputs, cache_ttl
from pagein.engine.cache.branch_leases import Leases
from pagein.engine.cache.cache_breakpoints import AS_THE_CLIENT, BreakpointSettings
from pagein.engine.cache.cache_evidence import CacheEvidence
from pagein.engine.cache.cache_inputs import (
    NO_HEAD,
    Fronts,
    Part,
    asks_long,
    economics_for,
    prices_without_cache,
)
from pagein.engine.intake import tool_deferral
from pagein.engine.intake.client_profile import profile_in
from pagein.engine.intake.tool_deferral import DeferralFacts
from pagein.engine.log.backlog import Debt, UndecidedRequest
from pagein.engine.log.journal import Fold, latest_note
from pagein.engine.pooled_stages import POOLED, PooledStages
from pagein.engine.prepared_request import CLOSED_GATE, OPEN_GATE
from pagein.engine.send.call import PendingCall
from pagein.engine.send.outgoing_body import RequestRenderer, with_breakpoints
from pagein.engine.send.request_call import DecisionClaim, RequestCall
from pagein.engine.send.sent_changes import SentHistory
from pagein.engine.window.shown_once import calls_shown_last
from pagein.engine.window_stages import WindowStages, gate_of, moment_of
from pagein.errors import HostError
from pagein.model import journal_notes as notes
from pagein.model.entries import EntryId, MessageEntry, RequestSent
from pagein.model.journal_notes import BreakpointChoice, CacheMarksNote, ClientNote, PassthroughNote, UsageNote
from pagein.policy.economics.rewrite_cost import Economics, is_cold

_MARKED: Final = CacheMarksNote("marked")
_CACHE_USE: Final = (CacheMarksNote, UsageNote, MessageEntry, RequestSent)

Stage: TypeAlias = Callable[[RequestCall], RequestCall]


class CallStages:
    """The stages of a session's requests. Not thread-safe.

    decision: the stages of a new request.
    sending: the stages of every request, retries included.
    """

    def __init__(
        self, window: WindowStages, index: BranchIndex, marks: BreakpointSettings, evidence: CacheEvidence
    ) -> None:
        self._window = window
        self._log = window.log
        self._index = index
        journal = self._log.journal
        self._choices: Fold[BreakpointChoice] = Fold(
            journal, AS_THE_CLIENT, cache_breakpoints.step, "chosen", takes=(BreakpointChoice, RequestSent)
        )
        self.pools = PooledStages(window, index)
        showing = SentHistory(journal, index.heads, index.settled, self.pools.render, POOLED)
        self.renderer = RequestRenderer(
            journal, showing, index.settled, index.places.exchanges, marks=marks, deferral=index.deferral
        )
        self.leases = Leases(journal, evidence, self._log.name)
        self._changes_marks = marks.adds  # the client's cache breakpoints, and their TTLs
        self._fronts = Fronts(journal)
        self._marking: Fold[CacheMarksNote] = Fold(
            journal, _MARKED, latest_note(CacheMarksNote), "marking", takes=(CacheMarksNote,)
        )
        self._caching = Fold(journal, cache_inputs.FROM_THE_START, cache_inputs.step, "caching", takes=_CACHE_USE)
        self.decision: tuple[Stage, ...] = (
            self.resolve_branch,
            self.defer_tools,
            self.append_messages,
            self.set_terms,
            window.enter_previews,
            window.evict_results,
            window.insert_texts,
            window.record_request,
            window.choose_shown_once,
            self.enter_tools,
        )
        self.pooled: tuple[Stage, ...] = (
            self.resolve_branch,
            self.append_messages,
            self.set_terms,
            self.pools.show_window,
        )
        self.sending: tuple[Stage, ...] = (
            self.lay_out_window,
            self.splice_changes,
            self.place_breakpoints,
            self.validate_request,
        )

    def run(self, pending: PendingCall, at: float | None, claim: DecisionClaim | None = None) -> RequestCall:
        """Run a request through its stages, in one turn of the session. Raises GivenUp if the caller no longer waits.

        A retried request is rendered as it was sent, and a request of a client that rephrases its conversation goes
        out as the client sent it.
        """
        with self._log.turn():
            self._log.now = at
            most, units = OPEN_GATE if pending.facts.curates else CLOSED_GATE, pending.script.units
            call = self.find_branch(RequestCall(pending=pending, asked_at=at, most=most))
            sent = self._index.places.request_at(units[-1].name) if call.known == len(units) else None
            if sent is not None:
                stages: tuple[Stage, ...] = (self.find_sent_request, *self.sending)
            elif self._index.reader.is_retold(units, call.known):
                stages = (self.pass_through, self.validate_request)
            else:
                if pending.pool_offers or POOLED in self._log.journal.kinds:
                    call = self.pools.choose_layout(call)
                stages = (*(self.pooled if call.is_pooled else self.decision), *self.sending)
            for stage in stages:
                call = stage(call)
            if claim is not None and call.placed != "passed":
                claim.take()
        self._index.learn()
        return call

    def find_branch(self, call: RequestCall) -> RequestCall:
        """Find the branch that the request continues, and the recall tools of that branch."""
        found = self._index.place(call.pending)
        return replace(call, pending=found.pending, known=found.known, placed=found.placed, parent=found.parent)

    def resolve_branch(self, call: RequestCall) -> RequestCall:
        """Move the session to the branch that the request continues."""
        self._log.move(call.parent)
        return replace(call, parent=self._log.note_compaction()) if call.placed == "compacted" else call

    def defer_tools(self, call: RequestCall) -> RequestCall:
        """Choose the tools that the model must search for, at a conversation's first request."""
        pending, uses = call.pending, self._window.parts.tool_uses
        if uses is None or pending.offers is None or call.most is not OPEN_GATE:
            return call
        leaf = self._log.leaf
        facts = DeferralFacts(
            self._index.settled[leaf] is not None,
            pending.head.model,
            profile_in(pending.envelope),
            lambda: uses.sessions(self._log.name),
            lambda: economics_for(pending.head.model, pending.theirs.fields, pending.script, call.asked_at),
            self._window.parts.counter,
            call.asked_at,
            self._window.parts.floor_paging == "cold",
        )
        note = tool_deferral.note_of(pending.theirs, pending.script, self._index.deferral[leaf], facts)
        if note is None:
            return call
        recall = replace(pending.recall, notes=(*pending.recall.notes, note), deferred=note.deferred)
        return replace(call, pending=pending.with_recall(recall))

    def append_messages(self, call: RequestCall) -> RequestCall:
        """Append the new messages, and journal what changed in the prompt prefix and in the use of the cache."""
        pending, log = call.pending, self._log
        before, marked_before = log.states[call.parent], self._marking[call.parent]
        is_new_prefix = self._fronts.is_new(call.parent, pending.head, pending.script.format)
        self._note_client(pending)
        if pending.facts.guarded and not before.guarded:  # before its messages: the hook looked at the calls in them
            log.note(notes.GuardReportNote())
        for unit in pending.script.units[call.known :]:
            self._window.append(unit.message, name=unit.name)
        marks = cache_inputs.has_marks(pending.theirs.fields, pending.script)
        front = not marks and cache_inputs.marks_front(pending.theirs.fields, pending.script)
        marking = CacheMarksNote("front" if front else "marked" if marks else "unmarked")
        if marking != marked_before:
            log.note(marking)
        changes = self._note_prefix(call)
        for note in pending.recall.notes:
            log.note(note)
        repaired = log.states[log.leaf].draft.ready.repairs != before.draft.repairs
        return replace(call, changes=changes, repaired=repaired, marks=marks, is_new_prefix=is_new_prefix)

    def set_terms(self, call: RequestCall) -> RequestCall:
        """Find the prices and the cache TTL of the request, and what may be decided for it."""
        state, at, pending = self._log.states[self._log.leaf], call.asked_at, call.pending
        gate = call.most
        if gate is OPEN_GATE:
            has_exchanges = bool(self._index.places.exchanges)
            gate = gate_of(pending, self._log.state, has_exchanges=has_exchanges, repaired=call.repaired)
        if gate.begins is not None and self._fronts.may_return(call.parent, pending.head, at):
            gate = replace(gate, way=None, begins=None)  # the old prompt has no tools, and would be written again
        terms = self._terms(call, self._log.leaf)
        economics = self._economics(call, terms)
        if economics is not None and gate.begins is not None:
            economics = replace(economics, reported=self._fronts.last_prompt(call.parent))
        moment = moment_of(state, state.now if at is None else at)
        # a retry has no entry of its own, and its answer tells its time
        if terms is not None and moment.last is not None:
            moment = replace(moment, last=max(moment.last, terms.before.lease.sent or moment.last))
        # nothing was sent before, or the cache entries have expired
        is_unread = state.sent_at is None or (economics is not None and is_cold(moment, economics))
        gate = replace(gate, economics=economics, rewrite=None if terms is None else terms.rewrite)
        return replace(call, at=moment.now, gate=gate, moment=moment, terms=terms, is_unread=is_unread)

    def enter_tools(self, call: RequestCall) -> RequestCall:
        """Add the recall tools that begin with this request's eviction, and settle its cache terms."""
        begun = call.pending
        if begun.recall.begins is not None and call.decided:  # otherwise nothing began
            begun = begun.after_decision(self._index.settled[call.entry])
        is_unread = call.is_unread or begun is not call.pending  # tools come before everything else
        rewritten = call.opened is not None and not call.opened.is_uncached
        terms = call.terms and call.terms.settle(rewritten=rewritten, short=call.is_short)
        return replace(call, pending=begun, terms=terms, is_unread=is_unread)

    def find_sent_request(self, call: RequestCall) -> RequestCall:
        """Find the entry, the cache breakpoints and the cache terms of a retried request."""
        places, journal = self._index.places, self._log.journal
        sent = places.request_at(call.pending.script.units[-1].name)
        chosen = self._choices[places.stand(places.owner(sent or ""))]
        marks = cache_inputs.has_marks(call.pending.theirs.fields, call.pending.script)
        call = replace(call, placed="retried", parent=sent, entry=sent, chosen=chosen, marks=marks)
        state, gained = journal.state_at(sent), None
        if sent is not None and journal.is_loaded:  # a figure for the page is not worth loading a long journal
            gained = state.account.saved - journal.state_at(journal.entry(sent).parent).account.saved
        terms = cache_breakpoints.terms_of(chosen, self._terms(call, sent))
        return replace(call, terms=terms, epoch=state.epoch, gained=gained)

    def pass_through(self, call: RequestCall) -> RequestCall:
        """Leave the client's request unchanged, apart from the recall tools."""
        return replace(call, placed="passed", parent=None, made=self.renderer.pass_through(call.pending))

    def lay_out_window(self, call: RequestCall) -> RequestCall:
        """Compute how the window differs from the client's messages."""
        if call.entry is None:
            raise HostError("a request stands nowhere after it was journaled")
        return replace(call, layout=self.renderer.lay_out(call.pending, call.entry))

    def splice_changes(self, call: RequestCall) -> RequestCall:
        """Splice the differences into the client's own bytes."""
        if call.layout is None:
            raise HostError("a request is spliced before its window is laid out")
        return replace(call, made=self.renderer.render(call.pending, call.layout), layout=None)

    def place_breakpoints(self, call: RequestCall) -> RequestCall:
        """Choose the cache breakpoints of a new request, and put them in."""
        pending, made, chosen, entry = call.pending, call.made, call.chosen, call.entry
        if call.placed != "retried" and entry is not None:
            if call.is_pooled and self._changes_marks:
                view = self.renderer.showing.at(entry, pending.script.units, pending.script.api)
                chosen = self.pools.breakpoints(call, view)
            elif call.opened is not None or call.is_unread:
                anew = cache_breakpoints.Anew(call.opened, call.is_unread)
                chosen = self.renderer.choose_breakpoints(pending, made, entry, anew)
            elif call.changes and call.parent is not None:
                chosen = self._reading_own_entry(call, call.parent)
            call = self._split(call)
            chosen = chosen if call.terms is None else cache_breakpoints.with_terms(chosen, call.terms)
            if call.split is not None:
                chosen = replace(chosen, split=call.split)
            if call.shown_once is not None:
                chosen = replace(chosen, tail=cache_breakpoints.place_in_front(made.items, call.shown_once.calls[0]))
        if chosen != AS_THE_CLIENT:
            made, chosen = with_breakpoints(pending, made, chosen)
        return replace(call, made=made, chosen=chosen, shown_once=call.shown_once if chosen.tail is not None else None)

    def _split(self, call: RequestCall) -> RequestCall:
        """Return the call with the block behind which the short TTL begins, if its request gets both TTLs."""
        terms, is_plain = call.terms, call.opened is None and call.shown_once is None
        if terms is None or not terms.exposable or not is_plain or call.is_pooled or call.changes:
            return call
        share = terms.exposable / terms.behind if terms.behind > 0 else 0.0
        split = cache_breakpoints.place_to_split(call.made.request(call.pending.envelope), share)
        return call if split is None else replace(call, terms=terms.split_at(split[0]), split=split)

    def _reading_own_entry(self, call: RequestCall, parent: EntryId) -> BreakpointChoice:
        """Return a breakpoint where the last request to this model ended in front of results that it showed once."""
        made = call.made
        shown = calls_shown_last(self._log.journal, self._index.heads, parent, call.pending.head.model)
        reads = cache_breakpoints.place_in_front(made.items, shown[0]) if shown and self._changes_marks else None
        wanted = AS_THE_CLIENT if reads is None else BreakpointChoice(reads=reads)
        return cache_breakpoints.choice_that_fits(wanted, made.request(call.pending.envelope))

    def validate_request(self, call: RequestCall) -> RequestCall:
        """Check the final bytes against the provider's rules, and journal their cache breakpoints. Raises HostError."""
        self.renderer.check(call.pending, call.made, decided=call.decided)
        if call.chosen != AS_THE_CLIENT and call.placed != "retried":
            self._log.note(call.chosen)
            self._window.note_shown_once(call)
        return call

    # --- requests that were sent without a decision ---

    def settle(self, debts: Sequence[Debt]) -> None:
        """Journal the backlog. Raises StoreError, or the error of an item; then nothing is journaled."""
        places = self._index.places
        with self._log.turn():
            self._index.learn()
            for debt in debts:
                if isinstance(debt, UndecidedRequest):
                    self._record_undecided(debt)
                else:
                    entry = debt.entry if debt.entry is not None else places.request_at(debt.last)
                    if entry in places.owners:  # otherwise its journal was removed
                        self._index.note_at(places.owner(entry), debt.note)
                self._index.learn()
        self._index.learn()

    def _record_undecided(self, sent: UndecidedRequest) -> None:
        """Record a request that was sent without a decision, at the place of a decided request."""
        script = self._index.reader.read(sent.envelope)
        units, known = script.units, self._index.known_length(script.units)
        head = cache_inputs.head_of(sent.envelope, script, sent.context)
        if 0 < known < len(units):
            pending = PendingCall.unchanged(script, sent.envelope, sent.body, head)
            call = self.find_branch(RequestCall(pending=pending, asked_at=sent.at, most=CLOSED_GATE))
            call = self.pools.choose_layout(call)
            for stage in self.pooled if call.is_pooled else self.decision[:-1]:
                call = stage(call)
            self._index.learn()
        name = units[-1].name if units else ""
        if known and not sent.is_last and self._index.places.request_at(name) is not None:
            self._index.note_at(name, PassthroughNote())

    def snapshot_values(self, sent: EntryId) -> Mapping[str, Any] | None:
        """Return values for a later process to continue after a request, besides the states of folds; None if
        unavailable.
        """
        shown = None if self.pools.at(sent) is not None else self.renderer.showing.snapshot_values(sent)
        known = self._index.snapshot_values(sent)
        return None if shown is None or known is None else {**known, "shown": shown}

    # --- what the stages journal and look up ---

    def _note_client(self, pending: PendingCall) -> None:
        """Journal a new client profile. A request without tools does not show the profile."""
        profile = profile_in(pending.envelope, pending.script)
        if profile is not None and self._window.rereads.states[self._log.leaf].profile is not profile:
            self._log.note(ClientNote(profile.name))

    def _note_prefix(self, call: RequestCall) -> tuple[Part, ...]:
        """Journal a changed prompt prefix, and return the parts that the client changed."""
        pending, before, counter = call.pending, self._index.heads[call.parent], self._window.parts.counter
        if before != (head := pending.head):
            for note in cache_inputs.notes_of_change(before, head, pending.envelope, pending.script, counter):
                self._log.note(note)
        changed = () if before in (head, NO_HEAD) else cache_inputs.changed_parts(before, head)
        return (*changed, "messages") if call.placed == "forked" else changed

    def _terms(self, call: RequestCall, here: EntryId | None) -> cache_ttl.TtlTerms | None:
        """Choose the cache terms of a request; None if left to the client."""
        pending, script, head, parent = call.pending, call.pending.script, call.pending.head, call.parent
        if (
            pending.lasting is None
            or not self._changes_marks
            or not script.format.cache.takes_ttls
            or self._prices_without_cache(call) is not None
        ):
            return None
        long = asks_long(pending.envelope.fields, script)
        # also on return to an earlier prompt prefix: each has its own cache entries
        switched = cache_inputs.is_switched(self._index.heads[parent], head)
        last = self._choices[parent]
        asking = cache_ttl.TtlQuery(
            head.model,
            long,
            pending.lasting,
            last.short,
            last.long or last.split is not None,
            switched,
            pending.facts.documented,
        )
        moment = moment_of(self._log.journal.state_at(here), call.asked_at)
        return self.leases.terms(parent, here, asking, moment, anew=call.placed in ("new", "compacted"))

    def _economics(self, call: RequestCall, terms: cache_ttl.TtlTerms | None) -> Economics | None:
        """Return the prices of a call; None for a model without a price."""
        if (found := self._prices_without_cache(call)) is not None:
            return found
        pending = call.pending
        found = economics_for(pending.head.model, pending.envelope.fields, pending.script, call.asked_at)
        if terms is not None and found is not None:
            found = cache_ttl.economics(found, terms)
        if found is not None and pending.lasting is not None and not pending.facts.documented:
            found = self.leases.with_sure_reads(found, call.parent, pending.head, call.asked_at)
        return found and (replace(found, void=True) if call.is_new_prefix else found)

    def _prices_without_cache(self, call: RequestCall) -> Economics | None:
        """Return the prices of a call with an uncached conversation, or None."""
        theirs, script = call.pending.theirs, call.pending.script
        if call.marks:
            return None
        front, caching = cache_inputs.marks_front(theirs.fields, script), self._caching[call.parent]
        return prices_without_cache(call.pending.head.model, call.asked_at, caching, front=front)
