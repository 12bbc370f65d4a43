"""Reads of chosen lines: the lines of a symbol or of some matches, under a line that says where they stand.

The answer is proven and journaled like any other read (`session_reads`), so that lines which the model sees come back as
markers, and later reads know what was shown here.
"""

from collections.abc import Callable
from dataclasses import dataclass

from pagein.engine.log.session_log import SessionLog
from pagein.engine.reads.session_reads import RangeRead, ReadResult, SessionReads
from pagein.errors import Aborted
from pagein.model.documents import Document, LocatedFile
from pagein.model.read_caps import ReadCaps
from pagein.model.spans import Spans
from pagein.policy.reads import markers
from pagein.policy.reads.baseline import Baseline, baseline, closing_notice
from pagein.ports import Signal


@dataclass(frozen=True, slots=True)
class PlacedLines:
    """Lines of a file to show.

    document: the file as it was read.
    lines: what to show, inside of the file; at least one line.
    head: text in front of the lines, "" for none; else it ends with a line feed.
    room: characters that the answer may have without the head; the text of the lines must fit.
    bypass: whether to show text where a marker would do.
    """

    located: LocatedFile
    document: Document
    lines: Spans
    head: str = ""
    room: int | None = None
    bypass: bool = False


class PlacedReads:
    """Reads of chosen lines in a session. Thread-safe."""

    def __init__(self, log: SessionLog, reads: SessionReads) -> None:
        self._log = log
        self._reads = reads

    def open(
        self, path: str, *, offset: float | None = None, limit: float | None = None, signal: Signal | None = None
    ) -> tuple[LocatedFile, Callable[[], Document]]:
        """Return the file of this name, and what reads it. Raises BadInput for a malformed line suffix.

        The reader raises BadInput in the host's words for an unusable file, and Aborted.
        """
        located = self._reads.files.locate(path, offset=offset, limit=limit)
        return located, lambda: self._reads.files.read(located, signal)

    def withhold(self, text: str) -> None:
        """Keep a text that shows a file which must not be stored out of the store."""
        self._log.withhold(text)

    def show(self, part: PlacedLines, signal: Signal | None = None) -> ReadResult:
        """Show lines of a text file. Raises nothing for an unusable store, as `SessionReads.read`."""
        document, located = part.document, part.located
        shown = plain_text(document, located.given, part.lines)
        plain = ReadResult(part.head + shown.text, shown.details)
        if located.excluded:
            self._log.withhold(plain.text)
        if located.excluded or not document.is_text or self._log.privacy.is_private(document.text):
            return plain
        runs = part.lines.runs
        wanted = None if len(runs) == 1 else part.lines
        first, last = runs[0][0], runs[-1][1]
        try:
            asked = RangeRead(located, document, shown, first, last, part.bypass, part.head, wanted, part.room)
            return self._reads.shorten(asked, signal)
        except Aborted:
            raise
        except Exception as problem:  # noqa: BLE001  a bug in pagein costs a saving, never a read (law 7)
            return ReadResult(plain.text, plain.details, failure=f"{type(problem).__name__}: {problem}")


def plain_text(document: Document, given: str, lines: Spans) -> Baseline:
    """Return the text of some lines of a file, with a line for what is left out between them, and the closing notice."""
    runs, every = lines.runs, document.lines
    first, last = runs[0][0], runs[-1][1]
    if len(runs) == 1:
        uncut = ReadCaps(len(every) + 1, len(document.content) * 3 + 1)
        return baseline(document.text, given, offset=first, limit=last - first + 1, caps=uncut)
    out: list[str] = []
    at = first
    for start, end in runs:
        if start > at:
            out.append(markers.left_out_marker(at, start - 1, len(every)))
        out.extend(every[start - 1 : end])
        at = end + 1
    return Baseline("\n".join(out), closing_notice(last, len(every)), first, lines.count, len(every))
