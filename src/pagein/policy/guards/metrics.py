"""The metrics of a session's reads and searches, over a whole branch."""

from dataclasses import dataclass, replace
from typing import Final

from pagein.model.guard_notes import ReadMeasureNote, SearchMeasureNote

_DIGITS: Final = 6


@dataclass(frozen=True, slots=True)
class ReadMetrics:
    """Counts of a branch. Reads that were refused are not counted.

    reads, lines, chars: answered reads, with the lines of files and the characters sent in them.
    searches: answered searches.
    after_search: reads with a search before them.
    span, longest: lines that the answers stand for, in total and at most.
    degraded: answers that a budget shortened, of reads and searches.
    """

    reads: int = 0
    lines: int = 0
    chars: int = 0
    searches: int = 0
    after_search: int = 0
    span: int = 0
    longest: int = 0
    degraded: int = 0

    def with_read(self, note: ReadMeasureNote) -> "ReadMetrics":
        """Return the metrics after a further read."""
        span = note.stands.count
        return replace(
            self,
            reads=self.reads + 1,
            lines=self.lines + note.lines,
            chars=self.chars + note.chars,
            after_search=self.after_search + (self.searches > 0),
            span=self.span + span,
            longest=max(self.longest, span),
            degraded=self.degraded + note.degraded,
        )

    def with_search(self, note: SearchMeasureNote) -> "ReadMetrics":
        """Return the metrics after a further search."""
        return replace(self, searches=self.searches + 1, degraded=self.degraded + note.degraded)

    def snapshot(self) -> dict[str, int | float]:
        """Return the metrics under their public names; shares and means have 6 decimals."""
        return {
            "reads_count": self.reads,
            "reads_lines_total": self.lines,
            "reads_chars_total": self.chars,
            "search_count": self.searches,
            "read_after_search_ratio": _quotient(self.after_search, self.reads),
            "avg_read_span": _quotient(self.span, self.reads),
            "max_read_span": self.longest,
            "preview_degraded_count": self.degraded,
        }


NO_METRICS: Final = ReadMetrics()


def _quotient(part: int, whole: int) -> float:
    return round(part / whole, _DIGITS) if whole else 0.0
