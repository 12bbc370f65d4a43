"""The text of a block that counts as tokens, and its length."""

from pagein.model.messages import Block, Text, Thinking, ToolCall


def chars_of(block: Block) -> int:
    """Return the number of characters of a block other than a tool result. Counts redacted text too."""
    if isinstance(block, Text | Thinking | ToolCall) and block.withheld is not None:
        return block.withheld.chars
    return len(words_of(block))


def words_of(block: Block) -> str:
    """Return the countable text of a block other than a tool result."""
    match block:
        case Text() | Thinking():
            return block.text
        case ToolCall():
            return block.arguments
        case _:
            return ""
