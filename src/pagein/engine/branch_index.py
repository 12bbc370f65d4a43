"""Find the branch that a request continues, and the places of messages and requests in the journal.

Rules of this file
------------------
1. A message is known by its name, which covers everything before it (`message_chain`). The known messages of a request
   show where its branch continues.
2. A lost message with a bridge is put back, before a decision, when a request contains it again. If that is impossible,
   the conversation continues after the last message before it, and later messages are recorded anew.
3. The entries after a message, up to the next message (decisions, requests, recalls), belong to the message; the last of
   them is the place where the conversation continues. A bridge for a lost entry counts as a message, because later
   messages follow it. A compaction belongs to the messages after it: the messages before it may continue as if there
   were no compaction. A conversation also continues after a break (`BrokenNote`): messages after the break are added
   again.
4. The index reads entries alone, so every process sees the same.
"""

import contextlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from pagein.engine.cache.cache_inputs import NO_HEAD, AnsweredRequest, RequestTrail, answered_requests
from pagein.engine.cache.cache_minimum import is_below, is_front_stored, is_front_uncached
from pagein.engine.intake import recall_tools
from pagein.engine.intake.message_chain import RequestReader, Transcript, Unit
from pagein.engine.log.journal import Fold, latest_note
from pagein.engine.message_index import MessageIndex
from pagein.engine.prepared_request import Placed
from pagein.engine.send.call import PendingCall, SentPlace
from pagein.engine.send.outgoing_body import may_be_bound
from pagein.engine.send.request_call import RequestCall
from pagein.engine.window_stages import WindowStages
from pagein.errors import HostError, StoreError
from pagein.model.entries import EntryId, RequestSent
from pagein.model.journal_notes import (
    BrokenNote,
    DeferredToolsNote,
    Note,
    PassthroughNote,
    PrefixDigests,
    RestoredMessagesNote,
    ToolsLaterNote,
    ToolsNote,
)
from pagein.model.memory_notes import AnswerNote
from pagein.providers.wire.formats import format_named
from pagein.providers.wire.request_body import Envelope

NOWHERE: Final = "the request stands in no session"


@dataclass(frozen=True, slots=True)
class Placement:
    """The place of a request in its session.

    pending: the request, with the recall tools of its branch.
    known: number of leading messages that the journal has.
    placed: relation to earlier requests.
    parent: the entry that the request continues.
    """

    pending: PendingCall
    known: int
    placed: Placed
    parent: EntryId | None


