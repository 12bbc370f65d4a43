"""Build the search index batch by batch, continuing from its current place.

A builder may die between any two steps. Several builders may run, also in several processes: the slower one finds the index further
ahead than expected and continues from there.
"""

from collections.abc import Iterator, Sequence
from typing import Final, Protocol

from pagein.errors import StoreError
from pagein.model.object_types import TYPES
from pagein.policy.recall.patterns import fold_text
from pagein.store.search.pattern_matches import text_of
from pagein.store.search.shelves import Shelf, ShelfItem, name_text, readable, type_mark

_THINGS: Final = 256
_CHARS: Final = 1024 * 1024
"""Bounds of a batch. A large batch makes few segments, which are what costs; a long one would keep other builders waiting."""


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
    """Return by place the folded texts of items, their types, sessions and chats, with gaps between the texts.

    So no trigram spans two texts.
    """
    loaded = iter(shelf.load([part for thing in things for _, part in thing.parts if not isinstance(part, bytes)]))
    return [(thing.place, "\n\n".join(_item_texts(thing, loaded))) for thing in things]


def _item_texts(thing: ShelfItem, loaded: Iterator[bytes | StoreError]) -> Iterator[str]:
    for name in (thing.type,) if thing.problem is None else TYPES:  # no filter leaves out an item that cannot be read
        yield fold_text(type_mark(name))
    yield from (fold_text(name_text(name)) for name in (thing.session, thing.chat) if name is not None)
    for name, part in thing.parts:
        data = part if isinstance(part, bytes) else next(loaded)
        if not isinstance(data, StoreError):
            yield fold_text(text_of(readable(name, data)))
