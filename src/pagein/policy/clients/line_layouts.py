"""Layouts of read tools' results: recover the file's lines from a result."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from pagein.model.messages import FileAccess
from pagein.policy.clients.shell_reads import ExactRead

_LONGEST_LINE: Final = 2000  # characters; read tools cut longer lines, so the result does not show the line
_MOST_LINES: Final = 2000  # where read tools stop although more was asked for
_NUMBERED: Final = r"[ ]*(\d+)\t"
_RANGE: Final = ("offset", "limit", "start_line", "end_line")


@dataclass(frozen=True, slots=True)
class ShownText:
    """The lines of a file that a result shows.

    path: as the call gives it. first: number of the first line. lines: their text, without gutter.
    total: lines of the file as the client counts them; None if the result does not state it.
    before, after: characters of the result in front of and behind the lines (wrappers, notices).
    gutter: regular expression of the text before each line; "" for no gutter.
    to_end: whether the output of a command ended with the file's last line.
    """

    path: str
    first: int
    lines: tuple[str, ...]
    total: int | None
    before: int = 0
    after: int = 0
    gutter: str = ""
    to_end: bool = False

    @property
    def last(self) -> int:
        """Number of the last line."""
        return self.first + len(self.lines) - 1

    @property
    def length(self) -> int | None:
        """Lines of the file, as far as the result proves them; None if unknown."""
        return self.last if self.total is None and self.to_end else self.total

    def rows(self, text: str) -> list[str]:
        """Return the lines as they are in this result, with gutters."""
        return self._core(text).split("\n")

    def with_text(self, text: str, core: str) -> str:
        """Return the result with other text in place of the lines; wrappers and notices stay."""
        return text[: self.before] + core + text[len(text) - self.after :]

    def size(self, text: str) -> int:
        """Return the number of characters that the lines take in the result."""
        return len(self._core(text))

    def _core(self, text: str) -> str:
        return text[self.before : len(text) - self.after]


@dataclass(frozen=True, slots=True)
class LineLayout:
    """One way to show lines.

    before: text in front of the first line; groups for a layout without gutter: `first` and `last` line shown, and
        `total`.
    gutter: text before each line, with group 1 its number; "" for unnumbered lines.
    after: text that may follow the last line; group `total`: lines of the file, `more`: lines that follow, `next`: the
        line to continue with.
    cuts: whether long lines are cut without a trace, and long files without a notice.
    whole: for a layout without gutter: whether it shows whole files only, whatever part was asked for.
    """

    before: re.Pattern[str]
    gutter: str
    after: re.Pattern[str]
    cuts: bool = False
    whole: bool = False


def lines_shown_by(
    layouts: Sequence[LineLayout], access: FileAccess, arguments: Mapping[str, object], text: str
) -> ShownText | None:
    """Return the lines in a read tool's result, by the first layout to fit."""
    if not _is_plain(arguments):
        return None
    for layout in layouts:
        shown = _numbered_lines(layout, access, text) if layout.gutter else _plain_lines(layout, access, text)
        if shown is not None:
            return shown if all(len(line) < _LONGEST_LINE for line in shown.lines) else None
    return None


def _is_plain(arguments: Mapping[str, object]) -> bool:
    """Return whether the range means the same to every client: positive whole numbers, or absent."""
    asked = (arguments.get(name) for name in _RANGE)
    return all(one is None or (isinstance(one, int) and not isinstance(one, bool) and one > 0) for one in asked)


def _numbered_lines(layout: LineLayout, access: FileAccess, text: str) -> ShownText | None:
    head = layout.before.match(text)
    if head is None:
        return None
    begin = head.end()
    gutter = re.compile(layout.gutter)
    rows, at, first = list[str](), begin, 0
    for row in text[begin:].split("\n"):
        match = gutter.match(row)
        if match is None or (rows and int(match[1]) != first + len(rows)):
            break
        first = first or int(match[1])
        rows.append(row[match.end() :])
        at += len(row) + 1
    at -= 1
    tail = layout.after.fullmatch(text, max(at, begin))
    if not rows or tail is None or first != (access.start or 1):
        return None
    total = _total(layout, tail, access, first, len(rows))
    last = first + len(rows) - 1
    if total is not None and total < last:
        return None
    return ShownText(access.path, first, tuple(rows), total, begin, len(text) - at, layout.gutter)


def _plain_lines(layout: LineLayout, access: FileAccess, text: str) -> ShownText | None:
    """Return unnumbered lines, without the notices around the lines; None if a notice contradicts them."""
    head = layout.before.match(text)
    if head is None or not text:
        return None
    begin, first = head.end(), access.start or 1
    tail = layout.after.search(text, begin)
    end = len(text) if tail is None else tail.start()
    lines = tuple(text[begin:end].split("\n"))
    following = first + len(lines)
    if tail is not None and _number(tail, "next") not in (None, following):
        return None
    if _number(head, "first") not in (None, first) or _number(head, "last") not in (None, following - 1):
        return None
    if layout.whole and (first > 1 or (access.end is not None and access.end < following - 1)):
        return None
    total = _number(head, "total")
    if total is None:
        total = following - 1 if tail is None else _total(layout, tail, access, first, len(lines))
    if total is not None and total < following - 1:
        return None
    return ShownText(access.path, first, lines, total, begin, len(text) - end)


def _total(layout: LineLayout, tail: re.Match[str], access: FileAccess, first: int, count: int) -> int | None:
    last = first + count - 1
    told, more = _number(tail, "total"), _number(tail, "more")
    if told is not None:
        return told
    if more is not None:
        return last + more
    if _number(tail, "next") is not None:  # more lines follow, of unknown number
        return None
    if access.end is not None:
        return last if last < access.end else None
    return None if layout.cuts and count >= _MOST_LINES else last


def _number(match: re.Match[str], name: str) -> int | None:
    found = match.groupdict().get(name)
    return None if found is None else int(found)


def raw_text(read: ExactRead, text: str, begin: int) -> ShownText | None:
    """Return the lines in the output of a command for showing one file.

    begin: where the output begins.
    """
    end = len(text) - text.endswith("\n") if len(text) > begin else len(text)
    if end <= begin:
        return None
    rows = text[begin:end].split("\n")
    asked = None if read.last is None else read.last - read.first + 1
    if asked is not None and len(rows) > asked:
        return None
    to_end = asked is None or len(rows) < asked
    if not read.numbered:
        return ShownText(read.path, read.first, tuple(rows), None, begin, len(text) - end, to_end=to_end)
    gutter = re.compile(_NUMBERED)
    found = [gutter.match(row) for row in rows]
    lines = tuple(
        row[match.end() :]
        for n, (row, match) in enumerate(zip(rows, found, strict=True), read.first)
        if match is not None and int(match[1]) == n
    )
    if len(lines) < len(rows):
        return None
    return ShownText(read.path, read.first, lines, None, begin, len(text) - end, _NUMBERED, to_end)
