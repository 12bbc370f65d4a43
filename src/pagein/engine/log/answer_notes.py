"""Journal the answer to a request as a note, so that memory has it before the client sends it back as a message.

No decision reads this note: the messages of the next request say what the conversation goes on with.
"""

from collections.abc import Sequence
from dataclasses import replace

from pagein.engine.log.privacy import Privacy
from pagein.model.chats import CUT_SHORT
from pagein.model.codec import encode_message
from pagein.model.memory_notes import AnswerNote
from pagein.model.messages import Block, Image, Message, Text, Thinking
from pagein.providers.validity import Api
from pagein.providers.wire.request_body import messages_of


def answer_note(
    items: Sequence[bytes],
    api: Api,
    privacy: Privacy,
    place: int,
    model: str = "",
    *,
    at: float | None = None,
    is_whole: bool = True,
) -> AnswerNote | None:
    """Return the note of an answer, redacted as messages are; None for an answer without words and calls.

    items: the messages of the answer, as its client would send them back.
    place: number of messages in the request.
    at: time of the answer, seconds since 1970; None if unknown.
    is_whole: False if the answer was broken off.

    Raises BadInput for an unreadable message.
    """
    read = (message for _, message in messages_of(items, api, place))
    blocks = tuple(kept for one in read for block in one.blocks if (kept := _in_note(block)) is not None)
    if not any(not isinstance(one, Thinking) for one in blocks):
        return None
    said = Message("assistant", blocks, at=at, model=model or None, stop=None if is_whole else CUT_SHORT)
    return AnswerNote(encode_message(privacy.redact(said, ())).decode("utf-8", "surrogatepass"))


def _in_note(block: Block) -> Block | None:
    """Return a block without the parts for the provider alone; None for a block without words."""
    if isinstance(block, Thinking):
        return replace(block, signature=None) if block.text and not block.redacted else None
    if isinstance(block, Image):
        return replace(block, data=None)
    return None if isinstance(block, Text) and not block.text.strip() else block
