"""The journal: an append-only tree of entries, and the state at each entry.

Rules of this file
------------------
1. No entry is changed or removed. A branch is the path from the root to an entry. Only a session without a store may
   drop its past (`forget`): later states are the same, but no one can return to earlier entries.
2. An entry without a name from the client is named by the hash of its parent's name and its content. So the same
   conversation has the same names in every process, and repeating a message at the same place adds nothing.
3. The state at an entry is folded from its branch alone and remembered, so one more entry costs one step.
4. A bridge only fills the place of a lost entry. The lost entry replaces its bridge when it is added again there; then
   all states are folded anew, as if it had never been lost.
"""

import hashlib
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any, Final, Generic, TypeVar

from pagein.errors import HostError
from pagein.model.codec import encode_body
from pagein.model.entries import Body, Entry, EntryId, is_bridge

S = TypeVar("S")
_NAME_DIGITS: Final = 32
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


class Journal(Generic[S]):
    """Entries, and states folded from them by `step`, beginning with `start`.

    entries: the entries in memory. Read it only.
    states: the remembered states. Read it only.
    """

    def __init__(self, start: S, step: Callable[[S, Body], S]) -> None:
        self._start = start
        self._step = step
        self.entries: dict[EntryId, Entry] = {}
        self.states: dict[EntryId, S] = {}
        self._forgetting: list[Callable[[EntryId], object]] = []
        self._taking_back: list[Callable[[Sequence[EntryId]], object]] = []
        self._older: JournalRestart | None = None  # entries not loaded yet
        self._missing = 0  # entries that were gone when the rest was loaded
        self._mended: dict[EntryId, Entry] = {}  # bridges that a lost entry replaced
        self.restored: JournalRestart | None = None
        self.folds: dict[str, Callable[[EntryId], object]] = {FOLD: self.state_at}

    def restore(self, restored: JournalRestart) -> None:
        """Continue from a stored point. Only for an empty journal."""
        for entry in restored.newest:
            self.entries[entry.id] = entry
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
        return self.entries[entry.id]

    def add(self, entry: Entry) -> bool:
        """Add an existing entry, or replace its bridge. Returns False for a known entry. Raises as `append` does."""
        known = self.entry(entry.id) if entry.id in self else None
        if known is not None and is_bridge(known) and not is_bridge(entry) and known.parent == entry.parent:
            self._mended[known.id] = known
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
        return True

    def state_at(self, leaf: EntryId | None) -> S:
        """Return the state at the end of the branch to `leaf`; the start state for None."""
        todo: list[Entry] = []
        here = leaf
        while here is not None and here not in self.states:
            entry = self.entries.get(here) or self.entry(here)
            todo.append(entry)
            here = entry.parent
        state = self._start if here is None else self.states[here]
        for entry in reversed(todo):
            state = self.states[entry.id] = self._step(state, entry.body)
        return state

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

    def newest(self, count: int) -> list[Entry]:
        """Return the last `count` entries, oldest first, in O(count)."""
        found = [self.entries[name] for name in islice(reversed(self.entries), count)]
        found.reverse()
        return found

    def take_back(self, count: int) -> None:
        """Remove the last `count` entries, because the store could not keep them."""
        gone = list(islice(reversed(self.entries), count))
        for name in gone:
            del self.entries[name]
            self.states.pop(name, None)
        for tell in self._taking_back if gone else ():
            tell(gone)

    @property
    def mended_count(self) -> int:
        """Number of bridges that were replaced by the lost entry."""
        return len(self._mended)

    def take_back_mended(self, count: int) -> None:
        """Restore the last `count` bridges that were replaced."""
        for _ in range(count):
            self._put(self._mended.popitem()[1])

    def _put(self, entry: Entry) -> None:
        """Replace the entry of the same name, and drop all states."""
        self._load()
        self.entries[entry.id] = entry
        self.restored = None
        self.states.clear()
        for tell in self._taking_back:
            tell(list(self.entries))

    def forget(self, leaf: EntryId) -> None:
        """Drop the entries and states except at `leaf`, to free memory.

        Raises HostError for an unknown entry.
        """
        entry, state = self.entry(leaf), self.state_at(leaf)
        for tell in self._forgetting:
            tell(leaf)
        self.entries, self.states = {leaf: entry}, {leaf: state}
        self._older, self._missing = None, 0

    def on_forget(self, tell: Callable[[EntryId], object]) -> None:
        """Register a callback for other folds, called with the remaining leaf before entries are dropped."""
        self._forgetting.append(tell)

    def on_take_back(self, tell: Callable[[Sequence[EntryId]], object]) -> None:
        """Register a callback for entries whose states became invalid, by their names.

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
