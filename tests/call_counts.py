"""Work counted, never timed: how many calls of Python functions something makes."""

import sys
from collections import Counter
from collections.abc import Callable
from types import FrameType
from typing import TypeVar

T = TypeVar("T")


def counted(work: Callable[[], T]) -> tuple[T, Counter[str]]:
    """What this thread does in there, by the name of the function, and what comes out."""
    calls: Counter[str] = Counter()

    def watch(frame: FrameType, event: str, argument: object) -> None:
        if event == "call":
            calls[frame.f_code.co_qualname] += 1
        elif event == "c_call":
            calls[getattr(argument, "__qualname__", "?")] += 1

    before = sys.getprofile()
    sys.setprofile(watch)
    try:
        found = work()
    finally:
        sys.setprofile(before)
    return found, calls


def excess(few: Counter[str], many: Counter[str], allowed: int) -> dict[str, tuple[int, int]]:
    """The functions that were called so much more often in the longer of two runs."""
    return {name: (few[name], count) for name, count in many.items() if count > few[name] + allowed}
