"""Input and output of the decision on a read."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

from pagein.model.documents import Document, LocatedFile
from pagein.model.names import ContentHash
from pagein.model.read_events import FileRead
from pagein.model.spans import Spans
from pagein.policy.reads.baseline import Baseline, byte_length


@dataclass(frozen=True, slots=True)
class ReadingSettings:
    """Bounds of the read policy.

    new_answers: `moved`, range diffs and partly known reads (metadata v2); off: only unchanged markers and whole diffs.
    min_run: shortest run of known lines that a marker may stand for inside a partly known read.
    max_bytes, max_lines: no diff and no search for moved lines beyond these, on either side.
    byte_ratio: a diff of this share of the baseline's bytes is too big.
    line_ratio: so is one of more than this share of the requested lines.
    context: unchanged lines shown around a change.
    cap_bytes, cap_lines: size at which the read tool itself would cut; a bigger diff is not sent.
    max_bases: how many earlier versions one decision may fetch.
    news_bytes, news_share: how much longer a diff may be than the partly known text, because it also shows removed
        lines: so many bytes, or for a whole file this share of the baseline's bytes if that is more.
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
    max_bases: int = 8
    news_bytes: int = 360
    news_share: float = 0.1

    def allow(self, text: str) -> bool:
        """Return whether a text is small enough to be compared line by line."""
        return len(text) <= self.max_bytes and text.count("\n") < self.max_lines and byte_length(text) <= self.max_bytes


DEFAULTS = ReadingSettings()


@dataclass(frozen=True, slots=True)
class ReadRequest:
    """One read of a text file.

    document: the file as it is now (`is_text` must hold).
    given: the path as the model wrote it, for diff headers.
    first, last: the lines asked for, clamped to the file.
    baseline: the read tool's own answer.
    bypass: the model asked for the text itself.
    """

    document: Document
    given: str
    first: int
    last: int
    baseline: Baseline
    bypass: bool = False

    @property
    def total(self) -> int:
        """Number of lines of the file."""
        return self.baseline.total

    @property
    def whole(self) -> bool:
        """Whether the whole file is asked for."""
        return self.first == 1 and self.last == self.total


@dataclass(frozen=True, slots=True)
class RangeRead:
    """A read of lines `first` to `last` of a text file, ready for a decision.

    shown: the client's own answer.
    head: text in front of the answer, such as a line with the place.
    wanted: the runs of lines to show; None for all of them.
    room: characters that the answer may have without the head; None for no limit. The client's own answer fits.
    """

    located: LocatedFile
    document: Document
    shown: Baseline
    first: int
    last: int
    bypass: bool
    head: str = ""
    wanted: Spans | None = None
    room: int | None = None


@dataclass(frozen=True, slots=True)
class NeedBlob:
    """A plan's request for the bytes of an earlier version.

    Send them, or None for an unavailable version.
    """

    version: ContentHash


@dataclass(frozen=True, slots=True)
class ReadDecision:
    """The answer to a read.

    text: the answer. event: for the journal (`read_records.encode` makes its metadata). reason: why it was chosen.
    """

    text: str
    event: FileRead
    reason: str


Rehearse: TypeAlias = Callable[[ReadDecision, str | None], object]
"""Told of a decision that is not carried out, and of what the witness objects to; None for no objection."""


@dataclass(frozen=True, slots=True)
class DoneRead:
    """A read that the client's own tool has answered already.

    text: its answer. If this is not what the file gives now, nothing is claimed and nothing journaled.
    rehearse: told of the answer that pagein would give; the client's own then stays. None to answer.
    """

    text: str
    rehearse: Rehearse | None = None
