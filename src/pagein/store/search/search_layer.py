"""The index of searches as a derived layer."""

import contextlib
import time
from collections.abc import Callable
from typing import Final

from pagein.model.layer_report import LayerReport
from pagein.ports import Progress, WholeStore
from pagein.store.search.index_builder import GrowingIndex, grow
from pagein.store.search.shelves import SearchedStore, Shelf
from pagein.store.search.store_search import StoreSearch, has_index

SEARCH: Final = "search"
"""Name of the layer."""


class SearchLayer:
    """The trigram index beside a store. Searches are complete without it, and slower.

    The index is open only while there is something to do. A kind of store without an index has nothing to bring up.
    """

    name = SEARCH

    def __init__(self, store: SearchedStore) -> None:
        self._store = store
        self._reached: list[int] | None = None

    def catch_up(
        self, within: float | None = None, stop: Callable[[], bool] = lambda: False, tell: Progress | None = None
    ) -> LayerReport:
        """Index what is stored, batch by batch (see `DerivedLayer.catch_up`)."""
        deadline = None if within is None else time.monotonic() + within

        def is_over() -> bool:
            return stop() or (deadline is not None and time.monotonic() >= deadline)

        with contextlib.closing(StoreSearch(self._store)) as search:
            last = [shelf.last() for shelf in search.shelves]
            if last == self._reached or search.index is None:
                return LayerReport()
            taken = sum(_grow(search.index, shelf, is_over, tell) for shelf in search.shelves)
            behind = sum(shelf.last() - search.index.covered_place(shelf) for shelf in search.shelves)
        self._reached = None if behind else last
        return LayerReport(taken, taken, behind)

    def behind(self) -> int:
        """Return the number of places that are not indexed yet; 0 for a store without an index, or with one that was not begun."""
        with contextlib.closing(StoreSearch(self._store)) as search:
            if not has_index(self._store) or search.index is None:
                return 0
            return sum(shelf.last() - search.index.covered_place(shelf) for shelf in search.shelves)

    def drop(self, store: WholeStore) -> int:
        """Clear the index, and return the number of indexed places."""
        del store  # the index lies beside it
        self._reached = None
        with contextlib.closing(StoreSearch(self._store)) as search:
            if search.index is None:
                return 0
            dropped = sum(map(search.index.known_place, search.shelves))
            for shelf in search.shelves:
                search.index.forget(shelf)
        return dropped


def _grow(index: GrowingIndex, shelf: Shelf, is_over: Callable[[], bool], tell: Progress | None) -> int:
    """Index a shelf, and return the number of places that were added."""
    before = place = index.covered_place(shelf)
    while not is_over() and grow(index, shelf):
        place = index.covered_place(shelf)
        if tell is not None:
            tell(place, shelf.last())
    while place > before and not is_over() and index.tidy(shelf):
        pass
    return place - before
