"""The stored journal of a session: current entry, unsaved entries, and entries of concurrent processes."""

import contextlib
from collections.abc import Callable, Iterable, Iterator
from threading import RLock
from typing import Final

from pagein.engine.log.journal import Journal, JournalRestart
from pagein.engine.log.state import State
from pagein.errors import HostError, StoreError
from pagein.model.entries import Body, CompactionEntry, Entry, EntryId, NoteEntry
from pagein.model.journal_notes import PinNote, ReadNote
from pagein.model.read_events import MalformedRecord
from pagein.ports import JournalStore

_OF_ALL: Final = (ReadNote, MalformedRecord, PinNote)


class JournalPersistence:
    """The entries of a session, in memory and in a store. Thread-safe.

    journals: the store; None for a session that ends with its process.
    check: raises StoreError when the session may store nothing any more.
    """

    def __init__(
        self,
        name: str,
        journal: Journal[State],
        journals: JournalStore | None,
        check: Callable[[], None] = lambda: None,
    ) -> None:
        self.lock = RLock()
        self.leaf: EntryId | None = None
        self._name = name
        self._journal = journal
        self._journals = journals
        self._moved = False
        self._check = check
        self._unkept: list[Entry] = []
        self._mine: set[EntryId] = set()
        self._fresh: list[Entry] = []
        self._seen = 0
        self._alone = False

    def restore(self, leaf: EntryId, place: int, restored: JournalRestart) -> None:
        """Continue from a snapshot.

        leaf: the entry at which the session was.
        place: position up to which the store's entries are known.
        restored: the journal's part of the snapshot.

        Raises StoreError; then nothing has changed.
        """
        with self.lock:
            stands = None if self._journals is None else self._journals.leaf(self._name)
            self._journal.restore(restored)
            self._seen = place
            self.leaf = stands if stands in self._journal else leaf

    @property
    def place(self) -> int | None:
        """The position up to which the store's entries are known.

        None while unsaved or unread entries exist.
        """
        is_whole = self.is_kept and not self._mine and not self._fresh
        return self._seen if is_whole else None

    def add(self, body: Body, *, at: float | None = None, name: EntryId | None = None) -> EntryId:
        """Append an event at the session's current entry, and make it the current entry."""
        with self.lock:
            entry = self._journal.append(self.leaf, body, at=at, name=name)
            self.leaf, self._moved = entry.id, False
            if self._journals is not None:
                self._unkept.append(entry)
            return entry.id

    def move(self, leaf: EntryId | None) -> None:
        """Go to another entry. Raises HostError for an unknown entry."""
        if leaf is not None:
            self._journal.entry(leaf)
        with self.lock:
            self.leaf, self._moved = leaf, True

    def forget(self) -> None:
        """Drop every entry but the current, in a session without a store."""
        with self.lock:
            if self._journals is None and self.leaf is not None:
                self._journal.forget(self.leaf)

    def inherit(self, branch: Iterable[Entry]) -> None:
        """Begin with the entries of another session's branch."""
        with self.lock:
            for entry in branch:
                self._journal.add(entry)
                self._unkept.append(entry)
                self.leaf = entry.id
            with contextlib.suppress(StoreError):  # then the next `keep` stores them
                self.keep()

    def keep(self) -> None:
        """Store the unsaved entries. Raises StoreError; then the caller may try again."""
        with self.lock:
            if self._journals is not None and self._unkept:
                self._check()
                last = self._journals.append(self._name, self._unkept)
                if self._alone:  # everything before was read, and no process wrote in between
                    self._seen = last
                else:
                    self._mine.update(entry.id for entry in self._unkept)
                self._unkept = []

    @property
    def is_kept(self) -> bool:
        """True when every entry is stored."""
        return self._journals is not None and not self._unkept

    def catch_up(self) -> None:
        """Read the entries of concurrent processes. Raises StoreError.

        The session continues at the entry that any process reached last. There are two exceptions: the session was
        moved since, or it has unsaved entries. With unsaved entries, other processes' records of files, pins and
        compactions are repeated after them. All other notes belong to a request and stay where they are.
        """
        if self._journals is None:
            return
        with self.lock:
            if self._alone:
                return
            # remembered until handled: after a store failure the next call must not skip them
            self._fresh.extend(self._news(self._journals))
            if self._unkept:
                for entry in self._fresh:
                    if _is_of_all(entry.body):
                        self.add(entry.body)
            elif self._fresh and not self._moved:
                leaf = self._journals.leaf(self._name)
                self.leaf = leaf if leaf in self._journal else self.leaf
            self._fresh.clear()

    @contextlib.contextmanager
    def turn(self) -> Iterator[None]:
        """Lock the session against other threads and processes, after reading their entries.

        Entries added within are stored at the end. Any exception takes them back. Raises StoreError.
        """
        with self.lock:
            before, count, within, mended = self._stand(), None, self._alone, self._journal.mended_count
            try:
                with self._journals.exclusive() if self._journals is not None else contextlib.nullcontext():
                    if self._journals is not None:
                        self._check()
                    self.catch_up()
                    before, count = self._stand(), len(self._journal)
                    self._alone = True
                    yield
                    self.keep()
            except BaseException:
                if count is not None:
                    self._journal.take_back(len(self._journal) - count)
                    self._journal.take_back_mended(self._journal.mended_count - mended)
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
        for place, entry in journals.news(self._name, self._seen):
            self._seen = place
            if not isinstance(entry, Entry) or entry.id in self._mine:
                self._mine.discard(entry.id if isinstance(entry, Entry) else "")
            elif entry.parent is None or entry.parent in self._journal:
                with contextlib.suppress(HostError):  # a name that the client gave twice: the first stays
                    self._journal.add(entry)
                    fresh.append(entry)
        return fresh


def _is_of_all(body: Body) -> bool:
    """Return whether an entry holds for the whole session, not only for its branch."""
    return isinstance(body, CompactionEntry) or (isinstance(body, NoteEntry) and isinstance(body.note, _OF_ALL))
