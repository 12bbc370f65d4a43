"""Slices of a recalled text within the bounds of an answer, with hints for the next slice.

Rules of this file
------------------
1. A hint names the true end of the shown text: a reader who follows the hints reads the whole text, none of it twice.
2. A slice is at least one character, so that a reader who goes on comes to an end.
3. Offsets count characters from 0, lines count from 1 and end at line feeds alone, which belong to the line before
   them.
4. A last slice that ends in something like a hint is told from one by a line that says it is the end.
"""

import re
from dataclasses import dataclass
from typing import Final, Literal, TypeAlias

from pagein.model.read_caps import DEFAULT_CAPS, ReadCaps

LENGTH: Final = 2000
"""Default number of characters shown."""
LINES: Final = 100
"""Default number of lines shown."""

_HINTLIKE: Final = re.compile(r"\[(?:Showing|Output truncated|End of|Offset|Line|Object) [^\n]*\]\n?\Z")
_LONGEST_HINT: Final = 400

Next: TypeAlias = tuple[Literal["offset", "line"], int]
"""The argument for the next slice, and its value."""


@dataclass(frozen=True, slots=True)
class Slice:
    """Characters `start` to `end` of an object's text of `total` characters.

    text: these characters. hints: lines to show after them. following: argument for the next slice; None at the end.
    """

    text: str
    start: int
    end: int
    total: int
    hints: tuple[str, ...] = ()
    following: Next | None = None

    @property
    def as_text(self) -> str:
        """The slice with hints, each on a separate line."""
        return "\n".join((self.text, *self.hints)) if self.text or not self.hints else "\n".join(self.hints)


def by_characters(
    object_id: str, text: str, offset: int = 0, length: int = LENGTH, caps: ReadCaps = DEFAULT_CAPS
) -> Slice:
    """Return `length` characters from `offset` on, or as many as fit the caps; too low numbers are raised."""
    total, start = len(text), max(0, offset)
    if start >= total:
        return _empty_slice(
            object_id, start, total, f"[Offset {start} is beyond the end: object {object_id} has {total} chars.]"
        )
    wanted = min(start + max(1, length), total)
    end = start + _chars_that_fit(text[start:wanted], caps)
    cut = (f"[Output truncated. Object {object_id} has {total} total chars.]",) if end < wanted else ()
    return _show_slice(object_id, text, (start, end), cut)


def by_lines(object_id: str, text: str, line: int = 1, lines: int = LINES, caps: ReadCaps = DEFAULT_CAPS) -> Slice:
    """Return `lines` lines from `line` on, or as many as fit the caps.

    Of a line that does not fit, the part that fits is shown.
    """
    total, first = len(text), max(1, line)
    count = text.count("\n") + 1
    if first > count or not text:
        return _empty_slice(
            object_id, total, total, f"[Line {first} is beyond the end: object {object_id} has {count} lines.]"
        )
    start = _start_of(text, first)
    if start == total:  # the empty line after the last line feed
        return _empty_slice(object_id, total, total, f"[End of {object_id}: {total} chars.]")
    wanted = end_of_lines(text, start, max(1, lines))
    end = start + _chars_that_fit(text[start:wanted], caps)
    cut = (f"[Output truncated. Object {object_id} has {total} total chars.]",) if end < wanted else ()
    if end == total or text[end - 1] != "\n":
        return _show_slice(object_id, text, (start, end), cut)
    last = first + text.count("\n", start, end) - 1
    hint = f"[Showing lines {first}\u2013{last} of {count}. Use line={last + 1} to continue.]"
    return Slice(text[start:end], start, end, total, (*cut, hint), ("line", last + 1))


def end_of_lines(text: str, start: int, lines: int) -> int:
    """Return where so many lines end, the line of an offset first; the end of the text where there are fewer."""
    end = start
    for _ in range(lines):
        found = text.find("\n", end)
        if found < 0:
            return len(text)
        end = found + 1
    return end


def _show_slice(object_id: str, text: str, where: tuple[int, int], cut: tuple[str, ...]) -> Slice:
    start, end = where
    total, part = len(text), text[start:end]
    if end < total:
        hint = f"[Showing {start}\u2013{end} of {total} chars. Use offset={end} to continue.]"
        return Slice(part, start, end, total, (*cut, hint), ("offset", end))
    looks_so = _HINTLIKE.search(part[-_LONGEST_HINT:]) is not None
    return Slice(part, start, end, total, (f"[End of {object_id}: {total} chars.]",) if looks_so else ())


def _empty_slice(object_id: str, start: int, total: int, why: str) -> Slice:
    # an empty result says nothing to a model, and some providers refuse it
    return Slice(
        "", min(start, total), min(start, total), total, (why if total else f"[Object {object_id} is empty.]",)
    )


def _start_of(text: str, line: int) -> int:
    start = 0
    for _ in range(line - 1):
        start = text.index("\n", start) + 1
    return start


def _chars_that_fit(part: str, caps: ReadCaps) -> int:
    """Return the length of a part to show: at least 1, and whole lines if they are at least half of the room."""
    fits = min(_chars_of_lines(part, caps.lines), _chars_of_bytes(part, caps.bytes))
    if fits >= len(part):
        return len(part)
    whole = part.rfind("\n", 0, fits) + 1
    return max(whole if 2 * whole >= fits else fits, 1)


def _chars_of_lines(part: str, lines: int) -> int:
    return end_of_lines(part, 0, max(1, lines))


def _chars_of_bytes(part: str, size: int) -> int:
    # each character takes at least a byte, so `size` characters are enough
    encoded = part[:size].encode("utf-8", "surrogatepass")
    if len(encoded) <= size:
        return min(len(part), size)
    end = size
    while end > 0 and encoded[end] & 0xC0 == 0x80:  # noqa: PLR2004  the bytes of a character after its first
        end -= 1
    return len(encoded[:end].decode("utf-8", "surrogatepass"))
