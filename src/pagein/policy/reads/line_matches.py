"""Search for moved lines: runs of the current text among lines shown under other numbers."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, TypeAlias

_CANDIDATES: Final = 4  # places tried for one run; more would make repetitive files quadratic
_SAYING: Final = 3  # minimum number of lines in a run that are not blank

Window: TypeAlias = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class MovedLines:
    """Lines `at` to `at + count - 1` of the current text were shown last as the lines from `shown_as` on."""

    at: int
    count: int
    shown_as: int


class ShownLineIndex:
    """Index of lines by the number they were last shown under, over every window of `size` lines.

    segments: (number of the first line, texts) of runs of consecutive numbers.
    """

    def __init__(self, segments: Iterable[tuple[int, Sequence[str]]], size: int) -> None:
        self._size = size
        self._text: dict[int, str] = {}
        self._places: dict[Window, list[int]] = {}
        for first, texts in segments:
            self._text.update(enumerate(texts, first))
            for k in range(len(texts) - size + 1):
                places = self._places.setdefault(tuple(texts[k : k + size]), [])
                if len(places) < _CANDIDATES:
                    places.append(first + k)

    @property
    def text(self) -> Mapping[int, str]:
        """Every indexed line by its number."""
        return self._text

    def runs(self, lines: Sequence[str], wanted: Iterable[tuple[int, int]]) -> list[MovedLines]:
        """Return runs of at least `size` lines inside the wanted runs of `lines` (from 1), in order, without overlap.

        A run of blank lines only does not count. Of several places the longest wins, then the place that continues the
        last shift, then the lowest number.
        """
        found: list[MovedLines] = []
        shift = 0
        for first, last in wanted:
            at = first
            while at + self._size - 1 <= last:
                best = self._longest(lines, at, last, shift)
                if best is not None and self._says_something(lines, best):
                    found.append(best)
                    shift = best.shown_as - best.at
                # a run that is all blanks is passed over whole: trying each of its lines would be quadratic
                at += 1 if best is None else best.count
        return found

    def _longest(self, lines: Sequence[str], at: int, last: int, shift: int) -> MovedLines | None:
        places = self._places.get(tuple(lines[at - 1 : at - 1 + self._size]), ())
        runs = [MovedLines(at, self._length(lines, at, last, place), place) for place in places]
        return max(runs, key=lambda run: (run.count, -abs(run.shown_as - at - shift), -run.shown_as), default=None)

    def _length(self, lines: Sequence[str], at: int, last: int, place: int) -> int:
        count = self._size
        while at + count <= last and self._text.get(place + count) == lines[at - 1 + count]:
            count += 1
        return count

    def _says_something(self, lines: Sequence[str], run: MovedLines) -> bool:
        texts = lines[run.at - 1 : run.at - 1 + run.count]
        return sum(1 for text in texts if text and not text.isspace()) >= min(_SAYING, self._size)
