"""Find quoted text in a recalled object, and show the lines around it.

Rules of this file
------------------
1. A quote matches line by line: each of its lines, without the spaces around it, stands in the line of the object. So a
   quote is found behind line numbers, and with another indentation.
2. The answer shows the first match, with as many lines before as behind it, and names the lines of the others.
3. Lines that are too long to show in whole are cut around the match.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import islice
from typing import Final

from pagein.model.read_caps import DEFAULT_CAPS, ReadCaps
from pagein.policy.recall.text_slices import LENGTH, Slice, by_characters, by_lines, end_of_lines

CONTEXT: Final = 40
"""Default number of lines shown around a match, before and behind it together."""
_MOST_TRIED: Final = 10_000
_MOST_MATCHES: Final = 100
_MOST_NAMED: Final = 5


def around(object_id: str, text: str, quote: str, lines: int = CONTEXT, caps: ReadCaps = DEFAULT_CAPS) -> Slice:
    r"""Return the first place of a quote in a text, with the lines around it.

    lines: number of lines before and behind the match together; half of them on each side.

    >>> around("pg-1", "a\nb\n  3\tif x:\n  4\t    y()\nc\n", "if x:\n  y()", lines=2).text
    'b\n  3\tif x:\n  4\t    y()\nc\n'
    """
    wanted = quote.strip().split("\n")
    places = list(islice(_matches(text, [one.strip() for one in wanted]), _MOST_MATCHES))
    if not places:
        tried = text.count(max((one.strip() for one in wanted), key=len)) > _MOST_TRIED
        found = "contains this text at none of the places that were tried" if tried else "does not contain this text"
        why = f"[Object {object_id} {found}. Search for a part of it, or show it by line.]"
        return Slice("", 0, 0, len(text), (why,))
    line, start = places[0]
    side = max(0, lines) // 2
    first = max(1, line - side)
    room = caps.bytes // 4  # a character takes at most four bytes
    if end_of_lines(text, start, len(wanted)) - _start(text, start, line - first) <= min(room, LENGTH * 10):
        part = by_lines(object_id, text, first, line - first + len(wanted) + side, caps)
    else:
        begin = max(0, start - LENGTH // 2)
        part = by_characters(object_id, text, begin, LENGTH + len(quote), caps)
    others = [str(one) for one, _ in places[1 : _MOST_NAMED + 1]]
    if not others:
        return part
    more = "" if len(places) <= _MOST_NAMED + 1 else ", and others"
    return replace(
        part, hints=(f"[Showing the first match; others are at lines {', '.join(others)}{more}.]", *part.hints)
    )


def _matches(text: str, wanted: Sequence[str]) -> Iterator[tuple[int, int]]:
    """Yield the matches, as line of the first line and as offset of the match. Overlapping ones count once."""
    anchor = max(wanted, key=len)
    ahead = wanted.index(anchor)
    at, line, counted, last = text.find(anchor), 1, 0, 0
    for _ in range(_MOST_TRIED):
        if at < 0:
            return
        line += text.count("\n", counted, at)
        counted = at
        start = _start(text, at, ahead)
        if line - ahead > last and text.count("\n", start, at) == ahead and _stands_at(text, start, wanted):
            last = line - ahead + len(wanted) - 1
            yield line - ahead, at if len(wanted) == 1 else start
        at = text.find(anchor, at + 1)


def _stands_at(text: str, start: int, wanted: Sequence[str]) -> bool:
    """Return whether each line from an offset on contains the wanted one."""
    for one in wanted:
        if start > len(text):
            return False
        end = text.find("\n", start)
        end = len(text) if end < 0 else end
        if text.find(one, start, end) < 0:
            return False
        start = end + 1
    return True


def _start(text: str, at: int, lines: int) -> int:
    """Return the beginning of the line some lines before an offset."""
    start = text.rfind("\n", 0, at) + 1
    for _ in range(lines):
        if start == 0:
            break
        start = text.rfind("\n", 0, start - 1) + 1
    return start
