"""The log of a session: the journal, the state at each entry, the current entry, and the part already stored.

Everything else of a session stands above: the log knows nothing of requests, reads and recalls.
"""

import contextlib
import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from threading import RLock
from typing import Any, Final, Literal

from pagein.engine.log.journal import Journal
from pagein.engine.log.pageout import Pager
from pagein.engine.log.privacy import Privacy
from pagein.engine.log.snapshots import FoundSnapshot, OfSession
from pagein.engine.log.state import START, Rules, State
from pagein.engine.log.state_fold import step
from pagein.errors import HostError, StoreError
from pagein.model.entries import Body, CompactionEntry, Entry, EntryId, MessageEntry, NoteEntry
from pagein.model.guard_notes import ReadMeasureNote, SearchMeasureNote
from pagein.model.journal_notes import Note, PinNote, ReadNote
from pagein.model.messages import Image, Message, Other, Text, Thinking, ToolCall, ToolResult
from pagein.model.note_forms import encode_note
from pagein.model.pool_notes import PoolNote
from pagein.model.read_events import MalformedRecord
from pagein.model.server_results import ServerResult
from pagein.ports import JournalStore, SnapshotStore, TokenCounter
from pagein.providers.wire.formats import server_results_of

_IMAGE: Final = 1500  # tokens of a whole screen; of a document not even its pages are known
_BYTES_OF_BASE64: Final = 0.75
_CHARS_OF_TOKEN: Final = 4
_OF_ALL: Final = (ReadNote, MalformedRecord, PinNote, PoolNote, ReadMeasureNote, SearchMeasureNote)


