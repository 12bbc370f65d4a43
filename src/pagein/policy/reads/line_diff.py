r"""Line diffs, byte-exact and bounded.

Rules of this file
------------------
1. Only `\n` ends a line. Carriage returns, form feeds and NUL are content; a last line without `\n` is marked as such.
2. Any list of changes found here turns one side into the other exactly. The budget limits how short the list is, never
   its correctness.
3. Work is bounded: lines that occur once on both sides split the problem (near linear); between them the longest common
   run is sought while the budget lasts, and the rest is replaced whole.
"""

from bisect import bisect_left
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from typing import Final, NamedTuple

_BUDGET: Final = 2_000_000  # steps, a second or less; a diff that needs more is hardly worth sending
_NO_NEWLINE: Final = "\\ No newline at end of file\n"


class LineChange(NamedTuple):
    """Lines `[i1, i2)` of the old side became lines `[j1, j2)` of the new side, counted from 0."""

    i1: int
    i2: int
    j1: int
    j2: int


@dataclass(frozen=True, slots=True)
class Diff:
    """A unified diff.

    added, removed: number of lines with that sign.
    shown: runs `(first, last)` of the new side's lines in the diff, as context or added, counted from 1 in the new
        file.
    """

    text: str
    added: int
    removed: int
    shown: tuple[tuple[int, int], ...]

    @property
    def changed(self) -> int:
        """Number of changed lines, as the marker counts them: the greater of added and removed."""
        return max(self.added, self.removed)

    @property
    def lines(self) -> int:
        """Number of lines of the text, without the empty line after its last newline."""
        return self.text.count("\n")


def split_lines(text: str) -> list[str]:
    r"""Return the lines of a text with their `\n`; joined they are the text.

    The last line may lack its `\n`. An empty text has no line.
    """
    lines = text.split("\n")
    last = lines.pop()
    out = [line + "\n" for line in lines]
    return [*out, last] if last else out


def changes(old: Sequence[str], new: Sequence[str], budget: int = _BUDGET) -> tuple[LineChange, ...]:
    """Return the changes from `old` to `new`, in order; neighbours are separated by at least one common line."""
    found: list[LineChange] = []
    waiting = [LineChange(0, len(old), 0, len(new))]
    while waiting:
        gap = _trim_gap(old, new, waiting.pop())
        if gap.i1 == gap.i2 or gap.j1 == gap.j2:
            if gap.i1 != gap.i2 or gap.j1 != gap.j2:
                found.append(gap)
            continue
        common, cost = _common(old, new, gap, budget)
        budget -= cost
        if common:
            waiting.extend(reversed(_between(gap, common)))
        else:
            found.append(gap)
    return _join_changes(sorted(found))


def _trim_gap(old: Sequence[str], new: Sequence[str], gap: LineChange) -> LineChange:
    i1, i2, j1, j2 = gap
    while i1 < i2 and j1 < j2 and old[i1] == new[j1]:
        i1, j1 = i1 + 1, j1 + 1
    while i1 < i2 and j1 < j2 and old[i2 - 1] == new[j2 - 1]:
        i2, j2 = i2 - 1, j2 - 1
    return LineChange(i1, i2, j1, j2)


def _between(gap: LineChange, common: Sequence[tuple[int, int]]) -> list[LineChange]:
    gaps: list[LineChange] = []
    i, j = gap.i1, gap.j1
    for at_old, at_new in common:
        if at_old > i or at_new > j:
            gaps.append(LineChange(i, at_old, j, at_new))
        i, j = at_old + 1, at_new + 1
    if i < gap.i2 or j < gap.j2:
        gaps.append(LineChange(i, gap.i2, j, gap.j2))
    return gaps


def _common(old: Sequence[str], new: Sequence[str], gap: LineChange, budget: int) -> tuple[list[tuple[int, int]], int]:
    """Return common lines to split the gap at, in order on both sides, and the cost of finding them."""
    a, b = old[gap.i1 : gap.i2], new[gap.j1 : gap.j2]
    cost = len(a) + len(b)
    if cost > budget:
        return [], cost
    there = Counter(b)
    shared = [(i, line) for i, line in enumerate(a) if line in there]
    if not shared:
        return [], cost
    here = Counter([line for _, line in shared])
    place = {line: j for j, line in enumerate(b) if there[line] == 1}
    unique = [(i, place[line]) for i, line in shared if here[line] == 1 and line in place]
    if unique:
        return [(gap.i1 + i, gap.j1 + j) for i, j in _longest_rise(unique)], cost
    cost += sum(there[line] for _, line in shared)
    if cost > budget:
        return [], cost
    match = SequenceMatcher(None, a, b, autojunk=False).find_longest_match()
    return [(gap.i1 + match.a + k, gap.j1 + match.b + k) for k in range(match.size)], cost


