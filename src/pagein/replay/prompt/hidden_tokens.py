"""What a prompt holds beyond what is visible in it, and the thinking among it, under one policy.

How much of that is thinking is told by what the reply before was billed for (`SizedCall.thought`), and only so much may ever leave. It stands
behind the blocks of its call although the model thought in front of them, so what entered with the block at the frontier stays.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TypeAlias

from pagein.replay.prompt.prompt_sizes import SizedCall
from pagein.replay.prompt.prompt_window import Part, PromptWindow

Changes: TypeAlias = Mapping[int, tuple[tuple[object, ...], Part, float]]
"""Blocks by the position at which they take the place of others, as in `Window.replace`."""


@dataclass(slots=True)
class _Grown:
    """Growth at one call. thought: tokens of thinking that are still in it; gone: tokens of thinking that left."""

    call: int
    position: int
    thought: float
    gone: float = 0.0


class HiddenGrowth:
    """The hidden growth of one window."""

    def __init__(self) -> None:
        self._grown: list[_Grown] = []  # oldest first

    def clear(self) -> None:
        """The window begins anew."""
        self._grown.clear()

    def enter(self, sized: SizedCall, window: PromptWindow) -> None:
        """What a call brings beyond its blocks, which stand already; and what its recording took back."""
        index = sized.call.index
        if sized.hidden:
            position = window.append(("h", index), "hidden", sized.hidden)
            self._grown.append(_Grown(index, position, sized.thought))
        self._take_back(sized.shrunk, window)

    def thinking_removed(self, born: int, before: int, window: PromptWindow) -> Changes:
        """The thinking that leaves with an epoch. born: the call that saw the block at its frontier first; before: what was thought
        before this call is finished.
        """
        changes: dict[int, tuple[tuple[object, ...], Part, float]] = {}
        for one in self._grown:
            if born < one.call <= before and one.thought:
                stays = window.tokens_at(one.position) - one.thought
                changes[one.position] = ("h", one.call, "unthought"), "hidden", stays
                one.gone, one.thought = one.gone + one.thought, 0.0
        return changes

    def _take_back(self, tokens: float, window: PromptWindow) -> None:
        """The recorded prompt shrank. What left here by our doing may be what left there, so it counts first."""
        for one in reversed(self._grown):
            if tokens <= 0:
                return
            ours = min(one.gone, tokens)
            one.gone -= ours
            there = window.tokens_at(one.position)
            taken = min(there, tokens - ours)
            tokens -= ours + taken
            if taken:
                window.shrink(one.position, there - taken)
                one.thought = max(0.0, one.thought - taken)
