"""What a message weighs, in tokens, estimated: each tool result in it, and the rest of it."""

import math
from typing import Literal

from pagein.model.entries import MessageEntry
from pagein.model.messages import Block, Message, Text, Thinking, ToolCall, ToolResult
from pagein.ports import TokenCounter


def weigh_message(message: Message, counter: TokenCounter) -> MessageEntry:
    """The message with what it weighs."""
    results = [block for block in message.blocks if isinstance(block, ToolResult)]
    tokens = tuple(math.ceil(counter.count(block.text, "result")) for block in results)
    return MessageEntry(message, tokens, sum(tokens) + _rest(message, counter))


def _rest(message: Message, counter: TokenCounter) -> int:
    """Tokens of what is no tool result in it."""
    kind: Literal["said", "user"] = "said" if message.role == "assistant" else "user"
    return math.ceil(sum(counter.count(text, kind) for block in message.blocks if (text := words_of(block))))


def chars_of(block: Block) -> int:
    """How many characters it counts of a block that is no tool result, also where it was kept without all of them."""
    if isinstance(block, Text | Thinking | ToolCall) and block.withheld is not None:
        return block.withheld.chars
    return len(words_of(block))


def words_of(block: Block) -> str:
    """What counts of a block that is no tool result."""
    match block:
        case Text() | Thinking():
            return block.text
        case ToolCall():
            return block.arguments
        case _:
            return ""