def _longest_rise(pairs: Sequence[tuple[int, int]]) -> list[tuple[int, int]]:
    """Return the longest run of pairs that rises on the second side too (the first side rises already)."""
    ends: list[int] = []
    at: list[int] = []
    before: list[int] = []
    for k, (_, j) in enumerate(pairs):
        length = bisect_left(ends, j)
        before.append(at[length - 1] if length else -1)
        if length == len(ends):
            ends.append(j)
            at.append(k)
        else:
            ends[length] = j
            at[length] = k
    out: list[tuple[int, int]] = []
    k = at[-1]
    while k >= 0:
        out.append(pairs[k])
        k = before[k]
    return out[::-1]


def _join_changes(found: Sequence[LineChange]) -> tuple[LineChange, ...]:
    out: list[LineChange] = []
    for change in found:
        if out and out[-1].i2 == change.i1 and out[-1].j2 == change.j1:
            out[-1] = LineChange(out[-1].i1, change.i2, out[-1].j1, change.j2)
        else:
            out.append(change)
    return tuple(out)


def within(found: Sequence[LineChange], first: int, last: int) -> tuple[LineChange, tuple[LineChange, ...]]:
    """Return the frame of the new side's lines `[first, last)`, and the part of the changes inside.

    The frame says which old lines these new lines come from. Old lines deleted exactly at its edges are left out.
    """
    i1, i2 = first, last
    inside: list[LineChange] = []
    for change in found:
        if change.j2 <= first:
            i1 = first + change.i2 - change.j2
        elif change.j1 < first:
            i1 = change.i1
        if change.j2 <= last and not change.j1 == change.j2 == last:
            i2 = last + change.i2 - change.j2
        elif change.j1 < last:
            i2 = change.i2
        if change.j1 < last and change.j2 > first and not change.j1 == change.j2 == first:
            inside.append(LineChange(change.i1, change.i2, max(change.j1, first), min(change.j2, last)))
    return LineChange(i1, i2, first, last), tuple(inside)


def unified_diff(
    old: Sequence[str], new: Sequence[str], label: str, found: Sequence[LineChange], frame: LineChange, context: int = 3
) -> Diff:
    """Format changes as a unified diff, in the form of jsdiff: tabs behind the names, counts always given.

    old, new: the whole files, as `split_lines` gives them. frame: the lines that the diff may show.
    """
    name = _header_name(label)
    out = [f"--- a/{name}\t\n", f"+++ b/{name}\t\n"]
    added = removed = 0
    shown: list[tuple[int, int]] = []
    for group in hunk_groups(found, context):
        i1 = max(group[0].i1 - context, frame.i1)
        j1 = group[0].j1 - (group[0].i1 - i1)
        tail = min(context, frame.i2 - group[-1].i2)
        i2, j2 = group[-1].i2 + tail, group[-1].j2 + tail
        out.append(f"@@ -{_range(i1, i2)} +{_range(j1, j2)} @@\n")
        at = i1
        for change in group:
            out.extend(_sign_lines(" ", old[at : change.i1]))
            out.extend(_sign_lines("-", old[change.i1 : change.i2]))
            out.extend(_sign_lines("+", new[change.j1 : change.j2]))
            at = change.i2
            removed += change.i2 - change.i1
            added += change.j2 - change.j1
        out.extend(_sign_lines(" ", old[at:i2]))
        if j2 > j1:
            shown.append((j1 + 1, j2))
    return Diff("".join(out), added, removed, tuple(shown))


def hunk_groups(found: Sequence[LineChange], context: int) -> list[list[LineChange]]:
    """Return the changes by hunk: changes with touching context lines share a hunk."""
    groups: list[list[LineChange]] = []
    for change in found:
        if groups and change.i1 - groups[-1][-1].i2 <= 2 * context:
            groups[-1].append(change)
        else:
            groups.append([change])
    return groups


def _range(first: int, stop: int) -> str:
    # an empty side is placed after the line before it
    return f"{first + 1 if stop > first else first},{stop - first}"


def _sign_lines(sign: str, lines: Sequence[str]) -> list[str]:
    return [sign + line if line.endswith("\n") else f"{sign}{line}\n{_NO_NEWLINE}" for line in lines]


def _header_name(label: str) -> str:
    return label.translate({9: "_", 10: "_", 13: "_"}) or "unknown"
