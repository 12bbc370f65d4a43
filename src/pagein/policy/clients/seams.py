"""Where a file stands in a window in pieces only: there an answer shows its text again, for an edit must quote it in one piece.

What an edit replaces it names byte for byte, some lines in a row. A text that was read, edited and read again can be known to its
last line and stand nowhere as a whole: one half of a function in the first read, the other half in the edit. So any so many lines in
a row of what an answer stands for are in one piece, in what it rests on or in the answer itself.
"""

from collections.abc import Iterable, Sequence
from typing import Final

from pagein.model.reading import FileAuthored, ReadServed
from pagein.model.spans import Spans
from pagein.policy.clients.chains import Held

WHOLE: Final = 48
"""Lines in a row that an answer leaves in one piece: of the texts that recorded edits replaced, 95 of 100 are no longer."""

_DIFFS: Final = ("diff", "range_diff")


def pieces(chain: Iterable[Held]) -> list[str]:
    """The runs of lines that calls show of a file as its text, each with a line end in front and behind. A diff shows none: it marks its lines."""
    found: list[str] = []
    for one in chain:
        match one.event:
            case ReadServed(mode=mode, emitted=emitted) if emitted is not None and mode not in _DIFFS:
                runs = emitted.runs
            case FileAuthored(authored=authored):
                runs = authored.runs
            case _:
                continue
        lines = one.text.split("\n") if runs else []
        found += [_row(lines[first - 1 : last]) for first, last in runs]
    return found


def torn(lines: Sequence[str], first: int, held: Sequence[str], whole: int = WHOLE) -> Spans:
    """Of these lines, which begin with number `first`, those in runs of `whole` that stand in none of the held pieces.

    The longest run from each line on is found by halving, so a text that stands in few pieces costs few looks at them.
    """
    count = len(lines)
    whole = min(whole, count)

    def stands(begin: int, end: int) -> bool:
        row = _row(lines[begin:end])
        return any(row in piece for piece in held)

    found: list[tuple[int, int]] = []
    at = 0
    while at + whole <= count:
        if not stands(at, at + whole):
            found.append((first + at, first + at + whole - 1))
            at += 1
            continue
        low, high = at + whole, count
        while low < high:
            middle = (low + high + 1) // 2
            low, high = (middle, high) if stands(at, middle) else (low, middle - 1)
        at = low - whole + 1
    return Spans.of(*found)


def _row(lines: Sequence[str]) -> str:
    return "\n".join(("", *lines, ""))
