"""The requested lines beside what the model has seen: which of them it knows, and where it knows them from."""

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
    """One request, with the texts that could be had.

    texts: lines of each earlier version, and of the current one. withheld: lines that must be shown as text, because
    somebody asked to see them anew.
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
        """Requested lines that have the number under which they were shown last, and are as they were then."""
        first, last = self.request.first, self.request.last
        found: list[tuple[int, int]] = []
        for piece in self.known.view:
            if piece.in_place and piece.first <= last and piece.last >= first:
                found += self._same(piece.part(max(piece.first, first), min(piece.last, last)))
        return Spans.of(*found).subtract(self.withheld)

    def as_taken(self) -> bool:
        """Whether the whole file is what the model takes it to be, to its last line."""
        if self.withheld or self.known.total != self.request.total:
            return False
        return self.already().holds(1, self.request.total)

    def already(self) -> Spans:
        """Lines of the file that are what the model takes them to be, under whatever number it was shown them."""
        return Spans.of(*(run for piece in self.known.view for run in self._same(piece)))

    def _same(self, piece: ViewPiece) -> Iterator[tuple[int, int]]:
        """Lines of a piece that are in the current text what the model takes them for."""
        theirs = self._text_of(piece)
        ours = self.lines[piece.first - 1 : piece.last]
        if theirs == ours:
            yield piece.first, piece.last
        else:
            both = enumerate(zip(theirs, ours, strict=False), piece.first)
            yield from ((n, n) for n, (their, our) in both if their == our)

    def _text_of(self, piece: ViewPiece) -> Sequence[str]:
        """The lines of a piece; none of them where its version cannot be had."""
        return self.texts.get(piece.source, ())[piece.start - 1 : piece.start - 1 + piece.count]

    def moved(self, wanted: Iterable[tuple[int, int]]) -> list[MovedLines]:
        """Runs of the wanted lines that were shown last under other numbers."""
        found = ShownLineIndex(self._segments(), self.settings.min_run).runs(self.lines, wanted)
        return [run for run in found if run.at != run.shown_as]

    def _segments(self) -> Iterator[tuple[int, Sequence[str]]]:
        """What the numbers in the window name, in rows without a gap: the first number of each, and the texts."""
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
        """What `count` lines from `at` rest on, if they are what was shown last under the numbers from `shown_as`."""
        out: list[LineCopy] = []
        for piece in numbered_pieces(self.known.view):
            a, b = max(piece.start, shown_as), min(piece.start + piece.count - 1, shown_as + count - 1)
            if a <= b:
                out.append(LineCopy(piece.source, a, b - a + 1, at + a - shown_as))
        return tuple(out)

    def taken(self, first: int, last: int, at: int) -> tuple[LineCopy, ...]:
        """What lines `first` to `last` of the file rest on as the model takes it to be, if they are those from `at` on now."""
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
        """A decision for this request; with `copies` it carries metadata v2, but for a diff of the whole file."""
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
        """Whether the fold will say, after this answer, that these lines are known."""
        return lines_made_known(self.known, decision.event).contains(lines)
