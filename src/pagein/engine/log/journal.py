"""The journal: an append-only tree of entries, and the states at each entry.

Rules of this file
------------------
1. No entry is changed or removed. A branch is the path from the root to an entry. Only a session without a store may
   drop its past (`forget`): later states are the same, but no one can return to earlier entries.
2. An entry without a name from the client is named by the hash of its parent's name and its content. So the same
   conversation has the same names in every process, and repeating a message at the same place adds nothing.
3. A state at an entry is folded from its branch alone and remembered, so one more entry costs one step (`Fold`).
4. A bridge only fills the place of a lost entry. The lost entry replaces its bridge when it is added again there; then
   all states are folded anew, as if it had never been lost.
"""

import hashlib
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice, takewhile
from typing import Any, Final, Generic, TypeVar, cast, get_args

from pagein.errors import HostError
from pagein.model.codec import encode_body
from pagein.model.entries import Body, Entry, EntryId, NoteEntry, is_bridge
from pagein.model.note_forms import kind_of

S = TypeVar("S")
T = TypeVar("T")
_BODIES: Final = frozenset(get_args(Body))
_NAME_DIGITS: Final = 32
_KINDS: Final = "kinds"
FOLD: Final = "state"
"""The name of the journal's own fold among those of its session."""


@dataclass(frozen=True, slots=True)
class JournalRestart:
    """The point from which a journal continues without older entries.

    leaf: the entry at which states were stored.
    states: the stored states, by the name of their fold.
    names: names of all entries that are not in memory.
    load: returns those entries, parents first.
    newest: entries in memory, the leaf first.
    """

    leaf: EntryId
    states: Mapping[str, Any]
    names: Collection[EntryId]
    load: Callable[[], Iterable[Entry]]
    newest: Sequence[Entry]


def latest_note(note: type[Any]) -> Callable[[S, Body], S]:
    """Return the step of a fold that holds the latest note of a class, and its start before the first."""

    def step(latest: S, body: Body) -> S:
        return cast("S", body.note) if isinstance(body, NoteEntry) and isinstance(body.note, note) else latest

    return step


class Fold(dict[EntryId | None, T]):
    """The states at the entries of a journal, folded by `step`: `fold[entry]`. At None it is the start state.

    A state is folded when it is asked for, and remembered. Of a branch whose state was asked for, each appended entry
    is folded at once. So a further entry costs a single step, however long the branch.

    name: the name of the fold in snapshots; "" for a fold that is not stored.
    takes: the entries and notes that may change the state, by class; None for all. The others take no step.
    """

    def __init__(
        self,
        journal: "Journal[Any]",
        start: T,
        step: Callable[[T, Body], T],
        name: str = "",
        *,
        takes: tuple[type, ...] | None = None,
    ) -> None:
        super().__init__()
        self._takes = None if takes is None else {one if one in _BODIES else kind_of(one) for one in takes}
        self._journal = journal
        self._start = start
        self._step = step
        journal.add_fold(self)
        if name:
            journal.folds[name] = self.__getitem__
            if journal.restored is not None and name in journal.restored.states:
                self[journal.restored.leaf] = journal.restored.states[name]

    def __missing__(self, leaf: EntryId | None) -> T:
        todo: list[Entry] = []
        entries = self._journal.entries
        while leaf is not None and leaf not in self:
            entry = entries.get(leaf) or self._journal.entry(leaf)
            todo.append(entry)
            leaf = entry.parent
        state = self._start if leaf is None else self[leaf]
        for entry in reversed(todo):
            state = self[entry.id] = self._next(state, entry.body)
        return state

    def _next(self, state: T, body: Body) -> T:
        takes = self._takes
        kind = body.kind if isinstance(body, NoteEntry) else type(body)
        return self._step(state, body) if takes is None or kind in takes else state

    def note_appended(self, entry: Entry) -> None:
        """Fold an appended entry of a branch with a known state."""
        if entry.parent in self and entry.id not in self:
            self[entry.id] = self._next(self[entry.parent], entry.body)

    def forget(self, leaf: EntryId) -> None:
        """Drop the states except at `leaf`."""
        state = self[leaf]
        self.clear()
        self[leaf] = state

    def take_back(self, gone: Iterable[EntryId]) -> None:
        """Drop the states of removed entries, and of entries with another parent now."""
        for name in gone:
            self.pop(name, None)


