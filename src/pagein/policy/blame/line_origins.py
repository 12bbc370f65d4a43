"""The origin of each line of a file, from the known states of the file.

Rules of this file
------------------
1. States are taken in order. Between two of them lies a step (`line_steps`), with the author that is proven for it.
2. An edit whose arguments are known is applied to the lines known before, if it has one place there; else it is two steps:
   to the text in which it found its place, without a proven author, and from there to its result. So a session that knows
   an old text of the file takes nothing away from anybody. Without arguments, an edit is followed only on the text that
   the same session knew before.
3. A state known in part is laid over the lines known before, by the numbers of its lines. If they disagree, the part takes
   the place of the lines that it shares text with.
4. The step from the last state to the file as it is now has no proven author.
5. The same file at another place (in another worktree, under an older name) is followed beside it. Its lines are found as
   lost lines are: a text that came from there was written there.
6. An agent's line of a write over an unknown text is given up if git knows an older commit that has it.
"""

from collections.abc import Sequence
from collections.abc import Set as AbstractSet
from itertools import accumulate
from typing import Final

from pagein.policy.blame.edit_bases import applied, base_of, written_runs
from pagein.policy.blame.known_states import NOBODY, UNEXPLAINED, KnownState, LineOrigin, lines_of
from pagein.policy.blame.line_steps import HIDDEN, Step, take_step
from pagein.policy.blame.traced_lines import LinePool, LineSource, LostRun, TracedLine
from pagein.policy.reads.line_diff import changes

_LONGEST: Final = 1_000_000  # lines; a part further down is not followed
_NEARBY: Final = 300  # lines by which a part may have moved
_HIDDEN: Final = TracedLine(HIDDEN, LineSource("unknown", None), "none", -1)


def line_origins(
    states: Sequence[KnownState],
    now: Sequence[str],
    committed: Sequence[float | None] = (),
    elsewhere: Sequence[Sequence[KnownState]] = (),
) -> list[LineOrigin]:
    """Return the origin of each line of `now`.

    states: oldest first. committed: when the commit was made that git names for each line; None for a line of no commit.
    elsewhere: the states of the same file at other places (in other worktrees, under older names). In the answer they are
        counted on behind those of the file.
    """
    pool = LinePool()
    every = [state for those in (states, *elsewhere) for state in those]
    tracers = [_Tracer(pool) for _ in range(1 + len(elsewhere))]
    owners = [tracer for tracer, those in zip(tracers, (states, *elsewhere), strict=True) for _ in those]
    for number in sorted(range(len(every)), key=lambda number: every[number].at):
        _show_others(owners[number], tracers)
        owners[number].follow(number, every[number])
    _show_others(tracers[0], tracers)
    found = [_told(line) for line in tracers[0].finish(now)]
    for j, at in enumerate(committed[: len(found)]):
        source, line = found[j]
        if at is not None and source.is_loose and line.state is not None and at < every[line.state].at:
            found[j] = source, LineOrigin("unknown", line.state, line.match)
    return [line for _, line in found]


def _show_others(tracer: "_Tracer", tracers: Sequence["_Tracer"]) -> None:
    for other in tracers:
        if other is not tracer:
            other.show()


def _told(line: TracedLine) -> tuple[LineSource, LineOrigin]:
    source = line.source
    told = UNEXPLAINED if source.state is None else LineOrigin(source.answer, source.state, line.match)
    return source, told


