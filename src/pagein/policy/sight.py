"""The requested lines beside what the model has seen: which of them it knows, and where it knows them from."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from pagein.model.names import ContentHash
from pagein.model.reading import Copy, Mode, ReadServed
from pagein.model.spans import NO_LINES, Spans
from pagein.policy.knowledge import PathKnown, claimed
from pagein.policy.matching import Moved, ShownLines
from pagein.policy.request import Decision, ReadingSettings, ReadRequest


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
        """Requested lines that are what was shown last under their own number."""
        found: list[tuple[int, int]] = []
        first, last = self.request.first, self.request.last
        for piece in self.known.view:
            a, b = max(piece.first, first), min(piece.last, last)
            theirs = self.texts.get(piece.version)
            if a > b or theirs is None:
                continue
            if theirs[a - 1 : b] == self.lines[a - 1 : b]:
                found.append((a, b))
            else:
                found.extend((n, n) for n in range(a, min(b, len(theirs)) + 1) if theirs[n - 1] == self.lines[n - 1])
        return Spans.of(*found).subtract(self.withheld)

    def moved(self, wanted: Iterable[tuple[int, int]]) -> list[Moved]:
        """Runs of the wanted lines that were shown last under other numbers."""
        return ShownLines(self._segments(), self.settings.min_run).runs(self.lines, wanted)

    def _segments(self) -> Iterator[tuple[int, Sequence[str]]]:
        first, texts = 1, list[str]()
        for piece in self.known.view:
            theirs = self.texts.get(piece.version, ())[piece.first - 1 : piece.last]
            if piece.first != first + len(texts):
                yield first, texts
                first, texts = piece.first, []
            texts.extend(theirs)
            if len(theirs) < piece.last - piece.first + 1:
                yield first, texts
                first, texts = piece.last + 1, []
        yield first, texts

    def copies(self, at: int, count: int, shown_as: int) -> tuple[Copy, ...]:
        """What `count` lines from `at` rest on, if they are what was shown last under the numbers from `shown_as`."""
        out: list[Copy] = []
        for piece in self.known.view:
            a, b = max(piece.first, shown_as), min(piece.last, shown_as + count - 1)
            if a <= b:
                out.append(Copy(piece.version, a, b - a + 1, at + a - shown_as))
        return tuple(out)

    def answer(
        self,
        mode: Mode,
        text: str,
        reason: str,
        *,
        base: ContentHash | None = None,
        emitted: Spans = NO_LINES,
        copies: tuple[Copy, ...] | None = None,
    ) -> Decision:
        """A decision for this request; with `copies` it carries metadata v2."""
        request = self.request
        event = ReadServed(
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
            1 if copies is None else 2,
        )
        return Decision(text, event, reason)

    def proves(self, decision: Decision, lines: Spans) -> bool:
        """Whether the fold will say, after this answer, that these lines are known."""
        return claimed(self.known, decision.event).contains(lines)
