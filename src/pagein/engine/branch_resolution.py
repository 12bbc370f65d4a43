"""Resolve the branch of a request, decide evictions, and render the bytes.

Rules of this file
------------------
1. A message is known by its name, which covers everything before it (`message_chain`). The known messages of a request
   show where its branch continues.
2. A sent request is sent again unchanged: if a request's last message ended an earlier request, there is no new
   decision in any process.
3. Everything happens in one turn of the session, up to the checked bytes: two processes on one store decide once, and
   only a journaled request is sent. Any failure takes back everything.
4. A lost message with a bridge is put back, before a decision, when a request contains it again. If that is impossible,
   the conversation continues after the last message before it, and later messages are recorded anew.
"""

import contextlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from pagein.engine.cache import cache_breakpoints, cache_ttl, cache_use, prompt_prefix
from pagein.engine.cache.prompt_prefix import NO_HEAD, Fronts, Part, head_of, profile_in
from pagein.engine.cache.request_prices import asks_long, economics_for, prices_without_cache
from pagein.engine.conversation import Talk
from pagein.engine.decision_gate import gate_of
from pagein.engine.intake import recall_tools
from pagein.engine.intake.message_chain import Transcript, Unit
from pagein.engine.intake.request_reader import RequestReader
from pagein.engine.log.backlog import Debt, UndecidedRequest
from pagein.engine.log.folds import Fold
from pagein.engine.log.message_index import MessageIndex
from pagein.engine.log.state import State
from pagein.engine.prepared_request import CLOSED_GATE, Placed, WindowRequest
from pagein.engine.send.call import PendingCall
from pagein.engine.send.claim import DecisionClaim
from pagein.engine.send.outgoing_body import Bytes, RequestRenderer, may_be_bound
from pagein.engine.window.decision_inputs import moment_of
from pagein.errors import HostError, StoreError
from pagein.model.entries import EntryId, RequestSent
from pagein.model.journal_notes import (
    BreakpointChoice,
    BrokenNote,
    ClientNote,
    Note,
    PassthroughNote,
    PrefixDigests,
    RestoredMessagesNote,
)
from pagein.policy.clients.profile import Profile
from pagein.policy.economics.rewrite_cost import Economics, is_cold
from pagein.providers.wire.request_body import Envelope

NOWHERE: Final = "the request stands in no session"
"""Kind of the note that lost messages replaced their bridges."""


@dataclass(frozen=True, slots=True)
class ResolvedRequest:
    """A request with branch and decision.

    call: the call to send.
    placed: relation to earlier requests.
    shared: number of known messages.
    entry: entry of the request.
    made: its bytes.
    chosen: its cache breakpoints.
    terms: its cache terms; None if left to the client.
    prepared: the decision; None for a retry.
    changes: parts that the client changed.
    repaired: True if the request had to be repaired.
    """

    call: PendingCall
    placed: Placed
    shared: int
    entry: EntryId
    made: Bytes
    chosen: BreakpointChoice = cache_breakpoints.AS_THE_CLIENT
    terms: cache_ttl.CacheTerms | None = None
    prepared: WindowRequest | None = None
    changes: tuple[Part, ...] = ()
    repaired: bool = False


