"""Find the messages of a session's requests that name a cache breakpoint."""

from bisect import bisect_left
from collections.abc import Sequence
from typing import Final

from pagein.engine.intake.message_chain import alike

_MARK: Final = b'"cache_control"'


class MarkedMessages:
    """The messages of the last request that name a breakpoint. Not thread-safe.

    Most of a request was in the one before, and is not searched again: its bytes are the same.
    """

    def __init__(self) -> None:
        self._items: Sequence[bytes] = ()
        self._marked: list[int] = []

    def find(self, items: Sequence[bytes]) -> list[int]:
        """Return the numbers of the messages that name a breakpoint, in their text or as a field."""
        items = tuple(items)
        same = alike(items, self._items)
        known = self._marked[: bisect_left(self._marked, same)]
        self._items = items
        self._marked = [*known, *(place for place in range(same, len(items)) if _MARK in items[place])]
        return self._marked
