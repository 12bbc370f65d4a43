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
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from pagein.engine.cache.cache_inputs import NO_HEAD, AnsweredRequest, RequestTrail, answered_requests
from pagein.engine.cache.cache_minimum import is_below, is_surely_stored, may_be_lifted
from pagein.engine.intake import recall_tools
from pagein.engine.intake.message_chain import RequestReader, Transcript, Unit
from pagein.engine.log.journal import Fold, latest_note
from pagein.engine.prepared_request import Placed
from pagein.engine.send.call import PendingCall, SentPlace
from pagein.engine.send.outgoing_body import may_be_bound
from pagein.engine.send.request_call import RequestCall
from pagein.engine.window_stages import WindowStages
from pagein.errors import HostError, StoreError
from pagein.model.entries import CompactionEntry, Entry, EntryId, MessageEntry, NoteEntry, RequestSent, is_bridge
from pagein.model.journal_notes import (
    BrokenNote,
    DeferredToolsNote,
    ExchangeNote,
    Note,
    PassthroughNote,
    PrefixDigests,
    RestoredMessagesNote,
    ToolsLaterNote,
    ToolsNote,
)
from pagein.model.memory_notes import AnswerNote
from pagein.model.note_forms import kind_of
from pagein.providers.wire.formats import format_named
from pagein.providers.wire.request_body import Envelope

NOWHERE: Final = "the request stands in no session"
_ROOT: EntryId = ""
_PLACED: Final = (kind_of(ExchangeNote), kind_of(BrokenNote))


class MessageIndex:
    """The messages of one journal and their places, kept up to date by `learn`.

    stands: the entry where the conversation continues after each message. Read it only, as the others.
    owners: the message that each entry belongs to; "" before the first message.
    lost_messages: the parents of lost messages.
    going_on: messages that another message follows.
    """

    def __init__(self) -> None:
        self.owners: dict[EntryId, EntryId] = {}
        self.stands: dict[EntryId, EntryId] = {}
        self._sent: dict[EntryId, EntryId] = {}
        self.going_on: set[EntryId] = set()
        self.lost_messages: dict[EntryId, EntryId | None] = {}
        self.exchanges: dict[EntryId, list[ExchangeNote]] = {}
        self.breaks: dict[EntryId, int] = {}

    @classmethod
    def restore_values(cls, kept: Mapping[str, Any]) -> "MessageIndex":
        """Rebuild an index from `snapshot_values`."""
        places = cls()
        places.owners, places.stands, places._sent = kept["owners"], kept["stands"], kept["sent"]
        places.going_on, places.lost_messages = set(kept["going_on"]), kept["lost"]
        places.exchanges, places.breaks = kept["exchanges"], kept["breaks"]
        return places

    def snapshot_values(self) -> dict[str, Any]:
        """Return the index as plain values, for `restore_values` and `return_to`."""
        return {
            "owners": dict(self.owners),
            "stands": dict(self.stands),
            "sent": dict(self._sent),
            "going_on": list(self.going_on),
            "lost": dict(self.lost_messages),
            "breaks": dict(self.breaks),
            "exchanges": {name: list(records) for name, records in self.exchanges.items()},
        }

    def return_to(self, kept: Mapping[str, Any]) -> None:
        """Be again as `snapshot_values` told, in place, because others read these mappings."""
        for name, before in vars(self.restore_values(kept)).items():
            vars(self)[name].clear()
            vars(self)[name].update(before)

    def learn(self, entries: Iterable[Entry]) -> None:
        """Add entries, parents first. Known entries change nothing."""
        for entry in entries:
            if entry.id in self.owners:
                continue
            parent = _ROOT if entry.parent is None else self.owners.get(entry.parent, _ROOT)
            is_message, is_compaction = isinstance(entry.body, MessageEntry), isinstance(entry.body, CompactionEntry)
            owner = self.owners[entry.id] = entry.id if is_message or is_compaction else parent
            if is_message:
                self.going_on.add(parent)
            self.stands[owner] = entry.id
            if is_compaction and is_bridge(entry):
                self.lost_messages[entry.id] = entry.parent
            match entry.body:
                case RequestSent():
                    self._sent[owner] = entry.id
                case NoteEntry(kind=kind) if kind not in _PLACED:
                    continue
                case NoteEntry(note=ExchangeNote() as exchange):
                    self.exchanges.setdefault(owner, []).append(exchange)
                case NoteEntry(note=BrokenNote()):
                    self.breaks[owner] = self.breaks.get(owner, 0) + 1

    def lost(self, names: Sequence[EntryId]) -> list[tuple[int, EntryId | None]]:
        """Return the lost ones among successive messages, as number and parent entry.

        Omits messages whose parent is unknown because the entries before were lost too.
        """
        found = []
        for place, name in enumerate(names):
            parent = self.lost_messages.get(name)
            owner = _ROOT if parent is None else self.owners[parent]
            if name in self.lost_messages and owner == (names[place - 1] if place else _ROOT):
                found.append((place, parent))
        return found

    def first_lost(self, names: Sequence[EntryId]) -> int | None:
        """Return the number of the first lost message, or None."""
        return next(
            (place for place, name in enumerate(names) if name in self.lost_messages or name not in self.stands), None
        )

    def mark_restored(self, name: EntryId) -> None:
        """Record that the lost message of this name is back."""
        parent = self.lost_messages.pop(name)
        self.going_on.add(_ROOT if parent is None else self.owners[parent])

    def __contains__(self, name: EntryId) -> bool:
        """Return whether the journal has a message of this name."""
        return name in self.stands

    @property
    def root(self) -> EntryId | None:
        """The entry where a conversation begins: after notes before any message."""
        return self.stands.get(_ROOT)

    def owner(self, entry: EntryId) -> EntryId:
        """Return the message that an entry belongs to; "" before the first message."""
        return self.owners[entry]

    def stand(self, name: EntryId) -> EntryId:
        """Return the entry where the conversation continues after this message."""
        return self.stands[name]

    def request_at(self, name: EntryId) -> EntryId | None:
        """Return the last request that ended with a message, or None."""
        return self._sent.get(name)


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
        self._before_turn: Mapping[str, Any] | None = None
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
        if not self._log.is_in_turn:
            self._before_turn = None
        elif self._before_turn is None:  # what a turn adds may be taken back
            self._before_turn = {"places": self.places.snapshot_values(), "newest": dict(self._newest)}
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
        if self._before_turn is not None and not all(one in self._log.journal for one in gone):
            self.places.return_to(self._before_turn["places"])
            self._newest, self._latest = self._before_turn["newest"], None
            self._learned, self._before_turn = -1, None

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
        trail, model, known = self.trails[parent], call.head.model, self.known_length(call.script.units)
        recall = recall_tools.recall_of(
            call.theirs,
            call.script,
            offers,
            settled,
            may_be_cached=lambda: _may_be_cached(call, trail),
            leaves=lambda: (
                placed == "compacted"
                and may_be_lifted(call.theirs, call.script, trail, model)
                and not may_be_bound(call)
            ),
            is_stored=lambda: is_surely_stored(call.theirs, call.script, trail, known, model),
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