class BranchResolver:
    """Resolve the requests of a session. Not thread-safe. `Traffic` explains `marks`."""

    def __init__(self, talk: Talk, *, marks: cache_breakpoints.BreakpointSettings) -> None:
        self._talk = talk
        kept = {} if talk.journal.restored is None else talk.journal.restored.states
        self.places = MessageIndex.restore_values(kept["places"]) if "places" in kept else MessageIndex()
        self.heads = Fold(talk.journal, NO_HEAD, prompt_prefix.step, "heads")
        self._settled: Fold[recall_tools.Settled] = Fold(talk.journal, None, recall_tools.step, "settled")
        self._chosen: Fold[BreakpointChoice] = Fold(
            talk.journal, cache_breakpoints.AS_THE_CLIENT, cache_breakpoints.step, "chosen"
        )
        self._newest: dict[tuple[str, str], EntryId] = kept.get("conversations", {})
        self.listening = RequestReader(kept.get("messages"), self.places.breaks)
        self.outgoing = RequestRenderer(talk.journal, self.heads, self._settled, self.places, marks=marks)
        self.leases = cache_ttl.Leases(talk.journal)
        self._fronts = Fronts(talk.journal)
        self._caching = Fold(talk.journal, cache_use.FROM_THE_START, cache_use.step, "caching")

    def snapshot_values(self, sent: EntryId) -> Mapping[str, Any] | None:
        """Return values for a later process to continue after a request, besides the states of folds; None if
        unavailable.
        """
        shown = self.outgoing.showing.snapshot_values(sent)
        messages = self.listening.snapshot_values(self.places.owner(sent))
        if shown is None or messages is None:
            return None
        return {
            "places": self.places.snapshot_values(),
            "conversations": dict(self._newest),
            "messages": messages,
            "shown": shown,
        }

    def resolve(
        self, call: PendingCall, at: float | None, claim: DecisionClaim | None = None
    ) -> ResolvedRequest | None:
        """Resolve and decide a request; None for passthrough. Raises GivenUp if the caller no longer waits."""
        units = call.script.units
        with self._talk.turn():
            self.learn()
            known = self.known_length(units)
            call = self.resolve_offer(call, known)
            sent = self.places.request_at(units[-1].name) if known == len(units) else None
            if sent is not None:
                stood = self._again(call, known, sent, at)
            elif self.listening.is_retold(units, known):
                self.outgoing.hold(call, self.outgoing.pass_through(call), decided=False)
                return None
            else:
                stood = self._decide(call, known, at)
            if claim is not None:
                claim.keep()
        self.learn()
        return stood

    def restore_lost(self, script: Transcript, envelope: Envelope) -> Transcript:
        """Return the messages of a request after lost messages were put back or recorded anew. Raises StoreError.

        script: the messages as read.
        """
        if not self.places.has_lost:
            return script
        script = self.listening.read(envelope)  # read again, because newly read entries may change names
        names = [one.name for one in script.units[: self.known_length(script.units)]]
        lost = self.places.lost(names)
        if lost:
            with self._talk.turn():
                here = self._talk.leaf
                for place, parent in lost:
                    self._talk.move(parent)
                    self._talk.append(script.units[place].message, name=names[place])
                self._talk.move(here)  # the entry from which other processes continue
                self._talk.note(RestoredMessagesNote(len(lost)))
            for place, _ in lost:
                self.places.mark_restored(names[place])
        broken = self.places.first_lost(names)
        if broken is not None:
            with self._talk.turn():
                self._talk.move(self.places.stand(names[broken - 1]) if broken else self.places.root)
                self._talk.note(BrokenNote(len(names) - broken))
        self.learn()
        return script if broken is None else self.listening.read(envelope)

    def _again(self, call: PendingCall, known: int, sent: EntryId, at: float | None) -> ResolvedRequest:
        """Render a retried request as sent before, with the same cache breakpoints."""
        chosen = self._chosen.at(self.places.stand(self.places.owner(sent)))
        made = self.outgoing.mark_breakpoints(call, self.outgoing.render(call, sent), chosen)
        self.outgoing.hold(call, made, decided=False)
        return ResolvedRequest(
            call,
            "retried",
            known,
            sent,
            made,
            chosen,
            cache_breakpoints.terms_of(chosen, self._terms(call, sent, sent, at, "retried")),
        )

    def _decide(self, call: PendingCall, known: int, at: float | None) -> ResolvedRequest:
        """Decide a new request."""
        talk = self._talk
        placed, parent = self._parent(call.script.units, known, call.head)
        talk.move(parent)
        if placed == "compacted":
            parent = talk.note_compaction()
        before = self._talk.journal.state_at(parent)
        changes = self._append_news(call, known, parent)
        for note in call.recall.notes:
            talk.note(note)
        repaired = self._here().draft.ready().repairs != before.draft.repairs
        gate = gate_of(call, self._here, has_exchanges=bool(self.places.exchanges), repaired=repaired)
        terms = self._terms(call, parent, talk.leaf, at, placed)
        economics = self._economics(call, parent, terms, at)
        is_unread = _is_unread(self._here(), economics, at)
        prepared = talk.advance(at, replace(gate, economics=economics))
        entry = talk.leaf
        if entry is None:
            raise HostError("a session stands nowhere after it advanced")
        begun = call.after_decision(self._settled.at(entry))
        # tools come before everything else
        anew = cache_breakpoints.Anew(prepared.opened, is_unread or begun is not call)
        terms = terms if terms is None else terms.settle(rewritten=prepared.opened is not None)
        call = begun
        made, chosen = self._make_bytes(call, entry, terms, anew, decided=bool(prepared.opened or prepared.previewed))
        parts: tuple[Part, ...] = (*changes, "messages") if placed == "forked" else changes
        return ResolvedRequest(call, placed, known, entry, made, chosen, terms, prepared, parts, repaired)

    def _append_news(self, call: PendingCall, known: int, parent: EntryId | None) -> tuple[Part, ...]:
        """Append the new messages of a request, and return the prompt prefix parts that the client changed."""
        self._note_client(profile_in(call.envelope))
        for unit in call.script.units[known:]:
            self._talk.append(unit.message, name=unit.name)
        marks = cache_use.has_marks(call.theirs.fields, call.script)
        front = not marks and cache_use.marks_front(call.theirs.fields, call.script)
        marking = cache_use.note_before_request(self._caching.at(parent), marks=marks, front=front)
        if marking is not None:
            self._talk.note(marking)
        return self._note_prefix(call.head, parent)

    def _make_bytes(
        self,
        call: PendingCall,
        entry: EntryId,
        terms: cache_ttl.CacheTerms | None,
        anew: cache_breakpoints.Anew,
        *,
        decided: bool,
    ) -> tuple[Bytes, BreakpointChoice]:
        """Render and check a request, and journal its cache breakpoints."""
        made = self.outgoing.render(call, entry)
        chosen = cache_breakpoints.with_terms(self.outgoing.chosen(call, made, entry, anew), terms)
        made = self.outgoing.mark_breakpoints(call, made, chosen)
        self.outgoing.hold(call, made, decided=decided)
        if chosen != cache_breakpoints.AS_THE_CLIENT:
            self._talk.note(chosen)
        return made, chosen

    def _economics(
        self, call: PendingCall, parent: EntryId | None, terms: cache_ttl.CacheTerms | None, at: float | None
    ) -> Economics | None:
        """Return the prices of a call; None for a model without a price."""
        found = self._prices_without_cache(call, parent, at)
        if found is not None:
            return found
        found = economics_for(call.head.model, call.envelope.fields, call.script, at)
        if terms is not None and found is not None:
            found = cache_ttl.economics(found, terms)
        if found is not None and self._fronts.is_new(parent, call.head, call.script.api):
            found = replace(found, void=True)
        return found

    def _prices_without_cache(self, call: PendingCall, parent: EntryId | None, at: float | None) -> Economics | None:
        """Return the prices of a call with an uncached conversation, or None."""
        if cache_use.has_marks(call.theirs.fields, call.script):
            return None
        front = cache_use.marks_front(call.theirs.fields, call.script)
        return prices_without_cache(call.head.model, at, self._caching.at(parent), front=front)

    def _terms(
        self, call: PendingCall, parent: EntryId | None, here: EntryId | None, at: float | None, placed: Placed
    ) -> cache_ttl.CacheTerms | None:
        """Choose the cache terms of a request; None if left to the client."""
        script, model = call.script, call.head.model
        if (
            call.lasting <= 0
            or not script.format.cache.takes_ttls
            or self._prices_without_cache(call, parent, at) is not None
        ):
            return None
        long = asks_long(call.envelope.fields, script)
        # also on return to an earlier prompt prefix: each has its own cache entries
        switched = prompt_prefix.is_switched(self.heads.at(parent), call.head)
        asking = cache_ttl.TtlQuery(model, long, call.lasting, self._chosen.at(parent).short, switched)
        return self.leases.terms(parent, here, asking, at, anew=placed in ("new", "compacted"))

    def known_length(self, units: Sequence[Unit]) -> int:
        """Return the number of known leading messages."""
        return next((count for count in range(len(units), 0, -1) if units[count - 1].name in self.places), 0)

    def _parent(self, units: Sequence[Unit], known: int, head: PrefixDigests) -> tuple[Placed, EntryId | None]:
        if known:
            name = units[known - 1].name
            is_forked = self.places.goes_on(name) and name not in self.places.breaks
            return ("forked" if is_forked else "continued"), self.places.stand(name)
        last = self._newest.get(head.conversation)
        if last is not None:
            return "compacted", self.places.stand(last)
        return "new", self.places.root

    def _note_prefix(self, head: PrefixDigests, parent: EntryId | None) -> tuple[Part, ...]:
        """Journal a changed prompt prefix, and return the parts that the client changed."""
        before = self.heads.at(parent)
        if before == head:
            return ()
        self._talk.note(head)
        return () if before == NO_HEAD else prompt_prefix.changed_parts(before, head)

    def resolve_offer(self, call: PendingCall, known: int) -> PendingCall:
        """Return the call with the recall tools of its branch.

        known: number of known leading messages.
        """
        if call.offers is None:
            return call
        _, parent = self._parent(call.script.units, known, call.head)
        settled = self._settled.at(parent)
        if call.recall.settled == settled is not None:
            return call
        offers = call.offers
        if (
            not offers and isinstance(settled, tuple) and may_be_bound(call)
        ):  # thinking made with recall tools is refused without them
            offers = settled
        return call.with_recall(recall_tools.recall_of(call.theirs, call.script, offers, settled))

    def _note_client(self, profile: Profile | None) -> None:
        """Journal a new client profile. A request without tools does not show the profile."""
        if profile is not None and self._talk.client is not profile:
            self._talk.note(ClientNote(profile.name))

    def learn(self) -> None:
        """Add new journal entries to the message index."""
        fresh = self._talk.journal.newest(len(self._talk.journal) - len(self.places))
        self.places.learn(fresh)
        for entry in fresh:
            if isinstance(entry.body, RequestSent):
                self._newest[self.heads.at(entry.id).conversation] = self.places.owner(entry.id)

    def note_behind(self, entry: EntryId, note: Note) -> None:
        """Journal a fact after a request."""
        with self._talk.turn():
            self.learn()
            self._note_at(self.places.owner(entry), note)
        self.learn()

    def stand_behind(self, entry: EntryId | None) -> None:
        """Move the session to the place after a request."""
        if entry is None:
            raise HostError(NOWHERE)
        with self._talk.turn():
            self.learn()
            self._talk.move(self.places.stand(self.places.owner(entry)))

    def note_passthrough(self, call: PendingCall) -> None:
        """Record that this retry was forwarded unmodified, so the reply is not credited to pagein's version."""
        name = call.script.units[-1].name if call.script.units else ""
        sent = self.places.request_at(name)
        if sent is not None and may_be_bound(call):
            with contextlib.suppress(StoreError):
                self.note_behind(sent, PassthroughNote())

    def settle(self, debts: Sequence[Debt]) -> None:
        """Journal the backlog. Raises StoreError, or the error of an item; then nothing is journaled."""
        with self._talk.turn():
            self.learn()
            for debt in debts:
                if isinstance(debt, UndecidedRequest):
                    self._went_out(debt)
                else:
                    entry = debt.entry if debt.entry is not None else self.places.request_at(debt.last)
                    if entry is not None:
                        self._note_at(self.places.owner(entry), debt.note)
                self.learn()
        self.learn()

    def _went_out(self, sent: UndecidedRequest) -> None:
        """Record a request that was sent without a decision, at the place of a decided request."""
        script = self.listening.read(sent.envelope)
        units, known = script.units, self.known_length(script.units)
        head = head_of(sent.envelope, script, sent.context)
        call = PendingCall(script, sent.envelope, sent.body, head, None, sent.envelope, sent.body)
        if 0 < known < len(units):
            _, parent = self._parent(units, known, head)
            self._talk.move(parent)
            self._append_news(call, known, parent)
            economics = self._economics(call, parent, None, sent.at)
            self._talk.advance(sent.at, replace(CLOSED_GATE, economics=economics))
            self.learn()
        if known and not sent.is_last and self.places.request_at(units[-1].name) is not None:
            self._note_at(units[-1].name, PassthroughNote())

    def _note_at(self, owner: EntryId, note: Note) -> None:
        self._talk.move(self.places.stand(owner))
        self._talk.note(note)

    def _here(self) -> State:
        return self._talk.journal.state_at(self._talk.leaf)


def _is_unread(state: State, economics: Economics | None, at: float | None) -> bool:
    """Return whether the cache holds nothing of the next request: no earlier request, or expired entries."""
    if state.sent_at is None:
        return True
    return economics is not None and is_cold(moment_of(state, state.now if at is None else at), economics)