class SessionLog:
    """The entries of a session, in memory and in a store. Thread-safe.

    journal: every branch. Read it only; entries are added through the log.
    states: the state at each entry, also of `journal`; `states[leaf]` is that of the session.
    leaf: the session's current entry; None before the first.
    privacy: redacts what is journaled.
    rules: the rules that make results evictable.
    turns: number of turns begun so far, without those within another.
    added: number of entries added so far, here and by other processes.
    now: time of the call in which entries are added, seconds since 1970; None if unknown.
    is_removed: whether its journal was found to be removed from the store since it was opened.

    pager: the store of evicted content, which knows what was erased.
    journals: the store of journals; None for a session that ends with its process.
    snapshots: the store of states; None for no snapshots.
    resumes: True to continue from the last snapshot.
    """

    def __init__(
        self,
        name: str,
        rules: Rules,
        pager: Pager,
        journals: JournalStore | None = None,
        snapshots: SnapshotStore | None = None,
        *,
        resumes: bool = False,
    ) -> None:
        self.name = name
        self.rules = rules
        self.lock = RLock()
        self.leaf: EntryId | None = None
        self.added = self.turns = 0
        self.now: float | None = None
        self.is_removed = False
        self.journal: Journal[State] = Journal(START, partial(step, rules=rules))
        self.states = self.journal.states
        self.privacy = Privacy(pager, rules.excluded)
        self._journals = journals
        self._moved = False
        self._unkept: list[Entry] = []
        self._mine: set[EntryId] = set()
        self._fresh: list[Entry] = []
        self._seen = 0
        self._last = 0  # place of the last entry that was stored outside a turn
        self._alone = False
        self._snapshots = OfSession(name, snapshots, rules)
        if resumes:
            with contextlib.suppress(Exception):  # after any failure the journal gives the same state
                self._restore(self._snapshots.find())

    def _restore(self, found: FoundSnapshot | None) -> None:
        """Continue from a snapshot. Raises StoreError; then nothing has changed."""
        if found is not None:
            stands = None if self._journals is None else self._journals.leaf(self.name)
            self.journal.restore(found.restored)
            self._seen = found.place
            self.leaf = stands if stands in self.journal else found.leaf
            self._snapshots.note_restored(found)

    def snapshot(self, sent: EntryId, more: Callable[[], Mapping[str, Any] | None]) -> Callable[[], None] | None:
        """Return a function to take a snapshot after a request, or None (see `OfSession.prepare_snapshot`)."""
        with self.lock:
            is_whole = self.is_kept and not self._mine and not self._fresh
            if self.leaf is None or not is_whole:
                return None
            return self._snapshots.prepare_snapshot(self.journal, self.leaf, self._seen, sent, more, self.privacy.check)

    def state(self) -> State:
        """Return the state at the current entry."""
        return self.states[self.leaf]

    def note(self, note: Note, *, at: float | None = None) -> EntryId:
        """Journal a fact beside the messages, redacted. For facts of your own take an `OtherNote`.

        at: its time, seconds since 1970; None for that of the call.

        Raises ValueError for text that JSON cannot hold.
        """
        kind, data = encode_note(note)
        return self.add(NoteEntry(kind, self.privacy.redact_note(data)), at=at)

    def append_message(
        self, message: Message, counter: TokenCounter, name: EntryId | None = None, *, now: float | None = None
    ) -> EntryId:
        """Journal a message, redacted, with its weight: token estimates of each tool result, and of the whole.

        name: the client's own name for it, unique in the session; None to compute a name.
        now: its time if it has none of its own, seconds since 1970.
        """
        kept = self.privacy.redact_message(self.states[self.leaf], message)
        at = now if message.at is None else message.at
        return self.add(message_entry(message, kept, counter), at=at, name=name)

    def note_compaction(self, kept: int = 0) -> EntryId:
        """Record a compaction: the window keeps only leading system messages and the last `kept` messages."""
        if kept < 0:
            raise HostError(f"the host kept {kept} messages in a compaction; it must be 0 or more")
        return self.add(CompactionEntry(kept))

    def withhold(self, text: str) -> None:
        """Record a text read from an excluded file: results with this text stay in the window and are not stored."""
        note = self.privacy.note_excluded_read(self.state(), text)
        if note is not None:
            self.add(note)

    def add(self, body: Body, *, at: float | None = None, name: EntryId | None = None) -> EntryId:
        """Append an event at the session's current entry, and make it the current entry."""
        with self.lock:
            entry = self.journal.append(self.leaf, body, at=self.now if at is None else at, name=name)
            self.leaf, self._moved = entry.id, False
            self.added += 1
            if self._journals is not None:
                self._unkept.append(entry)
            return entry.id

    def move(self, leaf: EntryId | None) -> None:
        """Go to another entry. Raises HostError for an unknown entry."""
        if leaf is not None and leaf not in self.journal.entries:
            self.journal.entry(leaf)
        with self.lock:
            self.leaf, self._moved = leaf, True

    def forget(self) -> None:
        """Drop every entry but the current, in a session without a store."""
        with self.lock:
            if self._journals is None and self.leaf is not None:
                self.journal.forget(self.leaf)

    def inherit(self, branch: Iterable[Entry]) -> None:
        """Begin with the entries of another session's branch."""
        with self.lock:
            for entry in branch:
                self.journal.add(entry)
                self.added += 1
                self._unkept.append(entry)
                self.leaf = entry.id
            with contextlib.suppress(StoreError):  # then the next `keep` stores them
                self.keep()

    def keep(self) -> None:
        """Store the unsaved entries; a turn does so at its end. Raises StoreError; then the caller may try again."""
        with self.lock:
            if not self._alone:
                self._store_unkept()

    def _store_unkept(self) -> None:
        if self._journals is not None and self._unkept:
            if not self.privacy.is_fresh:
                self.privacy.check()
            if self._alone:  # everything before was read, and no process wrote in between
                self._seen = self._journals.append(self.name, self._unkept)
            else:
                with self._journals.exclusive():
                    self._demand_journal(self._journals)
                    self._last = self._journals.append(self.name, self._unkept)
                self._mine.update(entry.id for entry in self._unkept)
            self._unkept = []

    def _demand_journal(self, journals: JournalStore) -> None:
        """Raise StoreError if the journal was removed: entries after those that are gone could not be read."""
        last = max(self._seen, self._last)
        if last and not journals.has_place(self.name, last):
            self.is_removed = True
            raise StoreError("the journal of this session was removed since it was opened; open it again")

    @property
    def is_kept(self) -> bool:
        """True when every entry is stored."""
        return self._journals is not None and not self._unkept

    def catch_up(self) -> None:
        """Read the entries of concurrent processes. Raises StoreError.

        The session continues at the entry that any process reached last. There are two exceptions: the session was
        moved since, or it has unsaved entries. With unsaved entries, other processes' records of files, reads,
        searches, pins and compactions are repeated after them. All other notes belong to a request and stay where they are.
        """
        if self._journals is None:
            return
        with self.lock:
            if self._alone:
                return
            self._demand_journal(self._journals)
            # remembered until handled: after a store failure the next call must not skip them
            self._fresh.extend(self._news(self._journals))
            if self._unkept:
                for entry in self._fresh:
                    if _is_of_all(entry.body):
                        self.add(entry.body)
            elif self._fresh and not self._moved:
                leaf = self._journals.leaf(self.name)
                while leaf not in self.journal and (more := list(self._news(self._journals))):
                    self._fresh.extend(more)  # another process has stored entries since the first look
                    leaf = self._journals.leaf(self.name)
                self.leaf = leaf if leaf in self.journal else self.leaf
            self._fresh.clear()

    @contextlib.contextmanager
    def turn(self) -> Iterator[None]:
        """Lock the session against other threads and processes, after reading their entries.

        Entries added within are stored at the end, those of a turn within a turn with the outer one. Any exception takes
        them back. Raises StoreError.
        """
        with self.lock:
            before, is_begun, within, mended = self._stand(), False, self._alone, len(self.journal.mended)
            last: EntryId | None = None
            try:
                # a turn within a turn has the store already
                with contextlib.nullcontext() if self._journals is None or within else self._journals.exclusive():
                    if self._journals is not None:
                        self.privacy.begin_turn()
                    try:
                        self.catch_up()
                        before, last, is_begun = self._stand(), next(reversed(self.journal.entries), None), True
                        self._alone, self.turns = True, self.turns + (not within)
                        yield
                        if not within:
                            self._store_unkept()
                    finally:
                        self.privacy.is_fresh = within
            except BaseException:
                if is_begun:
                    self.journal.take_back_behind(last)
                    self.journal.take_back_mended(len(self.journal.mended) - mended)
                    self.leaf, self._moved, self._unkept, self._mine, self._seen = before
                else:  # entries of other processes are handled at the next call
                    self.leaf, self._moved, self._unkept, self._mine, _ = before
                raise
            finally:
                self._alone = within

    def _stand(self) -> tuple[EntryId | None, bool, list[Entry], set[EntryId], int]:
        return self.leaf, self._moved, self._unkept.copy(), self._mine.copy(), self._seen

    def _news(self, journals: JournalStore) -> list[Entry]:
        """Add the new entries of concurrent processes to the journal. Returns the added entries.

        Skips unreadable entries and their descendants.
        """
        fresh: list[Entry] = []
        for place, entry in journals.news(self.name, self._seen):
            self._seen = place
            if not isinstance(entry, Entry) or entry.id in self._mine:
                self._mine.discard(entry.id if isinstance(entry, Entry) else "")
            elif entry.parent is None or entry.parent in self.journal:
                with contextlib.suppress(HostError):  # a name that the client gave twice: the first stays
                    self.journal.add(entry)
                    self.added += 1
                    fresh.append(entry)
        return fresh


