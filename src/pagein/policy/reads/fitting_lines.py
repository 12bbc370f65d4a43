"""How much of a text fits into a number of characters."""

from collections.abc import Iterable, Sequence
from typing import Final

from pagein.model.spans import Run

NOTICE_ROOM: Final = 90
"""Characters for a closing notice with large numbers."""


def count_fitting(lines: Sequence[str], room: int) -> int:
    """Return how many of these lines fit into a number of characters, line feeds between them included."""
    used = -1
    for count, line in enumerate(lines):
        used += len(line) + 1
        if used > room:
            return count
    return len(lines)


def size_of(lines: Sequence[str], shown: Iterable[Run]) -> int:
    """Return the characters of some runs of lines, with a line for what is left out before each."""
    return sum(NOTICE_ROOM + sum(len(line) + 1 for line in lines[first - 1 : last]) for first, last in shown)
