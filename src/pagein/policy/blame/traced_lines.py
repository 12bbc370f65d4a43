"""Lines with sources, and the lost lines of a file.

Rules of this file
------------------
1. A lost line is found again by its run: from a line that is *unique* among all texts known for the file, over its
   neighbours, as far as they are the same. A line like `}` takes the answer of its run or none.
2. A run is taken for the same text if it has two unique lines, or one with as many letters and digits as git asks for
   before it calls a text moved. Less is too likely typed twice. A run that kept its place needs one unique line, or as
   many letters and digits.
"""

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Final, NamedTuple

from pagein.policy.blame.known_states import NOBODY, Answer, Author, Match, has_letters

_LEAST_LETTERS: Final = 20
_LEAST_ANCHORS: Final = 2


class LineSource(NamedTuple):
    """Who wrote a line last.

    state: index of the known state that wrote or first showed it.
    is_loose: whether the text before that state is unknown, so that the line may have been there before.
    """

    answer: Answer
    state: int | None
    is_loose: bool = False


class TracedLine(NamedTuple):
    """A line of a state with the source of the line.

    mark: names the line through all states. A line whose text was only laid out anew has a new mark.
    """

    text: str
    source: LineSource
    match: Match
    mark: int


@dataclass(frozen=True, slots=True)
class LostRun:
    """Neighbouring lines taken away by a step.

    before, after: marks of their neighbours at that time; 0 at an end of the file.
    author, step: of the state that took them away.
    is_hidden: whether nobody took them away: an edit of an unknown text wrote them, and no text since shows where.
    """

    lines: Sequence[TracedLine]
    before: int
    after: int
    author: Author
    step: int
    is_hidden: bool = False


class FoundLines(NamedTuple):
    """Lost lines found in new text: new lines `[first, first + size)` are those from `at` on in `run`."""

    first: int
    run: LostRun
    at: int
    size: int


class LineCounts:
    """How often each line is in a text; counted when it is first asked."""

    def __init__(self, lines: Sequence[str]) -> None:
        self._lines = lines
        self._counts: Counter[str] | None = None

    def __getitem__(self, text: str) -> int:
        if self._counts is None:
            self._counts = Counter(self._lines)
        return self._counts[text]


class LinePool:
    """The lines ever known of a file: how often each text was made, and which runs were lost."""

    def __init__(self) -> None:
        self._made: Counter[str] = Counter()
        self._mark = 0
        self._lost: dict[str, tuple[LostRun, int]] = {}
        self._elsewhere: dict[str, tuple[LostRun, int]] = {}

    def new_line(self, text: str, source: LineSource, match: Match = "exact") -> TracedLine:
        """Return a new line, with a mark of its own."""
        self._mark += 1
        self._made[text] += 1
        return TracedLine(text, source, match, self._mark)

    def lose(self, run: LostRun) -> None:
        """Keep a run for later."""
        for at, line in enumerate(run.lines):
            self._lost[line.text] = (run, at)

    def settle(self, run: LostRun) -> None:
        """Take the lines of a hidden run for lost ones."""
        for at, line in enumerate(run.lines):
            if self._lost.get(line.text, (None, 0))[0] is run:
                self._lost[line.text] = (replace(run, is_hidden=False), at)

    def show(self, lines: Sequence[TracedLine]) -> None:
        """Keep the lines of another file for the steps of this one."""
        run = LostRun(lines, 0, 0, NOBODY, -1)
        for at, line in enumerate(lines):
            self._elsewhere[line.text] = (run, at)

    def find(self, new: Sequence[str], here: LineCounts, wanted: Callable[[LostRun], bool]) -> list[FoundLines]:
        """Return the lost runs in these new lines, in order, without overlaps.

        here: counts of the whole new state.
        """
        found: list[FoundLines] = []
        done = 0
        for j, text in enumerate(new):
            if j < done:
                continue
            places = (self._lost.get(text), self._elsewhere.get(text))
            place = next((one for one in places if one is not None and wanted(one[0])), None)
            if place is None or not self._is_unique(text, here):
                continue
            run, at = place
            first, count = _extent(new, j, done, run.lines, at)
            if self._stands(new[first : first + count], here):
                found.append(FoundLines(first, run, at - (j - first), count))
                done = first + count
        return found

    def holds(self, lines: Sequence[str], here: LineCounts) -> bool:
        """Whether unmoved lines are the same lines, and no chance of small words."""
        return has_letters(lines, _LEAST_LETTERS) or any(self._is_unique(line, here) for line in lines)

    def _is_unique(self, text: str, here: LineCounts) -> bool:
        return self._made[text] == 1 and here[text] <= 1 and any(map(str.isalnum, text))

    def _stands(self, lines: Sequence[str], here: LineCounts) -> bool:
        anchors = [line for line in lines if self._is_unique(line, here)]
        return len(anchors) >= _LEAST_ANCHORS or has_letters(anchors, _LEAST_LETTERS)


def _extent(new: Sequence[str], j: int, least: int, old: Sequence[TracedLine], i: int) -> tuple[int, int]:
    """Return the first line and the length of the longest common run through `new[j]` and `old[i]`."""
    up = 0
    while j - up > least and i - up > 0 and new[j - up - 1] == old[i - up - 1].text:
        up += 1
    down = 1
    while j + down < len(new) and i + down < len(old) and new[j + down] == old[i + down].text:
        down += 1
    return j - up, up + down
