"""Changes of lines as a person would draw them.

Where lines were put in or taken out beside equal lines, several places explain the same two texts: of two functions that
end alike, either end may be the new one. The natural place begins where a part begins: at the line that is least indented,
behind a blank line if there is one.
"""

from collections.abc import Sequence
from typing import Final

from pagein.policy.reads.line_diff import LineChange, changes

_STRIDE: Final = 64  # lines compared at once
_LEAST_BUDGET: Final = 300_000  # steps; a tenth of a second
_FURTHEST: Final = 100  # lines; no part is longer


def natural_changes(old: Sequence[str], new: Sequence[str]) -> list[LineChange]:
    """Return the changes from `old` to `new`, in order. Texts that are mostly the same cost little."""
    first, shortest = 0, min(len(old), len(new))
    while first + _STRIDE <= shortest and old[first : first + _STRIDE] == new[first : first + _STRIDE]:
        first += _STRIDE
    last, rest = 0, shortest - first
    while last + _STRIDE <= rest and old[-last - _STRIDE : len(old) - last] == new[-last - _STRIDE : len(new) - last]:
        last += _STRIDE
    a, b = old[first : len(old) - last], new[first : len(new) - last]
    found = changes(a, b, _LEAST_BUDGET + 4 * (len(a) + len(b)))
    placed: list[LineChange] = []
    for k, one in enumerate(found):
        change = LineChange(one.i1 + first, one.i2 + first, one.j1 + first, one.j2 + first)
        above = change.i1 - (placed[-1].i2 + 1 if placed else 0)
        below = (found[k + 1].i1 + first - 1 if k + 1 < len(found) else len(old)) - change.i2
        if change.i1 == change.i2:
            shift = _shift(new, change.j1, change.j2, above, below)
        elif change.j1 == change.j2:
            shift = _shift(old, change.i1, change.i2, above, below)
        else:
            shift = 0
        placed.append(LineChange(*(place + shift for place in change)))
    return placed


def _shift(lines: Sequence[str], first: int, stop: int, above: int, below: int) -> int:
    """Return by how many lines to shift the lines `[first, stop)`.

    above, below: the furthest. One line that both texts share stays between two changes, none at the ends of the file.
    """
    up = 0
    while up < min(above, _FURTHEST) and lines[first - up - 1] == lines[stop - up - 1]:
        up += 1
    down = 0
    while down < min(below, _FURTHEST) and lines[first + down] == lines[stop + down]:
        down += 1
    if not up and not down:
        return 0
    return min(range(-up, down + 1), key=lambda shift: (*_badness(lines, first + shift, stop + shift), -shift))


def _badness(lines: Sequence[str], first: int, stop: int) -> tuple[int, int]:
    """Return how unnatural a division is with a part from `first` and another from `stop`."""
    ends = (_indentation(lines, first), _indentation(lines, stop))
    is_inside = sum(not _is_blank(lines, place - 1) or _is_blank(lines, place) for place in (first, stop))
    return sum(ends), is_inside


def _is_blank(lines: Sequence[str], place: int) -> bool:
    return not 0 <= place < len(lines) or not lines[place].strip()


def _indentation(lines: Sequence[str], place: int) -> int:
    """Return the indentation of the first line from here on that is not blank."""
    while place < len(lines):
        text = lines[place].expandtabs(8)
        if text.strip():
            return len(text) - len(text.lstrip())
        place += 1
    return 0
