"""The host's built-in `read`, reproduced: the baseline for every saving.

Parity matters, oddities included: lines are split at line feeds alone, so that a trailing newline makes one more line;
offsets and limits that are zero, negative or fractional do what a JavaScript slice does with them; the counts in
`truncation` describe the selected text, not the file. Nothing here touches a file.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from pagein.errors import BadInput
from pagein.model.documents import TextLines
from pagein.model.read_caps import DEFAULT_CAPS, ReadCaps

_KIB = 1024
_MIB = 1024 * 1024
_JS_EXPONENT_FROM = 1e21


@dataclass(frozen=True, slots=True)
class Truncation:
    """The cut of a text to the caps.

    by: the cap that applied; None for an uncut text. Sizes are in bytes of UTF-8.
    """

    content: str
    by: Literal["lines", "bytes"] | None
    total_lines: int
    total_bytes: int
    output_lines: int
    output_bytes: int
    caps: ReadCaps
    first_line_exceeds: bool = False

    @property
    def details(self) -> dict[str, object]:
        """`details.truncation` as the host's renderer expects it."""
        return {
            "content": self.content,
            "truncated": self.by is not None,
            "truncatedBy": self.by,
            "totalLines": self.total_lines,
            "totalBytes": self.total_bytes,
            "outputLines": self.output_lines,
            "outputBytes": self.output_bytes,
            "lastLinePartial": False,
            "firstLineExceedsLimit": self.first_line_exceeds,
            "maxLines": self.caps.lines,
            "maxBytes": self.caps.bytes,
        }


@dataclass(frozen=True, slots=True)
class Baseline:
    """The host's answer to a read.

    body: the lines shown, joined by line feeds.
    notice: text after them where more follows, with the blank line before it; alone where not even the first line fits.
    first, shown: `body` holds exactly `shown` lines from line `first` (from 1).
    total: lines in the file, a trailing newline counting as one more.
    truncation: how it was cut, None where it was not.
    """

    body: str
    notice: str
    first: int
    shown: int
    total: int
    truncation: Truncation | None = None

    @property
    def text(self) -> str:
        """The text for the model."""
        return self.body + self.notice

    @property
    def last(self) -> int:
        """Number of the last line shown; `first - 1` for no line."""
        return self.first + self.shown - 1

    @property
    def details(self) -> dict[str, object]:
        """The host's details: empty, or the truncation."""
        return {} if self.truncation is None else {"truncation": self.truncation.details}


def baseline(
    text: str | Sequence[str],
    given: str,
    *,
    offset: float | None = None,
    limit: float | None = None,
    caps: ReadCaps = DEFAULT_CAPS,
) -> Baseline:
    """Return the host's answer to a read of a file with this text, by the path `given`.

    text: the whole text, or its lines.
    offset: first line, from 1. limit: number of lines.
    Raises BadInput, in the host's words, past the end.
    """
    lines = TextLines(text) if isinstance(text, str) else text
    start: float = max(0, offset - 1) if offset else 0
    if start >= len(lines):
        raise BadInput(f"Offset {number(offset or 0)} is beyond end of file ({len(lines)} lines total)")
    end = len(lines) if limit is None else min(start + limit, len(lines))
    first, last, _ = slice(int(start), int(end)).indices(len(lines))
    selected = max(0, last - first)
    told = lines.joined(first, last) if isinstance(lines, TextLines) else "\n".join(lines[first:last])
    cut = _truncated(told, selected, lines[first : min(last, first + max(1, caps.lines))], caps)
    notice = closing_notice(end, len(lines)) if cut.by is None else _cut_notice(cut, lines, start, given)
    return Baseline(
        body=cut.content,
        notice=notice,
        first=int(start) + 1,
        shown=selected if cut.by is None else cut.output_lines,
        total=len(lines),
        truncation=None if cut.by is None else cut,
    )


def closing_notice(end: float, total: int, tool: str = "") -> str:
    """Return the text behind the lines up to `end` of a file of `total` lines, "" for the whole rest.

    tool: what stands before the offset, where another tool or mode than the one that answers takes it.
    """
    if end >= total:
        return ""
    return f"\n\n[{number(total - end)} more lines in file. Use {tool}offset={number(end + 1)} to continue.]"


def truncate(lines: list[str], caps: ReadCaps = DEFAULT_CAPS) -> Truncation:
    """Return the first lines within both caps; each line feed between lines counts."""
    return _truncated("\n".join(lines), len(lines), lines, caps)


def _truncated(text: str, total: int, lines: Sequence[str], caps: ReadCaps) -> Truncation:
    """Return what `truncate` does of a text. total: its lines. lines: as many of the first as may be shown, or more."""
    count = max(1, total)
    size = byte_length(text)
    if count <= caps.lines and size <= caps.bytes:
        return Truncation(text, None, count, size, count, size, caps)
    if byte_length(lines[0]) > caps.bytes:
        return Truncation("", "bytes", count, size, 0, 0, caps, first_line_exceeds=True)
    kept, used, by = _count_fitting(lines, caps)
    return Truncation("\n".join(lines[:kept]), by, count, size, kept, used, caps)


def _count_fitting(lines: Sequence[str], caps: ReadCaps) -> tuple[int, int, Literal["lines", "bytes"]]:
    some = lines[: caps.lines]
    whole = byte_length("\n".join(some))
    if whole <= caps.bytes:
        return len(some), whole, "lines"
    used = 0
    for index, line in enumerate(some):
        more = byte_length(line) + (1 if index else 0)
        if used + more > caps.bytes:
            return index, used, "bytes"
        used += more
    raise AssertionError("the lines are longer than the cap, so one of them is the first that is too much")


def _cut_notice(cut: Truncation, lines: Sequence[str], start: float, given: str) -> str:
    first = number(start + 1)
    if cut.first_line_exceeds:
        size = format_size(byte_length(lines[int(start)]))
        remedy = f"Use bash: sed -n '{first}p' {given} | head -c {cut.caps.bytes}"
        return f"[Line {first} is {size}, exceeds {format_size(cut.caps.bytes)} limit. {remedy}]"
    last = start + cut.output_lines
    limit = f" ({format_size(cut.caps.bytes)} limit)" if cut.by == "bytes" else ""
    shown = f"Showing lines {first}-{number(last)} of {len(lines)}{limit}."
    return f"\n\n[{shown} Use offset={number(last + 1)} to continue.]"


def byte_length(text: str) -> int:
    """Return the length in bytes of UTF-8; a lone surrogate counts as its replacement character."""
    return len(text) if text.isascii() else len(text.encode(errors="surrogatepass"))


def format_size(size: int) -> str:
    """Format a size as the host does: `900B`, `50.0KB`, `1.5MB`."""
    if size < _KIB:
        return f"{size}B"
    if size < _MIB:
        return f"{_one_decimal(size, _KIB)}KB"
    return f"{_one_decimal(size, _MIB)}MB"


def _one_decimal(size: int, unit: int) -> str:
    # exact halves go up, as in JavaScript's toFixed; Python's formatting rounds them to even
    tenths = (size * 10 * 2 + unit) // (unit * 2)
    return f"{tenths // 10}.{tenths % 10}"


def number(value: float) -> str:
    """Format a number as JavaScript does: no `.0` behind whole numbers."""
    if isinstance(value, int) or (value.is_integer() and abs(value) < _JS_EXPONENT_FROM):
        return str(int(value))
    return repr(value).replace("inf", "Infinity").replace("nan", "NaN")
