"""The weight of a message: token estimates of each of its tool results, and of the whole."""

import math
from typing import Final, Literal

from pagein.model.entries import MessageEntry
from pagein.model.messages import Message, Other, Text, Thinking, ToolCall, ToolResult
from pagein.model.server_results import ServerResult
from pagein.ports import TokenCounter
from pagein.providers.wire.formats import server_results_of

_BYTES_OF_BASE64: Final = 0.75
_CHARS_OF_TOKEN: Final = 4


def message_entry(message: Message, kept: Message, counter: TokenCounter) -> MessageEntry:
    """Return the entry of a message that is journaled as `kept`, with the weight of the whole message."""
    results = [block.text for block in message.blocks if isinstance(block, ToolResult)]
    tokens = tuple(math.ceil(counter.count(text, "result")) for text in results)
    if message.role == "assistant" and any(isinstance(block, Other) for block in message.blocks):
        tokens = tuple(_server_tokens(one, counter) for one in server_results_of(message))
    texts = (
        block.arguments if isinstance(block, ToolCall) else block.text
        for block in message.blocks
        if isinstance(block, Text | Thinking | ToolCall)
    )
    kind: Literal["said", "user"] = "said" if message.role == "assistant" else "user"
    rest = math.ceil(sum(counter.count(text, kind) for text in texts if text))
    return MessageEntry(kept, tokens, sum(tokens) + rest)


def _server_tokens(result: ServerResult, counter: TokenCounter) -> int:
    """Estimate the tokens of a result of the provider's own tools. Sealed text is in base64."""
    return math.ceil(counter.count(result.text, "result") + result.sealed * _BYTES_OF_BASE64 / _CHARS_OF_TOKEN)
