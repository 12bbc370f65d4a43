"""One step of a file: from the lines of a state, with sources, to the lines of the next state.

Rules of this file
------------------
1. A line that stays keeps its source. In a step without a proven author its run must be more than a chance
   (`LinePool.holds`): everybody writes `}`.
2. Lines that were lost and stand in the new text as a run keep their source (`traced_lines`). An agent's or a person's own
   step takes only runs that the same turn took away: whoever brings back older text has written it. Hidden runs were not
   taken away, so each step takes them.
3. A line that was only laid out anew keeps its source: blanks for a step with a known author, as git's `-w` does; quotes,
   line breaks and closing commas too for a step without one, which may be a formatter's.
4. What is left was written by the author of the step. Without a proven author it is unknown.
5. A line is *mixed* if a step of a person changed a part of an agent's line, or the other way round, and at least half of
   the line stayed.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Final

from pagein.policy.blame.known_states import Answer, Author
from pagein.policy.blame.layouts import joined_sources, plain_form, spaceless
from pagein.policy.blame.natural_changes import natural_changes
from pagein.policy.blame.traced_lines import FoundLines, LineCounts, LinePool, LineSource, LostRun, TracedLine
from pagein.policy.reads.line_diff import LineChange, changes

HIDDEN: Final = "\0 a line that no known text shows"
"""The text of a line whose number is known and nothing else."""


@dataclass(frozen=True, slots=True)
class Step:
    """The cause of the next state.

    number: of the known state; None for the file as it is now.
    is_loose: whether nothing is known of the file before.
    """

    author: Author
    number: int | None
    is_loose: bool = False


def take_step(old: Sequence[TracedLine], new: Sequence[str], step: Step, pool: LinePool) -> list[TracedLine]:
    """Return the new lines with their sources."""
    found = natural_changes([line.text for line in old], new)
    if not found:
        return list(old)
    for change in found:
        _lose(old, change, step, pool)
    here = LineCounts(new)
    out: list[TracedLine] = []
    i = 0
    for change in found:
        out += _kept(old[i : change.i1], here, step, pool)
        out += _Change(old, change, new[change.j1 : change.j2], step, pool).lines(here)
        i = change.i2
    return [*out, *_kept(old[i:], here, step, pool)]


def _kept(run: Sequence[TracedLine], here: LineCounts, step: Step, pool: LinePool) -> Sequence[TracedLine]:
    if step.author.maker != "unknown" or pool.holds([line.text for line in run], here):
        return run
    return [line if line.source.answer == "unknown" else _unexplained(line.text, step, pool) for line in run]


def _unexplained(text: str, step: Step, pool: LinePool) -> TracedLine:
    return pool.new_line(text, LineSource("unknown", step.number), "none" if step.number is None else "exact")


def _lose(old: Sequence[TracedLine], change: LineChange, step: Step, pool: LinePool) -> None:
    if change.i1 == change.i2:
        return
    before = old[change.i1 - 1].mark if change.i1 else 0
    after = old[change.i2].mark if change.i2 < len(old) else 0
    pool.lose(LostRun(old[change.i1 : change.i2], before, after, step.author, step.number or 0))


class _Change:
    """The new lines of one change, during the search for sources."""

    def __init__(
        self, old: Sequence[TracedLine], change: LineChange, new: Sequence[str], step: Step, pool: LinePool
    ) -> None:
        self._all, self._change, self._new, self._step, self._pool = old, change, new, step, pool
        self._old = old[change.i1 : change.i2]
        self._out: list[TracedLine | None] = [None] * len(new)
        self._hides = any(line.text == HIDDEN for line in self._old)
        self._is_known = step.author.maker != "unknown"

    def lines(self, here: LineCounts) -> list[TracedLine]:
        """The new lines with their sources."""
        for found in self._pool.find(self._new, here, self._is_wanted):
            self._take_run(found)
        if self._old:
            between = self._pair_layouts(here)
            for old, new in () if self._is_known else between:
                self._join_layouts(old, new, here)
        return [line or self._written(j) for j, line in enumerate(self._out)]

    def _is_wanted(self, run: LostRun) -> bool:
        if not self._is_known or run.is_hidden:
            return True
        author = self._step.author
        return run.author == author and (author.maker == "agent" or run.step == self._step.number)

    def _take_run(self, found: FoundLines) -> None:
        lines = found.run.lines[found.at : found.at + found.size]
        is_home = self._is_home(found)
        for j, line in enumerate(lines, start=found.first):
            match = line.match if is_home or line.match == "reformatted" else "moved"
            self._out[j] = line._replace(match=match)

    def _is_home(self, found: FoundLines) -> bool:
        """Whether a run stands again beside an old neighbour, and was not taken away by this step."""
        run, change = found.run, self._change
        if run.step == self._step.number and run.lines is not self._old:
            return False
        above = self._all[change.i1 - 1].mark if change.i1 else 0
        below = self._all[change.i2].mark if change.i2 < len(self._all) else 0
        last = found.first + found.size == len(self._new) and found.at + found.size == len(run.lines)
        return (found.first == found.at == 0 and above == run.before) or (last and below == run.after)

    def _pair_layouts(self, here: LineCounts) -> list[tuple[Sequence[TracedLine], Sequence[int]]]:
        """Give lines of the same form the source of the replaced line. Return the old and new lines between."""
        form = spaceless if self._is_known else plain_form
        free = [j for j, line in enumerate(self._out) if line is None]
        before, after = [form(line.text) for line in self._old], [form(self._new[j]) for j in free]
        found = changes(before, after)
        for i, k, count in _common(found, len(before)):
            old = self._old[i : i + count]
            if self._is_known or self._pool.holds([line.text for line in old], here):
                for line, j in zip(old, free[k : k + count], strict=True):
                    self._lay_out(j, line.source)
        return [(self._old[change.i1 : change.i2], free[change.j1 : change.j2]) for change in found]

    def _join_layouts(self, old: Sequence[TracedLine], new: Sequence[int], here: LineCounts) -> None:
        """Give new lines the sources of old lines of which only the line breaks differ."""
        left = [line for line in old if not here[line.text]]  # the others moved
        joined = joined_sources([line.text for line in left], [self._new[j] for j in new])
        for j, those in zip(new, joined or (), strict=False):
            sources = [left[i].source for i in those]
            if sources:
                self._lay_out(j, _joint(sources))

    def _lay_out(self, j: int, source: LineSource) -> None:
        self._out[j] = self._pool.new_line(self._new[j], source, "reformatted")

    def _written(self, j: int) -> TracedLine:
        step = self._step
        if not self._is_known:
            return _unexplained(self._new[j], step, self._pool)
        is_loose = step.is_loose or self._hides
        return self._pool.new_line(self._new[j], LineSource(self._answer(j), step.number, is_loose))

    def _answer(self, j: int) -> Answer:
        maker = self._step.author.maker
        if maker == "unknown" or len(self._old) != len(self._new):
            return maker
        other: Answer = "person" if maker == "agent" else "agent"
        before = self._old[j]
        is_part = before.source.answer in (other, "mixed") and _stays(before.text.strip(), self._new[j].strip())
        return "mixed" if is_part else maker


def _common(found: Sequence[LineChange], length: int) -> Iterator[tuple[int, int, int]]:
    """Yield the runs outside of these changes: the first old line, the first new line, and their number."""
    ends = [LineChange(0, 0, 0, 0), *found, LineChange(length, length, 0, 0)]
    for one, following in pairwise(ends):
        if following.i1 > one.i2:
            yield one.i2, one.j2, following.i1 - one.i2


def _joint(sources: Sequence[LineSource]) -> LineSource:
    """Return the source of a line joined from lines with the given sources."""
    answers = {source.answer for source in sources}
    if "unknown" in answers:
        return next(source for source in sources if source.answer == "unknown")
    latest = max(sources, key=lambda source: source.state or 0)
    return LineSource(
        "mixed" if len(answers) > 1 else latest.answer, latest.state, any(one.is_loose for one in sources)
    )


def _stays(old: str, new: str) -> bool:
    """Whether the beginning and the end that both texts share are half of the longer text."""
    shortest = min(len(old), len(new))
    head = next((k for k in range(shortest) if old[k] != new[k]), shortest)
    tail = next((k for k in range(shortest - head) if old[-1 - k] != new[-1 - k]), shortest - head)
    return 2 * (head + tail) >= max(len(old), len(new), 1)
