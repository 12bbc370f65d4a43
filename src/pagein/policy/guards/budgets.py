"""The read budget: reads and lines since the last restoration, and the events that restore the budget.

Rules of this file
------------------
1. A read costs what it shows anew. A read whose lines were all known, so that a marker answers it, costs nothing.
2. Words of a user restore the budget, and so do a compaction, which clears the window, and a search that narrows.
3. A search narrows if it found files, is not the search before it once more, and either found fewer files than a
   search keeps (`TOP_PATHS`), or was restricted to a part of what the search before covered.
"""

from dataclasses import dataclass
from typing import Final

from pagein.model.guard_notes import ReadMeasureNote, SearchMeasureNote
from pagein.policy.guards.limits import NEAR, Limits

TOP_PATHS: Final = 10
"""Number of files with hits that a search keeps, the best first."""

NEAR_READS: Final = "Read budget near limit. Narrow scope with search before broad reads."
NEAR_LINES: Final = "Total read lines near budget. Prefer targeted reads."


@dataclass(frozen=True, slots=True)
class Spent:
    """The spent part of a budget: reads with new lines, and their new lines."""

    reads: int = 0
    lines: int = 0

    def with_read(self, note: ReadMeasureNote) -> "Spent":
        """Return what is spent after a further read."""
        return self if note.new <= 0 else Spent(self.reads + 1, self.lines + note.new)

    def exceeds(self, limits: Limits) -> bool:
        """Return whether a total is used up, so that further reads with new lines are refused."""
        return _reaches(self.reads, limits.reads) or _reaches(self.lines, limits.total_lines)

    def warnings(self, limits: Limits) -> tuple[str, ...]:
        """Return the warnings about totals that are nearly used up."""
        found = []
        if _reaches(self.reads, _near(limits.reads)):
            found.append(NEAR_READS)
        if _reaches(self.lines, _near(limits.total_lines)):
            found.append(NEAR_LINES)
        return tuple(found)


UNSPENT: Final = Spent()


def narrows(before: SearchMeasureNote | None, now: SearchMeasureNote) -> bool:
    """Return whether a search narrows the question of the search before it."""
    if now.hits < 1 or not now.paths:
        return False
    if before is not None and (now.query, now.where, now.scope) == (before.query, before.where, before.scope):
        return False
    if len(now.paths) < TOP_PATHS:
        return True
    return before is not None and before.where == now.where and _is_inside(now.scope, before.scope)


def _is_inside(scope: str, outer: str) -> bool:
    """Return whether a scope is a true part of another one."""
    scope, outer = scope.rstrip("/"), outer.rstrip("/")
    return scope != outer and bool(scope) and (not outer or scope.startswith(f"{outer}/"))


def _near(limit: int | None) -> int | None:
    return None if limit is None else int(limit * NEAR)


def _reaches(count: int, limit: int | None) -> bool:
    return limit is not None and count >= limit
