"""Reads of chosen lines: the lines of a symbol or of some matches, under a line with their place.

The answer is proven and journaled like any other read (`session_reads`), so that lines which the model sees come back as
markers, and later reads know what was shown here.
"""

from dataclasses import replace

from pagein.engine.log.session_log import SessionLog
from pagein.engine.reads.session_reads import ReadResult, SessionReads
from pagein.errors import AbortedOperation, BadSetting
from pagein.model.documents import Document, LocatedFile
from pagein.model.read_caps import ReadCaps
from pagein.model.spans import Spans
from pagein.model.symbols import SymbolAnswer
from pagein.policy.reads import markers
from pagein.policy.reads.baseline import Baseline, baseline, closing_notice
from pagein.policy.reads.knowledge import PathKnown
from pagein.policy.reads.read_request import RangeRead
from pagein.ports import Signal


class PlacedReads:
    """Reads of chosen lines in a session. Thread-safe."""

    def __init__(self, log: SessionLog, reads: SessionReads) -> None:
        self._log = log
        self._reads = reads

    def locate(self, path: str, *, offset: float | None = None, limit: float | None = None) -> LocatedFile:
        """Return the file of this name, existing or not. Raises BadInput for a malformed line suffix."""
        return self._reads.files.locate(path, offset=offset, limit=limit)

    def load(self, located: LocatedFile, signal: Signal | None = None) -> Document:
        """Read a file once. Raises BadInput in the host's words for an unusable file, and AbortedOperation."""
        return self._reads.load(located, signal)

    def withhold(self, text: str) -> None:
        """Keep an excluded file's text out of the store."""
        self._log.withhold(text)

    def symbol(
        self,
        folder: str,
        name: str,
        *,
        path: str | None,
        include_context: bool,
        skipped: frozenset[str] = frozenset(),
        signal: Signal | None = None,
    ) -> SymbolAnswer:
        """Return the definition with this name (see `ports.SymbolSource`).

        Raises BadSetting, with the remedy, if symbols need more than is installed; BadInput; AbortedOperation.
        """
        if self._reads.symbols is None:
            raise BadSetting("this session finds no symbols; open it from an engine")
        return self._reads.symbols.read(
            folder, name, path=path, include_context=include_context, skipped=skipped, signal=signal
        )

    def known(self, located: LocatedFile) -> PathKnown:
        """Return what the model knows of a file at the current entry."""
        return self._reads.knowledge.of(self._reads.key_of(located))

    def show(self, asked: RangeRead, signal: Signal | None = None) -> ReadResult:
        """Show lines of a text file. Raises AbortedOperation, and nothing for an unusable store, as `SessionReads.read`."""
        document, located = asked.document, asked.located
        plain = ReadResult(asked.head + asked.shown.text, asked.shown.details)
        if located.excluded:
            self._log.withhold(plain.text)
        if not self._reads.may_journal(located, document):
            return plain
        try:
            return self._reads.shorten(asked, signal)
        except AbortedOperation:
            raise
        except Exception as problem:  # noqa: BLE001  a bug in pagein costs a saving, never a read (law 7)
            return ReadResult(plain.text, plain.details, failure=f"{type(problem).__name__}: {problem}")


def chosen_lines(
    located: LocatedFile, document: Document, lines: Spans, head: str, *, room: int, bypass: bool
) -> RangeRead:
    """Return a read of some lines of a file, at least one.

    head, room: as in `RangeRead`. The text of the lines fits into the room.
    """
    first, last = lines.runs[0][0], lines.runs[-1][1]
    wanted = None if len(lines.runs) == 1 else lines
    shown = plain_text(document, located.given, lines)
    return RangeRead(located, document, shown, first, last, bypass, head, wanted, room)


def plain_text(document: Document, given: str, lines: Spans) -> Baseline:
    """Return the text of some lines of a file, with a line for what is left out between them, and a closing notice.

    The notice names the mode whose offset it means: the offset of a symbol or of matches counts something else.
    """
    runs, every = lines.runs, document.lines
    first, last = runs[0][0], runs[-1][1]
    notice = closing_notice(last, len(every), "mode='file' with ")
    if len(runs) == 1:
        uncut = ReadCaps(len(every) + 1, len(document.content) * 3 + 1)
        shown = baseline(document.lines, given, offset=first, limit=last - first + 1, caps=uncut)
        return replace(shown, notice=notice)
    out: list[str] = []
    at = first
    for start, end in runs:
        if start > at:
            out.append(markers.left_out_marker(at, start - 1, len(every)))
        out.extend(every[start - 1 : end])
        at = end + 1
    return Baseline("\n".join(out), notice, first, lines.count, len(every))
