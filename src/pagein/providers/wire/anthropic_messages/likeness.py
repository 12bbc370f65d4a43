"""How surely a body is an Anthropic Messages request."""

from typing import Final

from pagein.providers.wire.json_values import Json, objects_in

_FIELDS: Final = frozenset({"system", "stop_sequences", "anthropic_version", "top_k", "thinking"})
_BLOCKS: Final = frozenset({"tool_use", "tool_result", "thinking", "redacted_thinking", "document"})


def likeness(body: Json) -> int:
    """Return 90 for fields or tools of this format alone, 70 for its blocks, 50 for its models, 10 otherwise."""
    if _FIELDS & body.keys() or any("input_schema" in tool for tool in objects_in(body.get("tools"))):
        return 90
    messages = objects_in(body.get("messages"))
    if any(block.get("type") in _BLOCKS for one in messages for block in objects_in(one.get("content"))):
        return 70
    return 50 if "claude" in str(body.get("model")) else 10
