"""The hidden tokens of a prompt under a policy, and the thinking among them.

The bill of the previous reply limits the share of thinking (`SizedCall.thought`); only this share may ever be removed.
Hidden tokens are placed after the blocks of their call although the model thought before writing them, so the tokens
that entered with the block at the frontier stay.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TypeAlias

from pagein.replay.prompt.prompt_sizes import SizedCall
from pagein.replay.prompt.prompt_window import Part, PromptWindow

Changes: TypeAlias = Mapping[int, tuple[tuple[object, ...], Part, float]]
"""Replacement blocks by position, as in `PromptWindow.replace`."""


@dataclass(slots=True)
class _Grown:
    """The hidden growth at one call.

    thought: tokens of thinking still in the prompt.
    gone: tokens of thinking removed.
    """

    call: int
    position: int
    thought: float
    gone: float = 0.0


class HiddenGrowth:
    """The hidden growth of a window."""

    def __init__(self) -> None:
        self._grown: list[_Grown] = []  # oldest first

    def clear(self) -> None:
        """Start a new window."""
        self._grown.clear()

    def enter(self, sized: SizedCall, window: PromptWindow) -> None:
        """Add the hidden tokens of a call after its blocks, and subtract the tokens removed in the recording."""
        index = sized.call.index
        if sized.hidden:
            position = window.append(("h", index), "hidden", sized.hidden)
            self._grown.append(_Grown(index, position, sized.thought))
        self._take_back(sized.shrunk, window)

    def thinking_removed(self, born: int, before: int, window: PromptWindow) -> Changes:
        """Return the thinking removed with an epoch.

        born: the first call with the block at the frontier.
        before: thinking before this call is finished.
        """
        changes: dict[int, tuple[tuple[object, ...], Part, float]] = {}
        for one in self._grown:
            if born < one.call <= before and one.thought:
                stays = window.tokens_at(one.position) - one.thought
                changes[one.position] = ("h", one.call, "unthought"), "hidden", stays
                one.gone, one.thought = one.gone + one.thought, 0.0
        return changes

    def _take_back(self, tokens: float, window: PromptWindow) -> None:
        """Shrink the hidden tokens as the recorded prompt shrank.

        Thinking removed by pagein may be the part that shrank in the recording, so it counts first.
        """
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
