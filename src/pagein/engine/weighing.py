"""What a message weighs, in tokens, estimated: each tool result in it, and the rest of it."""

import math
from collections.abc import Callable
from typing import Literal

from pagein.model.entries import Said
from pagein.model.messages import Block, Message, Text, Thinking, ToolCall, ToolResult
from pagein.ports import TokenCounter


def weighed(message: Message, counter: TokenCounter, holds: Callable[[str], bool]) -> Said:
    """The message as it is journaled. holds: whether a text must not be stored; a result that is such weighs nothing, so it never leaves (law 9)."""
    results = [block for block in message.blocks if isinstance(block, ToolResult)]
    tokens = [math.ceil(counter.count(block.text, "result")) for block in results]
    removable = tuple(0 if holds(block.text) else count for block, count in zip(results, tokens, strict=True))
    return Said(message, removable, sum(tokens) + _rest(message, counter))


def _rest(message: Message, counter: TokenCounter) -> int:
    """Tokens of what is no tool result in it."""
    kind: Literal["said", "user"] = "said" if message.role == "assistant" else "user"
    return math.ceil(sum(counter.count(text, kind) for block in message.blocks if (text := words_of(block))))


def words_of(block: Block) -> str:
    """What counts of a block that is no tool result."""
    match block:
        case Text() | Thinking():
            return block.text
        case ToolCall():
            return block.arguments
        case _:
            return ""
