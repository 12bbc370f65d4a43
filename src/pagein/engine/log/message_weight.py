"""Estimate the weight of a message in tokens: each tool result, and the rest."""

import math
from typing import Final, Literal

from pagein.model.entries import MessageEntry
from pagein.model.messages import Block, Message, Other, Text, Thinking, ToolCall, ToolResult
from pagein.model.server_results import ServerResult
from pagein.ports import TokenCounter
from pagein.providers.wire.formats import server_results_of

_BYTES_OF_BASE64: Final = 0.75
_CHARS_OF_TOKEN: Final = 4


def weigh_message(message: Message, counter: TokenCounter) -> MessageEntry:
    """Return the journal entry of a message, with token estimates."""
    results = [block for block in message.blocks if isinstance(block, ToolResult)]
    tokens = tuple(math.ceil(counter.count(block.text, "result")) for block in results)
    if message.role == "assistant" and any(isinstance(block, Other) for block in message.blocks):
        tokens = tuple(_server_tokens(one, counter) for one in server_results_of(message))
    return MessageEntry(message, tokens, sum(tokens) + _rest(message, counter))


def _server_tokens(result: ServerResult, counter: TokenCounter) -> int:
    """Estimate the tokens of a result of the provider's own tools. Sealed text is in base64."""
    return math.ceil(counter.count(result.text, "result") + result.sealed * _BYTES_OF_BASE64 / _CHARS_OF_TOKEN)


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
