"""A further state over a journal: any fold of the entries, remembered at each entry."""

from collections.abc import Callable, Mapping, Sequence
from typing import Final, Generic, Protocol, TypeVar, get_args

from pagein.engine.log.journal import JournalRestart
from pagein.model.entries import Body, Entry, EntryId, NoteEntry
from pagein.model.note_forms import kind_of

S = TypeVar("S")
_BODIES: Final = frozenset(get_args(Body))


class Entries(Protocol):
    """A source of entries by name."""

    @property
    def entries(self) -> Mapping[EntryId, Entry]:
        """The entries in memory."""
        ...

    def entry(self, name: EntryId) -> Entry:
        """Return the entry of this name. Raises HostError for an unknown name."""
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
    takes: the entries and notes that may change the state, by class; None for all. The others take no step.
    """

    def __init__(
        self,
        entries: Entries,
        start: S,
        step: Callable[[S, Body], S],
        name: str = "",
        *,
        takes: tuple[type, ...] | None = None,
    ) -> None:
        self._takes = None if takes is None else {one if one in _BODIES else kind_of(one) for one in takes}
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
        states, takes = self._states, self._takes
        while leaf is not None and leaf not in states:
            entry = self._entries.entries.get(leaf) or self._entries.entry(leaf)
            todo.append(entry)
            leaf = entry.parent
        state = self._start if leaf is None else states[leaf]
        for entry in reversed(todo):
            body = entry.body
            if takes is None or (body.kind if isinstance(body, NoteEntry) else type(body)) in takes:
                state = self._step(state, body)
            states[entry.id] = state
        return state

    def _forget(self, leaf: EntryId) -> None:
        self._states = {leaf: self.at(leaf)}

    def _take_back(self, gone: Sequence[EntryId]) -> None:
        for name in gone:
            self._states.pop(name, None)
