"""Where cache marks stand: end of system, edit frontier, previous end, end (cache-economics 4.1, 4.2; rules A2-A5, A9, O4-O8).

Rules of this file
------------------
1. A mark on a block that cannot carry one stands on the nearest earlier block that can, in every request alike.
2. The previous end and the old frontier are marked only where the prompt up to there is what it was: decided by names, which
   stand for all bytes before, never by places. Where the previous end is not, the prompt was edited: its slot is the old frontier's.
3. What falls on the same block is one mark; what would not be cached for its size gets none.
4. One hour stands before five minutes: a mark asks for no longer than those before it.
"""

from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from pagein.providers.caches.breakpoint_rules import MAX_MARKS
from pagein.providers.caches.cache_values import LONG, SHORT, Breakpoint


@dataclass(frozen=True, slots=True)
class Spot:
    """A block as it was: its position in the prompt, from 1, and the name of the prompt up to it."""

    position: int
    name: Hashable


@dataclass(frozen=True, slots=True)
class Memory:
    """Where the marks of the last request that was answered stood, on this branch. A request that failed leaves it as it was."""

    end: Spot | None = None
    frontier: Spot | None = None


@dataclass(frozen=True, slots=True)
class Outline:
    """A prompt as its blocks, in order.

    names: of the prompt up to and including each. eligible: which can carry a mark. head: how many are tools and system.
    cumulative: tokens up to and including each, None where nobody counted.
    """

    names: Sequence[Hashable]
    eligible: Sequence[bool]
    head: int = 0
    cumulative: Sequence[float] | None = None


@dataclass(frozen=True, slots=True)
class Manner:
    """How marks are set. head, frontier, end: lifetimes, SHORT or LONG.

    min_prefix: smallest prefix that is cached, tokens. ends: whether the end needs a mark of ours, or the provider sets it by itself.
    """

    head: int = SHORT
    frontier: int = SHORT
    end: int = SHORT
    min_prefix: int = 0
    ends: bool = True


@dataclass(frozen=True, slots=True)
class BreakpointPlan:
    """The marks to add, in order, and what to remember once the request was answered."""

    marks: tuple[Breakpoint, ...]
    memory: Memory


FIRST: Final = Memory()
DEFAULT: Final = Manner()


def plan_breakpoints(
    outline: Outline,
    frontier: int | None = None,
    memory: Memory = FIRST,
    manner: Manner = DEFAULT,
    taken: Sequence[Breakpoint] = (),
    slots: int = MAX_MARKS,
) -> BreakpointPlan:
    """The marks of a request.

    frontier: position of the first block that a later edit may change, None where there is none. taken: marks that stand already
    and stay; slots: how many are left beside them. The end comes first, then what is read, then what later requests may read.
    """
    end = _at_or_before(outline, len(outline.names))
    before = None if frontier is None else _at_or_before(outline, frontier - 1)
    wanted = _wanted_positions(outline, end, before, memory, manner)
    standing = {mark.position for mark in taken}
    chosen: dict[int, int] = {}
    for position, ttl in wanted:
        if (
            len(chosen) < slots
            and position not in standing
            and position not in chosen
            and _is_cached(outline, position, manner)
        ):
            chosen[position] = ttl
    marks = tuple(_in_order(chosen, taken))
    return BreakpointPlan(marks, Memory(_spot(outline, end), _spot(outline, before)))


def _wanted_positions(
    outline: Outline, end: int | None, frontier: int | None, memory: Memory, manner: Manner
) -> Iterator[tuple[int, int]]:
    """Positions worth a mark with their lifetimes, the most valuable first."""
    if manner.ends and end is not None:
        yield end, manner.end
    previous = _again(outline, memory.end)
    if previous is not None:
        yield previous, manner.end
    elif (old := _again(outline, memory.frontier)) is not None:
        yield old, manner.frontier
    if (head := _at_or_before(outline, outline.head)) is not None:
        yield head, manner.head
    if frontier is not None:
        yield frontier, manner.frontier


def _again(outline: Outline, spot: Spot | None) -> int | None:
    """The position of a block that is still there behind the same prompt."""
    if spot is None or spot.position > len(outline.names) or outline.names[spot.position - 1] != spot.name:
        return None
    return spot.position if outline.eligible[spot.position - 1] else None


def _at_or_before(outline: Outline, position: int) -> int | None:
    """The nearest block up to this position that can carry a mark."""
    last = min(position, len(outline.names))
    return next((place for place in range(last, 0, -1) if outline.eligible[place - 1]), None)


def _is_cached(outline: Outline, position: int, manner: Manner) -> bool:
    return outline.cumulative is None or outline.cumulative[position - 1] >= manner.min_prefix


def _spot(outline: Outline, position: int | None) -> Spot | None:
    return None if position is None else Spot(position, outline.names[position - 1])


def _in_order(chosen: dict[int, int], taken: Sequence[Breakpoint]) -> Iterator[Breakpoint]:
    """The chosen marks, none asking for longer than one before it, or for less than one that stands behind it."""
    shortest = LONG
    for position, ttl in sorted([*chosen.items(), *((mark.position, mark.ttl) for mark in taken)]):
        if position not in chosen:
            shortest = min(shortest, ttl)
            continue
        behind = max((mark.ttl for mark in taken if mark.position > position), default=SHORT)
        shortest = max(min(ttl, shortest), behind)
        yield Breakpoint(position, shortest)
