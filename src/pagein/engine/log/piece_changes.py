"""Changes of blocks in a message of the window: stubs in their place, or their own text again."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from typing import TypeAlias

from pagein.engine.log.request_draft import WindowPiece
from pagein.engine.log.server_residents import with_change
from pagein.model.entries import PagedOut, Restoration
from pagein.model.messages import Block, Other, Text, ToolCall, ToolResult
from pagein.policy.eviction.residents import STUB_TOKENS
from pagein.policy.stubs.turn_stubs import SHORTENED

BlockChanges: TypeAlias = Mapping[tuple[int, int], PagedOut | Restoration]


def changed_pieces(first: int, pieces: Iterable[WindowPiece], gone: BlockChanges) -> Iterator[tuple[int, WindowPiece]]:
    """Yield messages with their places and changes. Behind a server result that leaves, no message cites any more.

    first: place of the first message in the request.
    """
    uncited = False
    for place, piece in enumerate(pieces, start=first):
        made = _changed_piece(place, piece, gone)
        uncited = uncited or (made.uncited and not piece.uncited)
        yield place, replace(made, uncited=True) if uncited and made.message.role == "assistant" else made


def _changed_piece(place: int, piece: WindowPiece, gone: BlockChanges) -> WindowPiece:
    """Return a message with these texts in place of blocks, and with the remaining weight.

    place: number of the message in the request.
    """
    if not any((place, index) in gone for index in range(len(piece.message.blocks))):
        return piece
    # A stub is too short to leave again, so its place in `tokens` may stay as it is.
    blocks = tuple(_replace_block(block, gone.get((place, index))) for index, block in enumerate(piece.message.blocks))
    spared = 0
    made = replace(piece, message=replace(piece.message, blocks=blocks))
    for index, block in enumerate(piece.message.blocks):
        paged = gone.get((place, index))
        if paged is not None and isinstance(block, Other):
            made = with_change(made, paged)
            spared += max(0, paged.tokens - STUB_TOKENS) * (1 if isinstance(paged, PagedOut) else -1)
        elif paged is not None and isinstance(block, ToolResult | ToolCall | Text):
            text = block.arguments if isinstance(block, ToolCall) else block.text
            spared += _weight_in(text, paged) - _weight_in(_text_in(paged), paged)
    return replace(made, weight=max(0, piece.weight - spared))


def tokens_in_place(text: str, paged: PagedOut) -> int:
    """Return the tokens of a text in place of an evicted result, at the tokens per character of that result."""
    return round(len(text) * paged.tokens / paged.chars) if paged.chars else 0


def _weight_in(text: str, change: PagedOut | Restoration) -> int:
    if isinstance(change, PagedOut):
        return tokens_in_place(text, change)
    return round(len(text) * change.tokens / len(change.text)) if change.text else 0


def _text_in(change: PagedOut | Restoration) -> str:
    return change.stub if isinstance(change, PagedOut) else change.text


def _replace_block(block: Block, change: PagedOut | Restoration | None) -> Block:
    if change is None:
        return block
    # a stub is pagein's text and stored whole, even if a text in it is erased later; a recalled text is the client's
    withheld = block.withheld if isinstance(change, Restoration) and isinstance(block, ToolCall | ToolResult) else None
    if isinstance(block, ToolCall):
        return replace(block, arguments=_text_in(change), withheld=withheld)
    if isinstance(block, Text):
        return Text(_text_in(change), injected=SHORTENED)
    return (
        replace(block, text=_text_in(change), shown=None, withheld=withheld) if isinstance(block, ToolResult) else block
    )
