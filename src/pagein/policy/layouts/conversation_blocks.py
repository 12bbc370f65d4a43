"""The messages of a conversation as blocks of a prompt, and the breakpoints of a prompt that grows at its end."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Final, TypeAlias

from pagein.model.laid_prompts import LaidBlock
from pagein.model.messages import Block, Image, Message, Other, Role, Text, Thinking, ToolCall, ToolResult

MOST_MARKS: Final = 4
LOOKBACK: Final = 18
"""Blocks after an entry from which a provider still finds it, less the block itself and a margin of one."""
_IMAGE_CHARS: Final = 4800

Count: TypeAlias = Callable[[str], float]


def message_blocks(
    message: Message, count: Count, reference: Callable[[ToolResult], str | None] = lambda _: None
) -> Iterator[LaidBlock]:
    """Yield the blocks of a message. Blocks that no provider accepts are left out: blank text, unsigned thinking.

    reference: returns the text that stands for a result; None for a result that stays as it is.
    """
    for block in message.blocks:
        role: Role = "tool" if isinstance(block, ToolResult) else message.role
        if isinstance(block, ToolResult) and (line := reference(block)) is not None:
            yield LaidBlock(role, "history", line, count(line), content=_shortened(block, line))
        elif (text := _text(block)) is not None:
            yield LaidBlock(role, "history", text, count(text), content=None if isinstance(block, Text) else block)


def _shortened(result: ToolResult, line: str) -> ToolResult:
    return ToolResult(result.call_id, line, result.name, result.is_error)


def _text(block: Block) -> str | None:
    """Return the counted text of a block; None for an omitted block."""
    match block:
        case Text(text=text):
            return text if text.strip() else None
        case Thinking(text=text, signature=signature):
            return text if signature is not None else None
        case ToolCall(arguments=arguments):
            return arguments
        case ToolResult(text=text):
            return text
        case Image():
            return "x" * _IMAGE_CHARS
        case Other(json=json):
            return json


def marked_places(sizes: Sequence[float], wished: Iterable[int | None], min_prefix: int) -> frozenset[int]:
    """Return the places of the breakpoints: the first of the wished ones that the provider accepts and can use.

    sizes: tokens of each block. wished: the most useful first; None for one that does not exist.
    """
    places = [place for place in dict.fromkeys(wished) if place is not None and 0 <= place < len(sizes)]
    if not places:
        return frozenset()
    total, fronts = 0.0, []
    for size in sizes:
        total += size
        fronts.append(total)
    return frozenset([place for place in places if fronts[place] >= min_prefix][:MOST_MARKS])


def beyond_lookback(place: int | None, final: int) -> int | None:
    """Return the place if the provider's look-back from `final` would miss an entry there, else None."""
    return place if place is not None and final - place > LOOKBACK else None
