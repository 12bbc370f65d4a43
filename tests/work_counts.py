"""What work costs, counted instead of timed: the same on every machine, however busy."""

import sys
import tracemalloc
from collections.abc import Callable
from types import FrameType


def calls(work: Callable[[], object]) -> int:
    """How many functions it calls, of Python and of C."""
    count = 0

    def note(_frame: FrameType, event: str, _argument: object) -> None:
        nonlocal count
        count += event in ("call", "c_call")

    before = sys.getprofile()
    sys.setprofile(note)
    try:
        work()
    finally:
        sys.setprofile(before)
    return count


def allocated(work: Callable[[], object]) -> int:
    """How many bytes it holds at most beyond what was held before: a copy of anything large is seen, which is one call."""
    tracemalloc.start()
    try:
        held, _ = tracemalloc.get_traced_memory()
        tracemalloc.reset_peak()
        work()
        return tracemalloc.get_traced_memory()[1] - held
    finally:
        tracemalloc.stop()
