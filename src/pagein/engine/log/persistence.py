"""A session's journal and its keeping: where the session stands, what is not kept yet, what others added."""

import contextlib
from collections.abc import Callable, Iterable, Iterator
from threading import RLock
from typing import Final

from pagein.engine.log.journal import Journal, JournalRestart
from pagein.engine.log.read_notes import KIND as READING
from pagein.engine.log.state import State
from pagein.errors import HostError, StoreError
from pagein.model.entries import Body, CompactionEntry, Entry, EntryId, NoteEntry
from pagein.model.pins import HAND
from pagein.ports import JournalStore

_OF_ALL: Final = (READING, HAND)


class JournalPersistence:
    """The entries of one session, in memory and in a store. Any number of threads may use it.

    journals: None for entries that end with their process. check: raises StoreError where nothing of this session may be kept any more.
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
        """Go on where a snapshot was taken: the session stood at this entry, and the store's entries are known up to this place.

        Raises StoreError; then nothing has changed.
        """
        with self.lock:
            stands = None if self._journals is None else self._journals.leaf(self._name)
            self._journal.restore(restored)
            self._seen = place
            self.leaf = stands if stands in self._journal else leaf

    @property
    def place(self) -> int | None:
        """The place up to which all entries of the store are known; None where that cannot be told."""
        is_whole = self.is_kept and not self._mine and not self._fresh
        return self._seen if is_whole else None

    def add(self, body: Body, *, at: float | None = None, name: EntryId | None = None) -> EntryId:
        """Something happened where the session stands; it stands there from now on."""
        with self.lock:
            entry = self._journal.append(self.leaf, body, at=at, name=name)
            self.leaf, self._moved = entry.id, False
            if self._journals is not None:
                self._unkept.append(entry)
            return entry.id

    def move(self, leaf: EntryId | None) -> None:
        """Stand at another entry. Raises HostError for an unknown one."""
        if leaf is not None:
            self._journal.entry(leaf)
        with self.lock:
            self.leaf, self._moved = leaf, True

    def forget(self) -> None:
        """Let go of all entries but the one where the session stands, if they end with their process."""
        with self.lock:
            if self._journals is None and self.leaf is not None:
                self._journal.forget(self.leaf)

    def inherit(self, branch: Iterable[Entry]) -> None:
        """Begin with these entries of another session."""
        with self.lock:
            for entry in branch:
                self._journal.add(entry)
                self._unkept.append(entry)
                self.leaf = entry.id
            with contextlib.suppress(StoreError):  # then they are kept with what is kept next
                self.keep()

    def keep(self) -> None:
        """What happened so far survives the process. Raises StoreError; then it may be tried again."""
        with self.lock:
            if self._journals is not None and self._unkept:
                self._check()
                last = self._journals.append(self._name, self._unkept)
                if self._alone:  # all before these was seen, and nobody came in between
                    self._seen = last
                else:
                    self._mine.update(entry.id for entry in self._unkept)
                self._unkept = []

    @property
    def is_kept(self) -> bool:
        """Whether nothing is left to be kept."""
        return self._journals is not None and not self._unkept

    def catch_up(self) -> None:
        """Take in what other processes added to this session. Raises StoreError.

        The session then stands where it was left last, by whomever; unless it was moved since, or holds entries that are
        not kept yet: then what others said of files, wished and compacted is said again behind these. All else that they noted is of
        requests, and holds where it stands.
        """
        if self._journals is None:
            return
        with self.lock:
            if self._alone:
                return
            # kept until it is dealt with: what a failing store interrupts must not be passed over the next time
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
        """A time in which nobody else, thread or process, adds to this session; it begins where the session stands by then.

        What is journaled within is kept at its end. Any exception takes it back. Raises StoreError.
        """
        with self.lock:
            before, count, within, mended = self._stand(), None, self._alone, self._journal.mended
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
                    self._journal.take_back_mended(self._journal.mended - mended)
                    self.leaf, self._moved, self._unkept, self._mine, self._seen = before
                else:  # what was seen of others is dealt with the next time
                    self.leaf, self._moved, self._unkept, self._mine, _ = before
                raise
            finally:
                self._alone = within

    def _stand(self) -> tuple[EntryId | None, bool, list[Entry], set[EntryId], int]:
        return self.leaf, self._moved, self._unkept.copy(), self._mine.copy(), self._seen

    def _news(self, journals: JournalStore) -> list[Entry]:
        """Entries of others that are new here, now in the journal. What cannot be understood is left out, and what hangs on it."""
        fresh: list[Entry] = []
        for place, entry in journals.news(self._name, self._seen):
            self._seen = place
            if not isinstance(entry, Entry) or entry.id in self._mine:
                self._mine.discard(entry.id if isinstance(entry, Entry) else "")
            elif entry.parent is None or entry.parent in self._journal:
                with contextlib.suppress(HostError):  # a name that the host gave twice: the first stays
                    self._journal.add(entry)
                    fresh.append(entry)
        return fresh


def _is_of_all(body: Body) -> bool:
    """Whether an entry says what holds wherever the session stands."""
    return isinstance(body, CompactionEntry) or (isinstance(body, NoteEntry) and body.kind in _OF_ALL)
