"""Walk down a shelf in steps: small at first, larger on a longer way."""

from collections.abc import Iterator
from itertools import islice
from typing import Final

from pagein.store.search.shelves import Shelf, ShelfItem

_FIRST: Final = 16
_WINDOW: Final = 256
_FEW_CHARS: Final = 256 * 1024
_CHARS: Final = 2 * 1024 * 1024


def downwards(shelf: Shelf, above: int, below: int) -> Iterator[ShelfItem]:
    """Yield every item between two places, highest first."""
    upper, window = below - 1, _FIRST
    while upper > above:
        lower = max(above, upper - window)
        yield from reversed(shelf.between(lower, upper))
        upper, window = lower, min(2 * window, _WINDOW)


def at(shelf: Shelf, places: Iterator[int]) -> Iterator[ShelfItem]:
    """Yield the items at these places, highest first. None between them is read: most of its cost is that of a record."""
    window = _FIRST
    while some := list(islice(places, window)):
        yield from reversed(shelf.at(some))
        window = min(2 * window, _WINDOW)


def batches(things: Iterator[ShelfItem]) -> Iterator[list[ShelfItem]]:
    """Group items for reading: small groups first, and no group with much more text than a few megabytes."""
    group: list[ShelfItem] = []
    chars, most, count = 0, _FEW_CHARS, _FIRST
    for thing in things:
        group.append(thing)
        chars += thing.size
        if chars >= most or len(group) >= count:
            yield group
            group, chars = [], 0
            most, count = min(2 * most, _CHARS), min(2 * count, _WINDOW)
    if group:
        yield group