def message_entry(message: Message, kept: Message, counter: TokenCounter) -> MessageEntry:
    """Return the entry of a message that is journaled as `kept`, with the weight of the whole message."""
    results = [block.text for block in message.blocks if isinstance(block, ToolResult)]
    tokens = tuple(math.ceil(counter.count(text, "result")) for text in results)
    if message.role == "assistant" and any(isinstance(block, Other) for block in message.blocks):
        tokens = tuple(_server_tokens(one, counter) for one in server_results_of(message))
    texts = (
        block.arguments if isinstance(block, ToolCall) else block.text
        for block in message.blocks
        if isinstance(block, Text | Thinking | ToolCall)
    )
    kind: Literal["said", "user"] = "said" if message.role == "assistant" else "user"
    rest = math.ceil(sum(counter.count(text, kind) for text in texts if text))
    images = sum(
        len(block.images) if isinstance(block, ToolResult) else isinstance(block, Image) for block in message.blocks
    )
    return MessageEntry(kept, tokens, sum(tokens) + rest + _IMAGE * images)


def _server_tokens(result: ServerResult, counter: TokenCounter) -> int:
    """Estimate the tokens of a result of the provider's own tools. Sealed text is in base64."""
    return math.ceil(counter.count(result.text, "result") + result.sealed * _BYTES_OF_BASE64 / _CHARS_OF_TOKEN)


def _is_of_all(body: Body) -> bool:
    """Return whether an entry holds for the whole session, not only for its branch."""
    return isinstance(body, CompactionEntry) or (isinstance(body, NoteEntry) and isinstance(body.note, _OF_ALL))
