"""Find the places where a text may be cut: definitions of code, headings of prose, records of logs.

Rules of this file
------------------
1. An edge is the offset at which a unit begins. Its level is 0 for the outermost units, and grows inwards.
2. Only structure has edges here. Ends of lines are found where they are needed.
3. The kind of a text comes from its name; without a telling name, from its first lines.
"""

import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Final, Literal, TypeAlias

from pagein.model.symbols import Definition

TextKind: TypeAlias = Literal["code", "prose", "records", "lines"]

_PROSE: Final = (".md", ".markdown", ".mdx", ".rst", ".txt", ".adoc")
_RECORDS: Final = (".jsonl", ".ndjson", ".log", ".csv", ".tsv")
_CODE: Final = (
    ".bash", ".c", ".cc", ".cpp", ".cs", ".go", ".h", ".hpp", ".java", ".js", ".jsx", ".kt", ".lua", ".mjs", ".php",
    ".pl", ".py", ".rb", ".rs", ".scala", ".sh", ".sql", ".swift", ".ts", ".tsx",
)  # fmt: skip
_QUOTING: Final = (".csv", ".tsv")
_STAMP: Final = re.compile(
    r"(?:\[|\()?(?:\d{4}-\d\d-\d\d[T ]\d\d:\d\d|\d\d:\d\d:\d\d|[A-Z][a-z]{2} [ \d]\d \d\d:\d\d:\d\d"
    r"|(?:TRACE|DEBUG|INFO|WARN|WARNING|ERROR|FATAL|CRITICAL)\b)"
)
_HEADING: Final = re.compile(r"(#{1,6})[ \t]")
_FENCE: Final = re.compile(r" {0,3}(```+|~~~+)")
_SAMPLE: Final = 50
_PARAGRAPH: Final = 7


@dataclass(frozen=True, slots=True)
class Edges:
    """The edges of a text, by level, each level in ascending order.

    kind: what the units are. by: in one word for a reader, such as `headings`.
    """

    kind: TextKind
    by: str
    levels: tuple[tuple[int, ...], ...]

    @property
    def begins(self) -> frozenset[int]:
        """The offsets of the beginnings of all units."""
        return frozenset(offset for level in self.levels for offset in level)


def text_kind(text: str, path: str = "") -> TextKind:
    """Return what a text is made of."""
    name = path.lower()
    if name.endswith(_RECORDS):
        return "records"
    if name.endswith(_PROSE):
        return "prose"
    if name.endswith(_CODE):
        return "code"
    sample = [line for _, line in islice(_lines(text), _SAMPLE) if line.strip()]
    if sample and (sum(map(_is_json, sample)) * 2 > len(sample) or sum(map(_is_stamped, sample)) * 2 > len(sample)):
        return "records"
    return "prose" if sum(_HEADING.match(line) is not None for line in sample) > 1 else "lines"


def find_edges(text: str, path: str = "", definitions: Sequence[Definition] = ()) -> Edges:
    """Return the edges of a text.

    definitions: the symbols of the text, if they are known; without them, code is cut between its blocks.
    """
    kind: TextKind = "code" if definitions else text_kind(text, path)
    if kind == "code" and definitions:
        return Edges(kind, "definitions", _levels(_definition_starts(text, definitions)))
    if kind == "code":
        return Edges(kind, "blocks", _levels(_block_starts(text)))
    if kind == "prose":
        return Edges(kind, "headings", _levels(_heading_starts(text)))
    if kind == "records":
        return Edges(kind, "records", (tuple(_record_starts(text, path)),))
    return Edges(kind, "lines", ())


def _levels(found: Iterator[tuple[int, int]]) -> tuple[tuple[int, ...], ...]:
    by_level: dict[int, list[int]] = {}
    for level, offset in found:
        by_level.setdefault(level, []).append(offset)
    return tuple(tuple(sorted(set(by_level[level]))) for level in sorted(by_level))


def _definition_starts(text: str, definitions: Sequence[Definition]) -> Iterator[tuple[int, int]]:
    starts = [offset for offset, _ in _lines(text)]
    for one in definitions:
        depth, parent = 0, one.parent
        while parent >= 0:
            depth, parent = depth + 1, definitions[parent].parent
        if one.whole <= len(starts):
            yield depth, starts[one.whole - 1]


def _block_starts(text: str) -> Iterator[tuple[int, int]]:
    follows_blank = False
    for offset, line in _lines(text):
        if not line.strip():
            follows_blank = True
        elif follows_blank:
            follows_blank = False
            yield (1 if line[0].isspace() else 0), offset


def _heading_starts(text: str) -> Iterator[tuple[int, int]]:
    fence = ""
    follows_blank = False
    for offset, line in _lines(text):
        mark = _FENCE.match(line)
        if mark is not None and (not fence or line.strip().startswith(fence)):
            fence = "" if fence else mark[1]
        elif not fence and (heading := _HEADING.match(line)) is not None:
            yield len(heading[1]), offset
        if follows_blank and not fence and line.strip():
            yield _PARAGRAPH, offset
        follows_blank = not line.strip()


def _record_starts(text: str, path: str) -> Iterator[int]:
    if path.lower().endswith(_QUOTING):
        quotes = 0
        for offset, line in _lines(text):
            if quotes % 2 == 0:  # a line inside a quoted field begins no record
                yield offset
            quotes += line.count('"')
        return
    is_stamped = any(_is_stamped(line) for _, line in islice(_lines(text), _SAMPLE))
    for offset, line in _lines(text):
        if not is_stamped or _is_stamped(line) or _is_json(line):
            yield offset


def _lines(text: str) -> Iterator[tuple[int, str]]:
    start = 0
    while start < len(text):
        end = text.find("\n", start) + 1 or len(text)
        yield start, text[start:end]
        start = end


def _is_stamped(line: str) -> bool:
    return _STAMP.match(line) is not None


def _is_json(line: str) -> bool:
    if not line.startswith("{"):
        return False
    try:
        return isinstance(json.loads(line), dict)
    except (ValueError, RecursionError):
        return False
