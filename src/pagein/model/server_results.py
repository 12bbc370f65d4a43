"""Results of tools that the provider runs itself: blocks of an assistant message, and the stubs in their place."""

from dataclasses import dataclass
from typing import Final

from pagein.model.json_text import decode_json, encode_json
from pagein.model.messages import Block, Other

STUB: Final = "pagein_stub"
"""The kind of a block in place of a server result. Wire formats send its text, or nothing without a text."""


@dataclass(frozen=True, slots=True)
class ServerResult:
    """A finished call of a tool run by the provider, with its whole result.

    call_id: id of the call.
    tool: name of the tool.
    text: what the model was told, as far as it is plain text.
    sealed: characters that only the provider can read.
    places: its blocks in the message, in order; a stub takes the place of the last.
    is_error: whether the call failed.
    """

    call_id: str
    tool: str
    text: str
    sealed: int
    places: tuple[int, ...]
    is_error: bool = False

    @property
    def place(self) -> int:
        """The block whose place a stub takes."""
        return self.places[-1]


def stub_block(call_id: str, text: str) -> Other:
    """Return the block in place of a block of a server result. Without a text, the block is not sent."""
    return Other(STUB, encode_json({"call": call_id, "text": text}).decode())


def stub_of(block: Block) -> tuple[str, str] | None:
    """Return the call and the text of a block made by `stub_block`; None for another block."""
    if not isinstance(block, Other) or block.kind != STUB:
        return None
    value = decode_json(block.json.encode())
    return (str(value.get("call")), str(value.get("text"))) if isinstance(value, dict) else None