class _Tracer:
    """The lines of the newest state, by number. Lines shown by no text are hidden.

    is_known: whether anything is known of the file, be it that it was deleted.
    is_open: whether lines may follow after the last.
    whole: the text of the lines after a state that is known whole, which nothing followed.
    """

    def __init__(self, pool: LinePool) -> None:
        self._pool = pool
        self._is_shown = True
        self._lines: list[TracedLine] = []
        self._is_known = False
        self._is_open = True
        self._last: KnownState | None = None
        self._whole: tuple[str, ...] | None = None
        self._hidden: list[LostRun] = []

    def show(self) -> None:
        """Show the lines to the other files, if they are new."""
        if not self._is_shown:
            self._pool.show(list(self._lines))
            self._is_shown = True

    def follow(self, number: int, state: KnownState) -> None:
        """Take the step to this state."""
        is_edited = state.deed == "edit" and state.author.maker != "unknown" and self._follow_edit(number, state)
        if state.deed == "delete":
            self._replace((), Step(NOBODY, number))
        elif state.lines is None:
            if not is_edited:
                self._follow_unseen(number, state)
        elif state.spans is not None:
            self._follow_part(number, state.spans, state.lines)
        elif not is_edited:
            self._replace(state.lines, self._step_to(number, state))
        elif self._has_hidden():
            self._replace(state.lines, Step(NOBODY, number))
        self._last, self._is_shown = state, False

    def _follow_edit(self, number: int, state: KnownState) -> bool:
        """Take the step of an edit's arguments. Return whether they have a place."""
        if not state.edits:
            return False
        step, self._whole = Step(state.author, number), None
        after = applied([line.text for line in self._lines], state.edits)
        if after is None and state.lines is not None and state.spans is None:
            base = base_of(state.lines, state.edits)
            if base is None:
                return False
            self._replace(base, Step(NOBODY, number))
            after = list(state.lines)
        if after is None:
            return False
        self._lines = take_step(self._lines, after, step, self._pool)
        return True

    def _step_to(self, number: int, state: KnownState) -> Step:
        if state.deed in ("read", "move"):
            return Step(NOBODY, number)
        if state.deed == "write":
            return Step(state.author, number, is_loose=not self._is_known)
        last = self._last
        is_own = last is not None and last.author.session == state.author.session and last.lines == self._whole
        return Step(state.author if is_own or state.author.maker == "person" else NOBODY, number)

    def _has_hidden(self) -> bool:
        return self._is_open or any(line.text == HIDDEN for line in self._lines)

    def finish(self, now: Sequence[str]) -> list[TracedLine]:
        """Return the lines of the present file."""
        return take_step(self._lines, now, Step(NOBODY, None), self._pool)

    def _replace(self, lines: Sequence[str], step: Step) -> None:
        self._lines = take_step(self._lines, lines, step, self._pool)
        self._is_known, self._is_open, self._whole = True, False, tuple(lines)
        self._settle(None)  # what is not in this text was taken away

    def _follow_unseen(self, number: int, state: KnownState) -> None:
        """Keep what an edit wrote, until a text shows where; forget the lines under an unknown text."""
        if state.deed == "write":
            take_step(self._lines, (), Step(NOBODY, number), self._pool)
            self._lines, self._is_open, self._whole = [], True, None
        if self._hidden:
            self._settle({line for edit in state.edits for line in lines_of(edit.old)})
        for run in written_runs(state.edits) if state.author.maker == "agent" else ():
            lines = [self._pool.new_line(text, _source(state, number, wrote=wrote)) for text, wrote in run]
            self._hidden.append(LostRun(lines, 0, 0, state.author, number, is_hidden=True))
            self._pool.lose(self._hidden[-1])

    def _settle(self, taken: AbstractSet[str] | None) -> None:
        """Count each hidden run that has one of these lines as lost; for None, every hidden run."""
        kept = []
        for run in self._hidden:
            if taken is None or any(line.text in taken for line in run.lines):
                self._pool.settle(run)
            else:
                kept.append(run)
        self._hidden = kept

    def _follow_part(self, number: int, spans: Sequence[tuple[int, int]], lines: Sequence[str]) -> None:
        sizes = [last - first + 1 for first, last in spans]
        if sum(sizes) != len(lines) or min(sizes, default=0) < 1 or max((b for _, b in spans), default=0) > _LONGEST:
            return
        self._whole = None
        starts = [0, *accumulate(sizes)]
        for (first, _), start, size in zip(spans, starts, sizes, strict=False):
            self._lay(first, lines[start : start + size], Step(NOBODY, number))
        self._is_known = True

    def _lay(self, first: int, part: Sequence[str], step: Step) -> None:
        """Lay seen lines over the known lines, at the same numbers if nothing speaks against."""
        at, stop = first - 1, first - 1 + len(part)
        if self._is_open and len(self._lines) < stop:
            self._lines += [_HIDDEN] * (stop - len(self._lines))
        there = self._lines[at:stop]
        if len(there) == len(part) and all(line.text in (HIDDEN, text) for line, text in zip(there, part, strict=True)):
            seen = LineSource("unknown", step.number)
            self._lines[at:stop] = [
                self._pool.new_line(text, seen) if line.text == HIDDEN else line
                for line, text in zip(there, part, strict=True)
            ]
            return
        i1, i2 = self._frame(at, part)
        self._write(i1 + 1, i2 - i1, part, step)

    def _write(self, first: int, count: int, part: Sequence[str], step: Step) -> None:
        at = first - 1
        self._lines[at : at + count] = take_step(self._lines[at : at + count], part, step, self._pool)

    def _frame(self, at: int, part: Sequence[str]) -> tuple[int, int]:
        """Return the known lines for a part: the range with shared lines, else the range with the part's numbers.

        They are sought nearby.
        """
        low, high = max(0, at - _NEARBY), min(len(self._lines), at + len(part) + _NEARBY)
        found = changes([line.text for line in self._lines[low:high]], part)
        kept = [(0, 0), *((change.i2, change.j2) for change in found)]
        ends = [*((change.i1, change.j1) for change in found), (high - low, len(part))]
        same = [(i, j, k - i) for (i, j), (k, _) in zip(kept, ends, strict=True) if k > i]
        if not same:
            return min(at, len(self._lines)), min(at + len(part), len(self._lines))
        i, j, _ = same[0]
        k, m, size = same[-1]
        return max(0, low + i - j), min(len(self._lines), low + k + size + len(part) - m - size)


def _source(state: KnownState, number: int, *, wrote: bool) -> LineSource:
    return LineSource(state.author.maker if wrote else "unknown", number)
