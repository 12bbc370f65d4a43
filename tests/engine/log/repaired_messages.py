"""Messages of any kind as a valid request, by the repairs that a session makes."""

from collections.abc import Iterable

from pagein.engine.log.request_draft import Repairs, RequestDraft, pieces_since
from pagein.model.messages import Message


def repair_messages(messages: Iterable[Message]) -> tuple[list[Message], Repairs]:
    """Return the messages as a valid request, with the counts of repairs."""
    draft = RequestDraft()
    for message in messages:
        draft = draft.with_said(message)
    draft = draft.ready
    return [piece.message for piece in pieces_since(draft.tip, 0)], draft.repairs
