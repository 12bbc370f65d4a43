"""Walk down a shelf in steps: small at first, larger on a longer way."""

from collections.abc import Iterator
from typing import Final

from pagein.store.search.shelves import Shelf, ShelfItem

_FIRST: Final = 16
_WINDOW: Final = 256
_GAP: Final = 16
"""Places with a larger distance than this are fetched separately."""
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
    """Yield the items at these places, highest first. Neighbouring places are fetched together."""
    near: list[int] = []
    window = _FIRST
    for place in places:
        if near and (near[-1] - place > _GAP or near[0] - place >= window):
            yield from _fetch_items(shelf, near)
            near, window = [], min(2 * window, _WINDOW)
        near.append(place)
    yield from _fetch_items(shelf, near)


def _fetch_items(shelf: Shelf, near: list[int]) -> Iterator[ShelfItem]:
    if near:
        wanted = set(near)
        yield from (thing for thing in reversed(shelf.between(near[-1] - 1, near[0])) if thing.place in wanted)


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
