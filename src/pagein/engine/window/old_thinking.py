"""Evict the model's thinking of finished turns with an epoch.

Rules of this file
------------------
1. A turn is finished when a person has spoken after it. Nothing is evicted from the current turn, nor from the message
   whose calls are being answered (M10, M11).
2. Evicted thinking is stored first, as one object for each epoch. The blocks themselves, with signatures, are in the
   journal as the client sent them.
"""

from collections.abc import Sequence
from typing import Final

from pagein.engine.log.block_texts import chars_of
from pagein.engine.log.request_draft import WindowPiece
from pagein.model.messages import Message, Thinking, ToolResult

NOT_SHOWN: Final = "[thinking that the provider does not show]"
_BETWEEN: Final = "\n\n"


def count_finished(messages: Sequence[Message]) -> int:
    """Return the number of leading messages in finished turns. Costs as much as the current turn."""
    spoken = answered = False
    for place in range(len(messages) - 1, -1, -1):
        message = messages[place]
        if message.role != "assistant":
            spoken = spoken or message.role == "user"
            answered = answered or any(isinstance(block, ToolResult) for block in message.blocks)
        elif spoken and not answered:
            return place + 1
        else:
            spoken = answered = False
    return 0


def thought_in(pieces: Sequence[WindowPiece]) -> tuple[str, int] | None:
    """Return the thinking of finished turns in a list of pieces, with estimated tokens.

    None if there is no thinking, or if some of it must not be stored.
    """
    texts: list[str] = []
    tokens = 0.0
    for piece in pieces[: count_finished([piece.message for piece in pieces])]:
        thoughts = [block for block in piece.message.blocks if isinstance(block, Thinking)]
        if any(block.withheld is not None for block in thoughts):
            return None
        texts += [block.text or NOT_SHOWN for block in thoughts]
        chars = sum(chars_of(block) for block in piece.message.blocks)
        tokens += piece.weight * sum(len(block.text) for block in thoughts) / max(1, chars)
    return (_BETWEEN.join(texts), round(tokens)) if texts else None
