"""What must not be stored is said again without it: calls that may show an excluded file, and their results (law 9).

In the window such content stands as it came; what is kept of it, in a journal or an export, is that it was there.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import Final

from pagein.model.messages import Block, Message, ToolCall, ToolResult
from pagein.model.names import ContentHash
from pagein.policy.exclusions import EXCLUDED, may_show_excluded

WITHHELD: Final = "[pagein: not kept, as it may show a file that must not be stored]"


@dataclass(slots=True)
class Withholding:
    """The messages of one session, in the order in which they were said.

    calls: ids of calls whose results are left out. shown: hashes of texts that are left out wherever a result holds them, because
    they were read from an excluded file by a name that does not tell.
    """

    patterns: tuple[str, ...] = EXCLUDED
    calls: set[str] = field(default_factory=set)
    shown: set[ContentHash] = field(default_factory=set)

    def of(self, message: Message) -> Message:
        """The message as it may be kept; the same one where it says nothing that must not."""
        if not any(isinstance(block, ToolCall | ToolResult) for block in message.blocks):
            return message
        blocks = tuple(self._block(block) for block in message.blocks)
        return message if _same(blocks, message.blocks) else replace(message, blocks=blocks)

    def holds(self, text: str) -> bool:
        """Whether this text was read from an excluded file."""
        return bool(self.shown) and _hash(text) in self.shown

    def add(self, text: str) -> None:
        """An excluded file was read, and showed this text."""
        self.shown.add(_hash(text))

    def _block(self, block: Block) -> Block:
        match block:
            case ToolCall() if may_show_excluded(block, self.patterns):
                self.calls.add(block.id)
                return replace(block, arguments="{}")
            case ToolResult(call_id=call_id, text=text) if call_id in self.calls or self.holds(text):
                return replace(block, text=WITHHELD, images=(), before=None, shown=None)
        return block


def _hash(text: str) -> ContentHash:
    return ContentHash.of(text.encode("utf-8", "surrogatepass"))


def _same(some: Iterable[Block], others: Iterable[Block]) -> bool:
    return all(one is other for one, other in zip(some, others, strict=True))
