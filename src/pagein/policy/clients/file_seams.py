"""Where a file stands in a window in pieces only: there an answer shows its text again, for an edit must quote it in one piece.

What an edit replaces it names byte for byte, some lines in a row. A text that was read, edited and read again can be known to its
last line and stand nowhere as a whole: one half of a function in the first read, the other half in the edit. So any so many lines in
a row of what an answer stands for are in one piece, in what it rests on or in the answer itself.
"""

from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import Final

from pagein.model.read_events import FileRead, FileWrite
from pagein.model.spans import Spans
from pagein.policy.clients.window_files import FileStatement

WHOLE: Final = 48
"""Lines in a row that an answer leaves in one piece: of the texts that recorded edits replaced, 95 of 100 are no longer."""

MOST_SEARCHED: Final = 64_000_000
"""Characters that are searched for one answer."""

_DIFFS: Final = ("diff", "range_diff")


def pieces(chain: Iterable[FileStatement]) -> list[str]:
    """The runs of lines that calls show of a file as its text, each with a line end in front and behind. A diff shows none: it marks its lines."""
    found: list[str] = []
    for one in chain:
        match one.event:
            case FileRead(mode=mode, emitted=emitted) if emitted is not None and mode not in _DIFFS:
                runs = emitted.runs
            case FileWrite(authored=authored):
                runs = authored.runs
            case _:
                continue
        lines = one.text.split("\n") if runs else []
        found += [_row(lines[first - 1 : last]) for first, last in runs]
    return found


def torn(lines: Sequence[str], first: int, held: Sequence[str], whole: int = WHOLE, most: int = MOST_SEARCHED) -> Spans:
    """Of these lines, which begin with number `first`, those in runs of `whole` that stand in none of the held pieces.

    Where runs end and begin is found by halving, so the work grows with the pieces that a text stands in, not with its lines. Beyond
    `most` characters searched all that is left counts as torn: it is shown, which is never wrong.
    """
    count = len(lines)
    whole = min(whole, count)
    cost, searched = sum(map(len, held)), 0

    def stands(begin: int, end: int) -> bool:
        nonlocal searched
        searched += cost
        row = _row(lines[begin:end])
        return any(row in piece for piece in held)

    def ends(end: int, size: int) -> bool:
        return stands(end - size, end)

    found: list[tuple[int, int]] = []
    at = 0
    while whole and at + whole <= count:
        if searched > most:
            found.append((first + at, first + count - 1))
            break
        if stands(at, at + whole):
            at = _last(at + whole, count, partial(stands, at)) - whole + 1
            continue
        # no run that ends with this one's last line begins in front of where the longest such run does
        end = at + whole
        begin = end - _last(0, whole, partial(ends, end))
        found.append((first + at, first + begin + whole - 2))
        at = begin
    return Spans.of(*((low, min(high, first + count - 1)) for low, high in found))


def _last(low: int, high: int, holds: Callable[[int], bool]) -> int:
    """The last number up to `high` of which this holds; it does of `low`, and of no number behind one of which it does not."""
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if holds(middle) else (low, middle - 1)
    return low


def _row(lines: Sequence[str]) -> str:
    return "\n".join(("", *lines, ""))
