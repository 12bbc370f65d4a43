"""Evicted texts that return to the window: their places, and their exact text."""

from collections.abc import Iterator

from pagein.engine.log.pageout import Pager
from pagein.engine.log.pin_state import Hand
from pagein.engine.log.request_draft import pieces_since
from pagein.engine.log.state import State
from pagein.errors import NotRecallable
from pagein.model.entries import PagedOut
from pagein.model.messages import Other, ToolCall, ToolResult
from pagein.policy.stubs.result_stubs import MARKER


def recall_for_window(pager: Pager, object_id: str) -> str:
    """Return the exact text of an object for its old place in the window. Raises NotRecallable with the reason, or
    StoreError.
    """
    text = pager.recall(object_id)
    if MARKER in text:
        raise NotRecallable(
            f"{object_id} is an answer that rests on text shown earlier, so it cannot stand in the window again; "
            "peek at it, or read the file anew"
        )
    return text


def places_to_restore(state: State, hand: Hand) -> Iterator[tuple[int, int, PagedOut, int]]:
    """Yield the results to restore: message, block, the stub's record, tokens before the message."""
    before = 0
    for place, piece in enumerate(pieces_since(state.draft.tip, 0)):
        for index, block in enumerate(piece.message.blocks):
            paged: PagedOut | None = None
            if isinstance(block, ToolResult) and block.call_id in hand.restoring:
                paged = hand.stands_for(block)
            elif isinstance(block, ToolCall) and block.id in hand.restoring:
                paged = hand.stands_for_arguments(block)
            elif isinstance(block, Other):
                paged = hand.stands_for_server(block)
                paged = paged if paged is not None and paged.call_id in hand.restoring else None
            if paged is not None:
                yield place, index, paged, before
        before += piece.weight
