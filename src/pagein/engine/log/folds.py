"""A second state over a journal: any fold of its entries, remembered at each entry as the journal remembers its own."""

from collections.abc import Callable, Sequence
from typing import Generic, Protocol, TypeVar

from pagein.engine.log.journal import JournalRestart
from pagein.model.entries import Body, Entry, EntryId

S = TypeVar("S")


class Entries(Protocol):
    """Where a fold finds entries by name. Raises HostError for an unknown one."""

    def entry(self, name: EntryId) -> Entry:
        """The entry of this name."""
        ...

    def on_forget(self, tell: Callable[[EntryId], object]) -> None:
        """Have this called before entries are forgotten, with the leaf that stays."""
        ...

    def on_take_back(self, tell: Callable[[Sequence[EntryId]], object]) -> None:
        """Have this called with the names of entries whose state holds no more."""
        ...

    @property
    def folds(self) -> dict[str, Callable[[EntryId], object]]:
        """What gives the states of folds, by their names."""
        ...

    @property
    def restored(self) -> JournalRestart | None:
        """Where the states of folds begin that were kept, None where none were."""
        ...


class Fold(Generic[S]):
    """States folded by `step`, beginning with `start`. One more entry costs one step, however long the branch.

    name: by which its states are kept for later processes (`snapshots`), "" for one whose are not.
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
        """The state after the branch that ends at `leaf` (None: before everything)."""
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
