"""Comparison of the requested lines with the lines that the model has seen."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from pagein.model.names import ContentHash
from pagein.model.read_events import FileRead, LineCopy, Mode
from pagein.model.spans import NO_LINES, Spans
from pagein.policy.reads.file_view import ViewPiece, numbered_pieces
from pagein.policy.reads.knowledge import PathKnown, lines_made_known
from pagein.policy.reads.line_matches import MovedLines, ShownLineIndex
from pagein.policy.reads.read_request import ReadDecision, ReadingSettings, ReadRequest


@dataclass(frozen=True, slots=True)
class Sight:
    """A read request with the available texts of the file's versions.

    texts: lines of each earlier version, and of the current version.
    withheld: lines that must be shown as text, because a refresh asked for them.
    """

    request: ReadRequest
    known: PathKnown
    settings: ReadingSettings
    texts: Mapping[ContentHash, Sequence[str]]
    withheld: Spans = NO_LINES

    @property
    def lines(self) -> Sequence[str]:
        """The current lines."""
        return self.texts[self.request.document.hash]

    def in_place(self) -> Spans:
        """Return the requested lines with the same number and the same text as when last shown."""
        first, last = self.request.first, self.request.last
        found: list[tuple[int, int]] = []
        for piece in self.known.view:
            if piece.in_place and piece.first <= last and piece.last >= first:
                found += self._same(piece.part(max(piece.first, first), min(piece.last, last)))
        return Spans.of(*found).subtract(self.withheld)

    def as_taken(self) -> bool:
        """Return whether the whole file equals the model's view, to its last line."""
        if self.withheld or self.known.total != self.request.total:
            return False
        return self.already().holds(1, self.request.total)

    def already(self) -> Spans:
        """Return the lines of the file equal to the model's view, shown under any number."""
        return Spans.of(*(run for piece in self.known.view for run in self._same(piece)))

    def _same(self, piece: ViewPiece) -> Iterator[tuple[int, int]]:
        """Yield runs of a piece with the same text in the current file."""
        theirs = self._text_of(piece)
        ours = self.lines[piece.first - 1 : piece.last]
        if theirs == ours:
            yield piece.first, piece.last
        else:
            both = enumerate(zip(theirs, ours, strict=False), piece.first)
            yield from ((n, n) for n, (their, our) in both if their == our)

    def _text_of(self, piece: ViewPiece) -> Sequence[str]:
        """Return the lines of a piece; empty if its version is not available."""
        return self.texts.get(piece.source, ())[piece.start - 1 : piece.start - 1 + piece.count]

    def moved(self, wanted: Iterable[tuple[int, int]]) -> list[MovedLines]:
        """Return runs of the wanted lines last shown under other numbers."""
        found = ShownLineIndex(self._segments(), self.settings.min_run).runs(self.lines, wanted)
        return [run for run in found if run.at != run.shown_as]

    def _segments(self) -> Iterator[tuple[int, Sequence[str]]]:
        """Yield rows of adjacent lines that the numbers in the window name: the first number of each, and the texts."""
        first, texts = 1, list[str]()
        for piece in numbered_pieces(self.known.view):
            theirs = self._text_of(piece)
            if piece.start != first + len(texts):
                yield first, texts
                first, texts = piece.start, []
            texts.extend(theirs)
            if len(theirs) < piece.count:
                yield first, texts
                first, texts = piece.start + piece.count, []
        yield first, texts

    def copies(self, at: int, count: int, shown_as: int) -> tuple[LineCopy, ...]:
        """Return the sources of `count` lines from `at`, if they equal the lines last shown from number `shown_as` on."""
        out: list[LineCopy] = []
        for piece in numbered_pieces(self.known.view):
            a, b = max(piece.start, shown_as), min(piece.start + piece.count - 1, shown_as + count - 1)
            if a <= b:
                out.append(LineCopy(piece.source, a, b - a + 1, at + a - shown_as))
        return tuple(out)

    def taken(self, first: int, last: int, at: int) -> tuple[LineCopy, ...]:
        """Return the sources of the view's lines `first` to `last`, if they are now the lines from `at` on."""
        out: list[LineCopy] = []
        for piece in self.known.view:
            a, b = max(piece.first, first), min(piece.last, last)
            if a <= b:
                out.append(LineCopy(piece.source, piece.start + a - piece.first, b - a + 1, at + a - first))
        return tuple(out)

    def answer(
        self,
        mode: Mode,
        text: str,
        reason: str,
        *,
        base: ContentHash | None = None,
        emitted: Spans = NO_LINES,
        copies: tuple[LineCopy, ...] | None = None,
    ) -> ReadDecision:
        """Return a decision for this request.

        With `copies` it carries metadata v2, except for a diff of the whole file.
        """
        request = self.request
        event = FileRead(
            request.document.key,
            mode,
            request.document.hash,
            request.total,
            request.first,
            request.last,
            len(request.document.content),
            base,
            emitted,
            copies or (),
            1 if copies is None or mode == "diff" else 2,
        )
        return ReadDecision(text, event, reason)

    def proves(self, decision: ReadDecision, lines: Spans) -> bool:
        """Return whether the fold will know these lines after this answer."""
        return lines_made_known(self.known, decision.event).contains(lines)
