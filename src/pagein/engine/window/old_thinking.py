"""What the model thought in turns that are finished, where an epoch takes it along.

Rules of this file
------------------
1. A turn is finished when a person has spoken behind it. Of the turn that is under way nothing leaves, and nothing of the message whose
   calls are being answered (M10, M11).
2. What leaves is stored first, as one object for each epoch. The blocks themselves, signatures included, are in the journal as the client
   sent them.
"""

from collections.abc import Sequence
from typing import Final

from pagein.engine.log.message_weight import chars_of
from pagein.engine.log.rendering import WindowPiece
from pagein.model.messages import Message, Thinking, ToolResult

NOT_SHOWN: Final = "[thinking that the provider does not show]"
_BETWEEN: Final = "\n\n"


def count_finished(messages: Sequence[Message]) -> int:
    """How many messages, from the first on, are of turns that are finished. Costs the turn that is under way."""
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
    """What was thought in finished turns among these pieces of a window: the text, and about how many tokens; None where nothing was,
    or some of it must not be stored.
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
