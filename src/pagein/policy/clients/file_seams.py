"""Seams: places where the window shows a file only in pieces, and an edit could not quote across.

An edit names the text that it replaces byte for byte, some lines in a row. A text that was read, edited and read again
can be known to its last line and yet be nowhere as a whole: one half of a function in the first read, the other half in
the edit. So any `WHOLE` lines in a row of the text that an answer stands for are in one piece, in its base or in the
answer itself.
"""

from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import Final

from pagein.model.read_events import FileRead, FileWrite
from pagein.model.spans import Spans
from pagein.policy.clients.window_files import FileStatement

WHOLE: Final = 48
"""Lines in a row that an answer leaves in one piece: 95 of 100 texts that recorded edits replaced are no longer."""

MOST_SEARCHED: Final = 64_000_000
"""Maximum characters searched for one answer."""

_DIFFS: Final = ("diff", "range_diff")


def pieces(chain: Iterable[FileStatement]) -> list[str]:
    """Return the runs of a file's lines that calls show as text, each between line ends.

    A diff shows none, as it marks its lines.
    """
    found: list[str] = []
    for one in chain:
        match one.event:
            case FileRead(mode=mode, emitted=emitted) if emitted is not None and mode not in _DIFFS:
                runs = emitted.runs
            case FileWrite(authored=authored):
                runs = authored.runs
            case _:
                continue
        lines = one.text.split("\n") if runs and one.text is not None else []
        found += [_row(lines[first - 1 : last]) for first, last in runs]
    return found


def torn(lines: Sequence[str], first: int, held: Sequence[str], whole: int = WHOLE, most: int = MOST_SEARCHED) -> Spans:
    """Return the lines in runs of `whole` lines that no held piece contains.

    first: number of the first line.
    Where runs end and begin is found by halving, so the work grows with the pieces that a text is in, not with its
    lines. After a search of `most` characters, all remaining lines count as torn, so they are shown, which is always safe.
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
        # a run that ends with the same last line cannot begin earlier than the longest such run
        end = at + whole
        begin = end - _last(0, whole, partial(ends, end))
        found.append((first + at, first + begin + whole - 2))
        at = begin
    return Spans.of(*((low, min(high, first + count - 1)) for low, high in found))


def _last(low: int, high: int, holds: Callable[[int], bool]) -> int:
    """Return the last number up to `high` with a true `holds`, by halving; `low` is true, and after a false number
    every number is false.
    """
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if holds(middle) else (low, middle - 1)
    return low


def _row(lines: Sequence[str]) -> str:
    return "\n".join(("", *lines, ""))
