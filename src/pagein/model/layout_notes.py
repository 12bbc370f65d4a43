"""Notes about the layout of a conversation's requests: the inputs from which a pooled window is computed."""

from dataclasses import dataclass
from typing import TypeAlias

from pagein.model.tier_notes import TierNote


@dataclass(frozen=True, slots=True)
class PooledRequestNote:
    """The next request shows its conversation in the pooled layout.

    The window follows from the entries of the branch and from these facts, so it is the same in every process.

    model: name of the model, for its token counts.
    read, write, anywhere: its cache, as in `CacheTerms`.
    calls, turns, by_hand: bounds of the active content, as in `PoolRules`.
    prefix: tokens of instructions and tool definitions, about.
    floor: messages at the beginning that must stay as they were sent.
    cold: whether the provider's cache holds nothing of the prompt.
    whole: whether the new messages stand as the client sent them.
    marked: whether the prompt has a cache breakpoint where the window will most likely be built anew.
    """

    model: str = ""
    read: float = 0.1
    write: float = 1.25
    anywhere: bool = False
    calls: int = 5
    turns: int = 3
    by_hand: int = 20
    prefix: float = 0.0
    floor: int = 0
    cold: bool = False
    whole: bool = False
    marked: bool = True


@dataclass(frozen=True, slots=True)
class InlineNote:
    """A conversation that was to be pooled stays in the inline layout. reason: why, in a sentence."""

    reason: str = ""


LayoutNote: TypeAlias = PooledRequestNote | InlineNote | TierNote
"""A note about the layout of a request."""