class BranchIndex:
    """The branches of a session, as requests show them. Not thread-safe.

    places: the messages of the journal and their places.
    heads: the prompt prefix at each entry.
    settled: the chosen recall tools at each entry.
    deferral: the deferred tools at each entry; None if there was no choice.
    trails: the last answered request at each entry.
    reader: reads the messages of requests.
    """

    def __init__(self, window: WindowStages) -> None:
        self._log = window.log
        self._window = window
        journal = self._log.journal
        kept = {} if journal.restored is None else journal.restored.states
        self.places = MessageIndex.restore_values(kept["places"]) if "places" in kept else MessageIndex()
        self.heads = Fold(journal, NO_HEAD, latest_note(PrefixDigests), "heads", takes=(PrefixDigests,))
        self.settled: Fold[recall_tools.Settled] = Fold(
            journal, None, recall_tools.step, "settled", takes=(ToolsNote, ToolsLaterNote, RequestSent)
        )
        self.deferral: Fold[DeferredToolsNote | None] = Fold(
            journal, None, latest_note(DeferredToolsNote), "deferral", takes=(DeferredToolsNote,)
        )
        self.trails = answered_requests(journal)
        self.reader = RequestReader(kept.get("messages"), self.places.breaks)
        self._learned = -1
        self._newest: dict[tuple[str, str], EntryId] = kept.get("conversations", {})
        self._latest: tuple[PrefixDigests, tuple[str, str]] | None = None  # prompt prefix, and its conversation
        self._turn, self._before_turn = 0, dict(self._newest)
        journal.on_take_back(self._take_back)

    def snapshot_values(self, sent: EntryId) -> Mapping[str, Any] | None:
        """Return values for a later process to continue after a request, besides the states of folds; None if
        unavailable.
        """
        messages = self.reader.snapshot_values(self.places.owner(sent))
        if messages is None:
            return None
        return {"places": self.places.snapshot_values(), "conversations": dict(self._newest), "messages": messages}

    def learn(self) -> None:
        """Add new journal entries to the message index."""
        if self._learned == self._log.added:
            return
        if self._turn != self._log.turns:  # what a turn adds may be taken back
            self._turn, self._before_turn = self._log.turns, dict(self._newest)
            self.places.begin_turn()
        self._learned = self._log.added
        fresh = self._log.journal.since(len(self.places.owners))
        self.places.learn(fresh)
        for entry in fresh:
            if isinstance(entry.body, RequestSent):
                head = self.heads[entry.id]
                if self._latest is None or self._latest[0] is not head:
                    self._latest = head, head.conversation
                self._newest[self._latest[1]] = self.places.owners[entry.id]

    def _take_back(self, gone: Sequence[EntryId]) -> None:
        """Unlearn what was learned in a turn that failed."""
        if self._turn == self._log.turns and not all(one in self._log.journal for one in gone):
            self.places.take_back()
            self._newest, self._latest, self._learned = dict(self._before_turn), None, -1

    def place(self, pending: PendingCall) -> "Placement":
        """Find the place of a request among the entries so far, and the recall tools of its branch."""
        self.learn()
        units = pending.script.units
        known = self.known_length(units)
        placed, parent = self.parent(units, known, pending.head)
        return Placement(self.with_offer(pending, placed, parent), known, placed, parent)

    def known_length(self, units: Sequence[Unit]) -> int:
        """Return the number of known leading messages."""
        stands = self.places.stands
        return next((count for count in range(len(units), 0, -1) if units[count - 1].name in stands), 0)

    def last_sent(self, units: Sequence[Unit]) -> SentPlace | None:
        """Return the place of the last request sent with leading messages of these; None if no request was sent."""
        for count in range(len(units), 0, -1):
            name = units[count - 1].name
            entry = self.places.request_at(name)
            if entry is not None:
                return SentPlace(entry, self.places.stand(name), count)
        return None

    def parent(self, units: Sequence[Unit], known: int, head: PrefixDigests) -> tuple[Placed, EntryId | None]:
        """Return the relation of a request to earlier requests, and the continued entry.

        known: number of known leading messages.
        """
        if known:
            name = units[known - 1].name
            is_forked = name in self.places.going_on and name not in self.places.breaks
            return ("forked" if is_forked else "continued"), self.places.stands[name]
        last = self._newest.get(head.conversation)
        if last is not None:
            return "compacted", self.places.stand(last)
        return "new", self.places.root

    def answered_before(self, call: RequestCall) -> AnsweredRequest | None:
        """Return the last answered request that a call continues; None without one.

        Retries and forks lead to older entries, which a snapshot spares.
        """
        if call.entry is None or call.placed != "continued":
            return None
        return self.trails[self._log.journal.entry(call.entry).parent].answered

    def with_offer(self, call: PendingCall, placed: Placed, parent: EntryId | None) -> PendingCall:
        """Return the call with the recall tools and the deferred tools of its branch.

        placed: the request's relation to earlier requests. parent: the entry that the request continues.
        """
        if call.offers is None:
            return call
        settled = self.settled[parent]
        deferral = self.deferral[parent]
        deferred = () if deferral is None else deferral.deferred
        if call.recall.settled == settled is not None and call.recall.deferred == deferred:
            return call
        offers = call.offers
        # thinking made with recall tools is refused without them
        if not offers and isinstance(settled, tuple) and may_be_bound(call):
            offers = settled
        trail, model = self.trails[parent], call.head.model
        recall = recall_tools.recall_of(
            call.theirs,
            call.script,
            offers,
            settled,
            may_be_cached=lambda: _may_be_cached(call, trail),
            leaves=lambda: (
                placed == "compacted"
                and is_front_uncached(call.theirs, call.script, trail, model)
                and not may_be_bound(call)
            ),
            is_stored=lambda: is_front_stored(call.theirs, call.script, model),
        )
        if deferred:
            recall = replace(recall, deferred=deferred)
        elif not recall.tools and call.envelope is call.theirs:
            return replace(call, recall=recall)
        return call.with_recall(recall)

    def restore_lost(self, script: Transcript, envelope: Envelope) -> Transcript:
        """Learn the new entries, and return the messages of a request after lost messages were put back or recorded
        anew. Raises StoreError.

        script: the messages as read.
        """
        self.learn()
        if not self.places.lost_messages:
            return script
        script = self.reader.read(envelope)  # read again, because newly read entries may change names
        names = [one.name for one in script.units[: self.known_length(script.units)]]
        lost = self.places.lost(names)
        if lost:
            with self._log.turn():
                here = self._log.leaf
                for place, parent in lost:
                    self._log.move(parent)
                    self._window.append(script.units[place].message, name=names[place])
                self._log.move(here)  # the entry from which other processes continue
                self._log.note(RestoredMessagesNote(len(lost)))
                self.learn()  # first, so that the marks are taken back with the turn
                for place, _ in lost:
                    self.places.mark_restored(names[place])
        broken = self.places.first_lost(names)
        if broken is not None:
            with self._log.turn():
                self._log.move(self.places.stand(names[broken - 1]) if broken else self.places.root)
                self._log.note(BrokenNote(len(names) - broken))
        self.learn()
        return script if broken is None else self.reader.read(envelope)

    def note_behind(self, entry: EntryId, note: Note) -> None:
        """Journal a fact after a request."""
        with self._log.turn():
            self.learn()
            self.note_at(self.places.owner(entry), note)
        self.learn()

    def note_at(self, owner: EntryId, note: Note) -> None:
        """Journal a fact after a message and its entries; an answer only if no message brought the answer already."""
        if isinstance(note, AnswerNote) and owner in self.places.going_on:
            return
        self._log.move(self.places.stand(owner))
        self._log.note(note)

    def stand_behind(self, entry: EntryId | None) -> None:
        """Move the session to the place after a request."""
        if entry is None:
            raise HostError(NOWHERE)
        with self._log.turn():
            self.learn()
            self._log.move(self.places.stand(self.places.owner(entry)))

    def note_passthrough(self, call: PendingCall) -> None:
        """Record that this retry was forwarded unmodified, so the reply is not credited to pagein's version."""
        name = call.script.units[-1].name if call.script.units else ""
        sent = self.places.request_at(name)
        if sent is not None and may_be_bound(call):
            with contextlib.suppress(StoreError):
                self.note_behind(sent, PassthroughNote())


def _may_be_cached(call: PendingCall, trail: RequestTrail) -> bool:
    """Return whether the provider may have cached anything that a request continues."""
    reports_writes = format_named(call.theirs.api).cache.takes_ttls
    if reports_writes and not trail.may_be_cached and not trail.is_open:
        return False
    usage = None if trail.is_open or trail.answered is None else trail.answered.usage
    return usage is None or usage.read + usage.written > 0 or not is_below(call.head.model, usage.prompt)
