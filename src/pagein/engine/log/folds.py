"""A further state over a journal: any fold of the entries, remembered at each entry."""

from collections.abc import Callable, Sequence
from typing import Generic, Protocol, TypeVar

from pagein.engine.log.journal import JournalRestart
from pagein.model.entries import Body, Entry, EntryId

S = TypeVar("S")


class Entries(Protocol):
    """A source of entries by name. Raises HostError for an unknown name."""

    def entry(self, name: EntryId) -> Entry:
        """Return the entry of this name."""
        ...

    def on_forget(self, tell: Callable[[EntryId], object]) -> None:
        """Register a callback, called with the remaining leaf before entries are dropped."""
        ...

    def on_take_back(self, tell: Callable[[Sequence[EntryId]], object]) -> None:
        """Register a callback for the names of entries whose states became invalid."""
        ...

    @property
    def folds(self) -> dict[str, Callable[[EntryId], object]]:
        """Functions that return the state of a fold at an entry, by the fold's name."""
        ...

    @property
    def restored(self) -> JournalRestart | None:
        """The stored point from which folds continue, or None."""
        ...


class Fold(Generic[S]):
    """States folded by `step`, beginning with `start`. A further entry costs a single step, however long the branch.

    name: the name of the fold in snapshots; "" for a fold that is not stored.
    """

    def __init__(self, entries: Entries, start: S, step: Callable[[S, Body], S], name: str = "") -> None:
        self._entries = entries
        self._start = start
        self._step = step
        self._states: dict[EntryId, S] = {}
        entries.on_forget(self._forget)
        entries.on_take_back(self._take_back)
        if name:
            entries.folds[name] = self.at
            if entries.restored is not None and name in entries.restored.states:
                self._states[entries.restored.leaf] = entries.restored.states[name]

    def at(self, leaf: EntryId | None) -> S:
        """Return the state at the end of the branch to `leaf`; the start state for None."""
        todo: list[Entry] = []
        while leaf is not None and leaf not in self._states:
            entry = self._entries.entry(leaf)
            todo.append(entry)
            leaf = entry.parent
        state = self._start if leaf is None else self._states[leaf]
        for entry in reversed(todo):
            state = self._states[entry.id] = self._step(state, entry.body)
        return state

    def _forget(self, leaf: EntryId) -> None:
        self._states = {leaf: self.at(leaf)}

    def _take_back(self, gone: Sequence[EntryId]) -> None:
        for name in gone:
            self._states.pop(name, None)
