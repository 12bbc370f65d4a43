"""Estimate the weight of a message in tokens: each tool result, and the rest."""

import math
from typing import Literal

from pagein.model.entries import MessageEntry
from pagein.model.messages import Block, Message, Text, Thinking, ToolCall, ToolResult
from pagein.ports import TokenCounter


def weigh_message(message: Message, counter: TokenCounter) -> MessageEntry:
    """Return the journal entry of a message, with token estimates."""
    results = [block for block in message.blocks if isinstance(block, ToolResult)]
    tokens = tuple(math.ceil(counter.count(block.text, "result")) for block in results)
    return MessageEntry(message, tokens, sum(tokens) + _rest(message, counter))


def _rest(message: Message, counter: TokenCounter) -> int:
    """Estimate the tokens of everything but tool results."""
    kind: Literal["said", "user"] = "said" if message.role == "assistant" else "user"
    return math.ceil(sum(counter.count(text, kind) for block in message.blocks if (text := words_of(block))))


def chars_of(block: Block) -> int:
    """Return the number of characters of a block other than a tool result. Counts redacted text too."""
    if isinstance(block, Text | Thinking | ToolCall) and block.withheld is not None:
        return block.withheld.chars
    return len(words_of(block))


def words_of(block: Block) -> str:
    """Return the countable text of a block other than a tool result."""
    match block:
        case Text() | Thinking():
            return block.text
        case ToolCall():
            return block.arguments
        case _:
            return ""