class Journal(Generic[S]):
    """Entries, and the states folded from them by `step`, beginning with `start`.

    entries: the entries in memory. Read it only.
    states: the state at each entry.
    folds: functions that return the state of a further fold at an entry, by the fold's name.
    restored: the stored point from which folds continue, or None.
    mended: bridges that a lost entry replaced, by name.
    kinds: kinds of all notes so far, on any branch.
    """

    def __init__(self, start: S, step: Callable[[S, Body], S]) -> None:
        self.entries: dict[EntryId, Entry] = {}
        self._all_folds: list[Fold[Any]] = []
        self._taking_back: list[Callable[[Sequence[EntryId]], object]] = []
        self._older: JournalRestart | None = None  # entries not loaded yet
        self._missing = 0  # entries that were gone when the rest was loaded
        self.mended: dict[EntryId, Entry] = {}
        self.restored: JournalRestart | None = None
        self.kinds: set[str] = set()
        self.folds: dict[str, Callable[[EntryId], object]] = {_KINDS: lambda _: sorted(self.kinds)}
        self.states: Fold[S] = Fold(self, start, step, FOLD)

    def add_fold(self, fold: Fold[Any]) -> None:
        """Register a further fold."""
        self._all_folds.append(fold)

    def restore(self, restored: JournalRestart) -> None:
        """Continue from a stored point. Only for an empty journal."""
        self.kinds.update(restored.states[_KINDS])
        for entry in restored.newest:
            self.entries[entry.id] = entry
            if isinstance(entry.body, NoteEntry):
                self.kinds.add(entry.body.kind)
        self.states[restored.leaf] = restored.states[FOLD]
        self._older = self.restored = restored

    @property
    def is_loaded(self) -> bool:
        """True when all entries are in memory."""
        return self._older is None

    def append(
        self, parent: EntryId | None, body: Body, *, at: float | None = None, name: EntryId | None = None
    ) -> Entry:
        """Add an event after `parent`. Raises HostError for an unknown parent, or a name that another entry has."""
        entry = Entry(name if name is not None else entry_name(parent, body), parent, body, at)
        self.add(entry)
        for fold in self._all_folds:
            fold.note_appended(entry)
        return self.entries[entry.id]

    def add(self, entry: Entry) -> bool:
        """Add an existing entry, or replace its bridge. Returns False for a known entry. Raises as `append` does."""
        known = self.entry(entry.id) if entry.id in self else None
        if known is not None and is_bridge(known) and not is_bridge(entry) and known.parent == entry.parent:
            self.mended[known.id] = known
            self._put(entry)
            return True
        if known is not None:
            if (known.parent, known.body) != (entry.parent, entry.body):
                raise HostError(
                    f"the host gave the name {entry.id!r} to two entries; names must be unique in a session"
                )
            return False
        if entry.parent is not None and entry.parent not in self:
            raise HostError(f"the host put entry {entry.id!r} behind {entry.parent!r}, which it never told of")
        self.entries[entry.id] = entry
        if isinstance(entry.body, NoteEntry):
            self.kinds.add(entry.body.kind)
        return True

    def state_at(self, leaf: EntryId | None) -> S:
        """Return the state at the end of the branch to `leaf`; the start state for None."""
        return self.states[leaf]

    def entry(self, name: EntryId) -> Entry:
        """Return the entry of this name. Raises HostError for an unknown or dropped entry."""
        if name not in self.entries and self._older is not None and name in self._older.names:
            self._load()
        try:
            return self.entries[name]
        except KeyError:
            raise HostError(f"the host asked for entry {name!r}, which it never told of or has had forgotten") from None

    def loaded_entries(self) -> tuple[Entry, ...]:
        """Return the entries in memory."""
        return tuple(self.entries.values())

    def since(self, known: int) -> list[Entry]:
        """Return the entries beyond the first `known`, oldest first, in O(their number)."""
        return self.newest(len(self) - known)

    def newest(self, count: int) -> list[Entry]:
        """Return the last `count` entries, oldest first, in O(count)."""
        found = [self.entries[name] for name in islice(reversed(self.entries), count)]
        found.reverse()
        return found

    def take_back_behind(self, last: EntryId | None) -> None:
        """Remove the entries behind `last`, because the store failed to keep them."""
        gone = list(takewhile(lambda name: name != last, reversed(self.entries)))
        for name in gone:
            del self.entries[name]
        if gone:
            self._drop_states(gone)

    def _drop_states(self, gone: Sequence[EntryId]) -> None:
        for fold in self._all_folds:
            fold.take_back(gone)
        for tell in self._taking_back:
            tell(gone)

    def take_back_mended(self, count: int) -> None:
        """Restore the last `count` bridges that were replaced."""
        for _ in range(count):
            self._put(self.mended.popitem()[1])

    def _put(self, entry: Entry) -> None:
        """Replace the entry of the same name, and drop all states."""
        self._load()
        self.entries[entry.id] = entry
        self.restored = None
        self._drop_states(list(self.entries))

    def forget(self, leaf: EntryId) -> None:
        """Drop the entries and states except at `leaf`, to free memory.

        Raises HostError for an unknown entry.
        """
        entry = self.entry(leaf)
        for fold in self._all_folds:
            fold.forget(leaf)
        self.entries = {leaf: entry}
        self._older, self._missing = None, 0

    def on_take_back(self, tell: Callable[[Sequence[EntryId]], object]) -> None:
        """Register a callback for the names of entries whose states became invalid.

        They were taken back and may return after another parent, or an entry before them was replaced.
        """
        self._taking_back.append(tell)

    def branch(self, leaf: EntryId | None) -> list[Entry]:
        """Return the entries from the root to `leaf`."""
        found: list[Entry] = []
        while leaf is not None:
            entry = self.entry(leaf)
            found.append(entry)
            leaf = entry.parent
        found.reverse()
        return found

    def __contains__(self, name: object) -> bool:
        return name in self.entries or (self._older is not None and name in self._older.names)

    def __len__(self) -> int:
        return len(self.entries) + self._missing + (0 if self._older is None else len(self._older.names))

    def __iter__(self) -> Iterator[Entry]:
        """Iterate over all entries in the order of their addition, parents before children."""
        self._load()
        return iter(self.entries.values())

    def _load(self) -> None:
        """Load all entries into memory. Raises StoreError."""
        older = self._older
        if older is not None:
            found = {entry.id: entry for entry in older.load() if entry.id in older.names}
            self._missing = len(older.names) - len(found)  # collected in the meantime
            self.entries = {**found, **self.entries}
            self._older = None


def entry_name(parent: EntryId | None, body: Body) -> EntryId:
    """Return the name of an entry that the client does not name: 32 hexadecimal digits."""
    digest = hashlib.sha256((parent or "").encode("utf-8", "surrogatepass"))
    digest.update(b"\n")
    digest.update(encode_body(body))
    return digest.hexdigest()[:_NAME_DIGITS]


def replay_journal(start: S, step: Callable[[S, Body], S], entries: Iterable[Entry]) -> Journal[S]:
    """Return a journal with these entries, given parents first."""
    journal = Journal(start, step)
    for entry in entries:
        journal.add(entry)
    return journal
