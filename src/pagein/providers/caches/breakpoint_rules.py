"""Rules for the breakpoints accepted by a provider (M14, M15, M16, and the place of the automatic breakpoint)."""

from dataclasses import dataclass
from typing import Literal

from pagein.providers.caches.cache_values import LONG, SHORT, Breakpoint

MAX_MARKS = 4


@dataclass(frozen=True, slots=True)
class BreakpointRefusal:
    """A request refused with status 400: the broken rule, and the provider's own words."""

    rule: Literal["M14", "M15", "M16"]
    message: str


def breakpoint_refusal(marks: tuple[Breakpoint, ...], most: int = MAX_MARKS) -> BreakpointRefusal | None:
    """The refusal of some explicit breakpoints, or None."""
    if len(marks) > most:
        return BreakpointRefusal(
            "M14", f"A maximum of {most} blocks with cache_control may be provided. Found {len(marks)}."
        )
    shortest: int = LONG
    for mark in sorted(marks, key=lambda mark: mark.position):
        if mark.ttl > shortest:
            return BreakpointRefusal(
                "M15",
                "cache_control.ttl: a ttl='1h' cache_control block must not come after a ttl='5m' cache_control block. "
                "Note that blocks are processed in the following order: tools, system, messages.",
            )
        shortest = mark.ttl
    return None


def with_automatic(
    marks: tuple[Breakpoint, ...], last: int, ttl: int = SHORT
) -> tuple[Breakpoint, ...] | BreakpointRefusal:
    """Add the breakpoint of a top-level `cache_control`, or return the refusal of the request.

    last: position of the last block that can carry a breakpoint (0: no block can, and no breakpoint is added).
    """
    if len(marks) >= MAX_MARKS:
        return BreakpointRefusal(
            "M16", f"Top-level cache_control needs one of {MAX_MARKS} slots, and all are taken by blocks."
        )
    there = next((mark for mark in marks if mark.position == last), None)
    if there is not None and there.ttl != ttl:
        return BreakpointRefusal(
            "M16",
            f"Top-level cache_control has ttl='{_word(ttl)}' but the target block already has cache_control "
            f"with ttl='{_word(there.ttl)}'",
        )
    placed = marks if there is not None or not last else (*marks, Breakpoint(last, ttl))
    return breakpoint_refusal(placed) or placed


def _word(ttl: int) -> str:
    return "1h" if ttl == LONG else "5m"
