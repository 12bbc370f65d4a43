r"""Match a pattern against a file line by line, as people know it from grep.

Rules of this file
------------------
1. Lines end at line feeds only; a carriage return before one belongs to the end of the line.
2. An expression matches within one line, `^` and `$` are the ends of the line, and a line is reported once. `\A` and `\z`
   are the ends of the file.
3. A literal may have several lines. It is reported once for each line where it begins.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from pagein.policy.recall.pattern_search import LONGEST_MATCH, Pattern, is_inside_character


@dataclass(frozen=True, slots=True)
class LineMatch:
    """A place in a text.

    first, last: its lines, from 1.
    column: first character of the match in its line, from 1.
    text: the first line, shortened around the match if it is long.
    is_shortened: whether it is.
    """

    first: int
    last: int
    column: int
    text: str
    is_shortened: bool = False


def match_lines(pattern: Pattern, text: str) -> Iterator[LineMatch]:
    """Yield the lines of a text where a match begins, in order."""
    # a byte order mark is not part of the first line: `^` is behind it
    data = text.removeprefix("\ufeff").replace("\r\n", "\n").encode("utf-8", "surrogatepass")
    places = _literally(pattern.literal, data) if pattern.expression is None else _by_line(pattern.expression, data)
    line, counted = 1, 0
    for start, end in places:
        line += data.count(b"\n", counted, start)
        counted = start
        begin = data.rfind(b"\n", 0, start) + 1
        stop = data.find(b"\n", start)
        whole = data[begin : len(data) if stop < 0 else stop].decode("utf-8", "surrogatepass")
        column = len(data[begin:start].decode("utf-8", "surrogatepass")) + 1
        last = line + data.count(b"\n", start, end)
        yield LineMatch(line, last, column, _shorten(whole, column), len(whole) > LONGEST_MATCH)


def _literally(literal: str, data: bytes) -> Iterator[tuple[int, int]]:
    wanted = literal.replace("\r\n", "\n").encode("utf-8", "surrogatepass")
    at = data.find(wanted)
    while at >= 0:
        yield at, at + len(wanted)
        stop = data.find(b"\n", at)
        at = -1 if stop < 0 else data.find(wanted, stop + 1)


def _by_line(expression: str, data: bytes) -> Iterator[tuple[int, int]]:
    compiled = _compile(expression)
    # a text that ends with a line feed has no further line behind it
    end, at = len(data) - data.endswith(b"\n"), 0
    while data and at <= end and (match := compiled.search(data, at)) is not None:
        start, stop = match.span()
        if start > end:
            return
        if is_inside_character(data, start):
            at = start + 1
            continue
        yield start, stop
        following = data.find(b"\n", start)
        if following < 0:
            return
        at = following + 1


@lru_cache(maxsize=16)
def _compile(expression: str) -> Any:  # noqa: ANN401  re2 ships no types
    import re2

    options: Any = re2.Options()
    options.log_errors = False
    options.never_capture = True
    options.never_nl = True
    return re2.compile(f"(?m){expression}".encode(), options)


def _shorten(line: str, column: int) -> str:
    if len(line) <= LONGEST_MATCH:
        return line
    start = max(0, min(column - 1 - LONGEST_MATCH // 4, len(line) - LONGEST_MATCH))
    left, right = "…" if start else "", "…" if start + LONGEST_MATCH < len(line) else ""
    return f"{left}{line[start : start + LONGEST_MATCH]}{right}"
