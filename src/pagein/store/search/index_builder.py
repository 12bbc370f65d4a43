"""Build the search index in a background thread, batch by batch, continuing from its current place.

A builder may die between any two steps. Several builders may run, also in several processes: the slower one finds the index further
ahead than expected and continues from there.
"""

import threading
from collections.abc import Iterator, Sequence
from typing import Final, Protocol

from pagein.errors import StoreError
from pagein.policy.recall.patterns import fold_text
from pagein.store.search.pattern_matches import text_of
from pagein.store.search.shelves import Shelf, ShelfItem, readable

_THINGS: Final = 256
_CHARS: Final = 1024 * 1024
"""Bounds of a batch. A large batch makes few segments, which are what costs; a long one would keep other builders waiting."""
_PATIENCE: Final = 60.0
_AFTER_TROUBLE: Final = 5.0


class GrowingIndex(Protocol):
    """An index with build operations."""

    def known_place(self, shelf: Shelf) -> int:
        """Return the place reached by the index, whether or not the shelf still matches."""
        ...

    def covered_place(self, shelf: Shelf) -> int:
        """Return the place up to which the index covers this very shelf."""
        ...

    def add(self, shelf: Shelf, above: int, texts: Sequence[tuple[int, str]], upto: int) -> bool:
        """Add folded texts of the items between two places. Return False if the range does not continue the index."""
        ...

    def forget(self, shelf: Shelf) -> None:
        """Clear the index of a shelf."""
        ...

    def tidy(self, shelf: Shelf) -> bool:
        """Merge a few segments. Return False if there is nothing left to merge."""
        ...


def grow(index: GrowingIndex, shelf: Shelf) -> bool:
    """Add a shelf's next batch to the index. Return False if there is nothing to add. Raises StoreError."""
    above = index.covered_place(shelf)
    if not above and index.known_place(shelf):
        index.forget(shelf)
    things = _next(shelf, above)
    if not things:
        return False
    index.add(shelf, above, _texts(shelf, things), things[-1].place)
    return True


def _next(shelf: Shelf, above: int) -> list[ShelfItem]:
    last = shelf.last()
    chosen: list[ShelfItem] = []
    chars = 0
    while not chosen and above < last:
        for thing in shelf.between(above, min(above + _THINGS, last)):
            if chosen and chars + thing.size > _CHARS:
                break
            chosen.append(thing)
            chars += thing.size
        above += _THINGS
    return chosen


def _texts(shelf: Shelf, things: Sequence[ShelfItem]) -> list[tuple[int, str]]:
    """Return by place the folded texts of items and the names of their sessions, with gaps so that no trigram spans two texts."""
    loaded = iter(shelf.load([part for thing in things for _, part in thing.parts if not isinstance(part, bytes)]))
    return [(thing.place, "\n\n".join(_item_texts(thing, loaded))) for thing in things]


def _item_texts(thing: ShelfItem, loaded: Iterator[bytes | StoreError]) -> Iterator[str]:
    if thing.session is not None:
        yield fold_text(thing.session)
    for name, part in thing.parts:
        data = part if isinstance(part, bytes) else next(loaded)
        if not isinstance(data, StoreError):
            yield fold_text(text_of(readable(name, data)))


class Builder:
    """A thread that keeps an index up to date with its shelves. A failure is recorded in `trouble` and retried."""

    def __init__(self, index: GrowingIndex, shelves: Sequence[Shelf], *, patience: float = _PATIENCE) -> None:
        self._index, self._shelves, self._patience = index, tuple(shelves), patience
        self._awake = threading.Event()
        self._idle = threading.Event()
        self._stopped = threading.Event()
        self._thread: threading.Thread | None = None
        self.trouble: StoreError | None = None
        """The last failure; None after a success."""

    def start(self) -> None:
        """Start the thread. The thread also ends with the process."""
        if self._thread is None:
            self._thread = threading.Thread(target=self._run, name="pagein search index", daemon=True)
            self._thread.start()

    def wake(self) -> None:
        """Check for new content now instead of after the pause."""
        self._idle.clear()
        self._awake.set()

    def wait(self, timeout: float | None = None) -> bool:
        """Wait until the index covers everything stored before, at most `timeout` seconds. Return whether it does."""
        return self._idle.wait(timeout) and self.trouble is None

    def stop(self, timeout: float | None = 10.0) -> bool:
        """Stop after the current batch. Return whether the thread ended within `timeout` seconds."""
        self._stopped.set()
        self._awake.set()
        if self._thread is None:
            return True
        self._thread.join(timeout)
        return not self._thread.is_alive()

    def _run(self) -> None:
        while not self._stopped.is_set():
            self._awake.clear()
            try:
                self._catch_up()
                self.trouble = None
                pause = self._patience
            except StoreError as problem:
                self.trouble, pause = problem, min(_AFTER_TROUBLE, self._patience)
            if not self._awake.is_set():
                self._idle.set()
            self._awake.wait(pause)

    def _catch_up(self) -> None:
        for shelf in self._shelves:
            grown = False
            while not self._stopped.is_set() and grow(self._index, shelf):
                grown = True
            while grown and not self._stopped.is_set() and self._index.tidy(shelf):
                pass
