"""Sets of lines, as sorted runs without contact or overlap. Lines count from 1; both ends belong to a run."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Self, TypeAlias

Run: TypeAlias = tuple[int, int]


def _merge_runs(runs: Iterable[Run]) -> tuple[Run, ...]:
    """Merge runs sorted by their first line."""
    out: list[Run] = []
    for first, last in runs:
        if out and first <= out[-1][1] + 1:
            if last > out[-1][1]:
                out[-1] = (out[-1][0], last)
        else:
            out.append((first, last))
    return tuple(out)


@dataclass(frozen=True, slots=True)
class Spans:
    """An immutable set of lines. Runs are always in normal form, so equal sets are equal values."""

    runs: tuple[Run, ...] = ()

    @classmethod
    def of(cls, *runs: Run) -> Self:
        """The union of some runs, in any order. A run with the last line before the first is empty."""
        return cls(_merge_runs(sorted((max(first, 1), last) for first, last in runs if max(first, 1) <= last)))

    @classmethod
    def lines(cls, numbers: Iterable[int]) -> Self:
        """The set of some line numbers, in any order."""
        return cls(_merge_runs((n, n) for n in sorted(set(numbers)) if n >= 1))

    def __bool__(self) -> bool:
        return bool(self.runs)

    def __iter__(self) -> Iterator[Run]:
        return iter(self.runs)

    @property
    def count(self) -> int:
        """Number of lines in the set."""
        return sum(last - first + 1 for first, last in self.runs)

    def unite(self, other: "Spans") -> "Spans":
        """Lines of either set."""
        if not other.runs:
            return self
        if not self.runs:
            return other
        return Spans(_merge_runs(sorted(self.runs + other.runs)))

    def intersect(self, other: "Spans") -> "Spans":
        """Lines of both sets."""
        out: list[Run] = []
        mine, theirs = self.runs, other.runs
        i = j = 0
        while i < len(mine) and j < len(theirs):
            first, last = max(mine[i][0], theirs[j][0]), min(mine[i][1], theirs[j][1])
            if first <= last:
                out.append((first, last))
            if mine[i][1] < theirs[j][1]:
                i += 1
            else:
                j += 1
        return Spans(tuple(out))

    def subtract(self, other: "Spans") -> "Spans":
        """Lines of this set without the lines of the given set."""
        out: list[Run] = []
        theirs = other.runs
        j = 0
        for run_first, run_last in self.runs:
            first = run_first
            while j < len(theirs) and theirs[j][1] < first:
                j += 1
            k = j
            while k < len(theirs) and theirs[k][0] <= run_last:
                if theirs[k][0] > first:
                    out.append((first, theirs[k][0] - 1))
                first = theirs[k][1] + 1
                k += 1
            if first <= run_last:
                out.append((first, run_last))
        return Spans(tuple(out))

    def clamp(self, first: int, last: int) -> "Spans":
        """The lines from `first` to `last`, both included."""
        return self.intersect(Spans.of((first, last)))

    def shift(self, by: int) -> "Spans":
        """Move every line down by `by` lines (up if negative). Lines above line 1 are dropped."""
        return Spans.of(*((first + by, last + by) for first, last in self.runs))

    def contains(self, other: "Spans") -> bool:
        """Whether this set contains every line of the given set."""
        return self.intersect(other) == other

    def holds(self, first: int, last: int) -> bool:
        """Whether every line from `first` to `last` is in the set; true for an empty range."""
        return first > last or any(a <= first and last <= b for a, b in self.runs)


NO_LINES = Spans()
