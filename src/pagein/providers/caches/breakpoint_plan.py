"""Plan all cache breakpoints of a body: end of system, edit frontier, previous end, end (rules A2-A5, A9, O4-O8).

For callers without a session, and for fallbacks. A session adds its few by `engine.cache.cache_breakpoints`.

Rules of this file
------------------
1. If a block cannot carry a breakpoint, the nearest earlier block that can carries it, in every request alike.
2. The previous end and the old frontier get a breakpoint only if the prompt up to there is unchanged. Names decide
   this, never
   positions: a name stands for all bytes before. If the prompt before the previous end was edited, its slot goes to the
       old frontier.
3. Two breakpoints on one block are one. A prefix too small to be cached gets none.
4. One hour comes before five minutes: no breakpoint has a longer TTL than those before it.
"""

from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from pagein.providers.caches.breakpoint_rules import MAX_MARKS
from pagein.providers.caches.cache_values import LONG, SHORT, Breakpoint


@dataclass(frozen=True, slots=True)
class Spot:
    """A block of an earlier prompt: the position, from 1, and the name of the prompt up to this block."""

    position: int
    name: Hashable


@dataclass(frozen=True, slots=True)
class Memory:
    """The breakpoints of the last answered request on a branch. A failed request does not change the memory."""

    end: Spot | None = None
    frontier: Spot | None = None


@dataclass(frozen=True, slots=True)
class Outline:
    """A prompt as a sequence of blocks.

    names: names of the prompt up to and including each block.
    eligible: whether each block can carry a breakpoint.
    head: number of tool and system blocks.
    cumulative: tokens up to and including each block; None if not counted.
    """

    names: Sequence[Hashable]
    eligible: Sequence[bool]
    head: int = 0
    cumulative: Sequence[float] | None = None


@dataclass(frozen=True, slots=True)
class Manner:
    """How breakpoints are set.

    head, frontier, end: TTL of each breakpoint, SHORT or LONG.
    min_prefix: smallest prefix that is cached, in tokens.
    ends: whether to set a breakpoint at the end; False if the provider sets it.
    """

    head: int = SHORT
    frontier: int = SHORT
    end: int = SHORT
    min_prefix: int = 0
    ends: bool = True


@dataclass(frozen=True, slots=True)
class BreakpointPlan:
    """The breakpoints to add, in order, and the memory to keep once the request is answered."""

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
    """Plan the breakpoints of a request.

    frontier: position of the first block that a later edit may change; None without such a block.
    taken: breakpoints that are set already and stay.
    slots: number of free breakpoints beside them.

    The end has priority, then prefixes that this request reads, then prefixes that later requests may read.
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
    """Yield positions worth a breakpoint with their TTL, the most valuable first."""
    if manner.ends and end is not None:
        yield end, manner.end
    previous = _current_position(outline, memory.end)
    if previous is not None:
        yield previous, manner.end
    elif (old := _current_position(outline, memory.frontier)) is not None:
        yield old, manner.frontier
    if (head := _at_or_before(outline, outline.head)) is not None:
        yield head, manner.head
    if frontier is not None:
        yield frontier, manner.frontier


def _current_position(outline: Outline, spot: Spot | None) -> int | None:
    """The position of an earlier block, if still in the prompt after the same prefix."""
    if spot is None or spot.position > len(outline.names) or outline.names[spot.position - 1] != spot.name:
        return None
    return spot.position if outline.eligible[spot.position - 1] else None


def _at_or_before(outline: Outline, position: int) -> int | None:
    """The nearest block up to this position that can carry a breakpoint."""
    last = min(position, len(outline.names))
    return next((place for place in range(last, 0, -1) if outline.eligible[place - 1]), None)


def _is_cached(outline: Outline, position: int, manner: Manner) -> bool:
    return outline.cumulative is None or outline.cumulative[position - 1] >= manner.min_prefix


def _spot(outline: Outline, position: int | None) -> Spot | None:
    return None if position is None else Spot(position, outline.names[position - 1])


def _in_order(chosen: dict[int, int], taken: Sequence[Breakpoint]) -> Iterator[Breakpoint]:
    """The chosen breakpoints in order, with TTLs that never increase along the prompt."""
    shortest = LONG
    for position, ttl in sorted([*chosen.items(), *((mark.position, mark.ttl) for mark in taken)]):
        if position not in chosen:
            shortest = min(shortest, ttl)
            continue
        behind = max((mark.ttl for mark in taken if mark.position > position), default=SHORT)
        shortest = max(min(ttl, shortest), behind)
        yield Breakpoint(position, shortest)
