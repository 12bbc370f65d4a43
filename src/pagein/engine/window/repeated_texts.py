"""Find texts attached by the host a second time, word for word, before a request shows the repetition."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from pagein.engine.log.pageout import PreviewCandidate, text_name
from pagein.engine.log.request_draft import WindowPiece, length, pieces_since
from pagein.engine.log.state import State
from pagein.model.messages import Text, ToolResult
from pagein.policy.privacy.exclusions import is_withheld
from pagein.policy.stubs.paste_stubs import LEAST
from pagein.policy.stubs.turn_stubs import is_by_host
from pagein.ports import TokenCounter


@dataclass(frozen=True, slots=True)
class _Attachment:
    """A text of the host in a message. place: numbers of the message and of the block in it."""

    text: str
    place: tuple[int, int]


def repeated_texts(state: State, counter: TokenCounter) -> list[PreviewCandidate]:
    """Return the texts since the last request that the window shows already, byte for byte.

    The window is looked through only where a new message has a long text of the host.
    """
    known = length(state.draft.tip)
    fresh = list(_attachments(pieces_since(state.draft.ready.tip, known), known))
    if not fresh:
        return []
    seen = {one.text for one in _attachments(pieces_since(state.draft.tip, 0), 0)}
    found: dict[tuple[int, int], str] = {}
    for one in fresh:
        if one.text in seen:
            found[one.place] = one.text
        seen.add(one.text)
    return list(_candidates(found, counter))


def _attachments(pieces: Sequence[WindowPiece], start: int) -> Iterator[_Attachment]:
    """Yield the host's long texts in some messages of the user's side, as the window shows them."""
    for place, piece in enumerate(pieces, start=start):
        if piece.message.role != "user":
            continue
        for index, block in enumerate(piece.message.blocks):
            if isinstance(block, Text) and _is_attachment(block):
                yield _Attachment(block.text, (place, index))


def _is_attachment(block: Text) -> bool:
    return len(block.text) >= LEAST and block.injected is None and is_by_host(block) and not is_withheld(block)


def _candidates(found: Mapping[tuple[int, int], str], counter: TokenCounter) -> Iterator[PreviewCandidate]:
    for place, text in found.items():
        yield PreviewCandidate(ToolResult(text_name(text), text), "user", round(counter.count(text, "user")), place)
