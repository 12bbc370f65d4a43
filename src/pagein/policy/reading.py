"""What a read is answered with."""

from collections.abc import Generator
from dataclasses import dataclass
from typing import TypeAlias

from pagein.model.names import ContentHash
from pagein.model.reading import ReadServed
from pagein.model.spans import NO_LINES, Spans


@dataclass(frozen=True, slots=True)
class ReadingSettings:
    """Bounds of the read policy.

    new_answers: `moved`, range diffs and partly known reads (metadata v2); off = the specification's answers only.
    min_run: shortest run of known lines that a marker may stand for inside a partly known read.
    max_bytes, max_lines: no diff and no search for moved lines beyond these, on either side.
    byte_ratio, line_ratio: a diff must be smaller than this share of the text it replaces.
    cap_bytes, cap_lines: what the read tool itself would cut; a diff beyond them is not sent.
    max_bases: how many earlier versions one decision may fetch.
    """

    new_answers: bool = True
    min_run: int = 5
    max_bytes: int = 2 * 1024 * 1024
    max_lines: int = 12_000
    byte_ratio: float = 0.9
    line_ratio: float = 0.85
    context: int = 3
    cap_bytes: int = 51_200
    cap_lines: int = 2_000
    max_bases: int = 4


@dataclass(frozen=True, slots=True)
class Current:
    """The file as it is now. `text` is the exact decoding of the bytes that `version` names (a BOM stays in it)."""

    version: ContentHash
    text: str
    size: int
    total: int

    @classmethod
    def of(cls, content: bytes) -> "Current":
        """From the bytes of a text file. Raises UnicodeDecodeError where they are not UTF-8."""
        text = content.decode("utf-8")
        return cls(ContentHash.of(content), text, len(content), text.count("\n") + 1)


@dataclass(frozen=True, slots=True)
class Baseline:
    """What the read tool would say without us.

    text: all of it. emitted: the file's lines that stand in it, from the start of the text (none, or one run).
    notice: the closing notice that `text` ends with (leading blank line included), "" where there is none.
    """

    text: str
    emitted: Spans = NO_LINES
    notice: str = ""


@dataclass(frozen=True, slots=True)
class ReadRequest:
    """One read. path: the path key. label: the path as the model gave it (diff headers). first, last: the lines
    asked for, clamped to the file. bypass: the model asked for the text itself.
    """

    path: str
    label: str
    current: Current
    first: int
    last: int
    baseline: Baseline
    bypass: bool = False


@dataclass(frozen=True, slots=True)
class NeedBlob:
    """The plan needs the bytes of an earlier version. Send them, or None where they cannot be had."""

    version: ContentHash


@dataclass(frozen=True, slots=True)
class Decision:
    """The answer: its text, the event to journal (its metadata comes from `readmeta.encode`), and why it was chosen."""

    text: str
    event: ReadServed
    reason: str


Plan: TypeAlias = Generator[NeedBlob, bytes | None, Decision]
