"""Detect the wire format of a request from the body alone, for library callers without a request path."""

from collections.abc import Iterator, Mapping
from typing import Any, Final

from pagein.errors import BadInput
from pagein.model.json_text import decode_json
from pagein.providers.validity.rules import Api

_ANTHROPIC_FIELDS: Final = frozenset({"system", "stop_sequences", "anthropic_version", "top_k", "thinking"})
_CHAT_ROLES: Final = frozenset({"system", "developer", "tool", "function"})
_ANTHROPIC_BLOCKS: Final = frozenset({"tool_use", "tool_result", "thinking", "redacted_thinking", "document"})


def api_of(body: bytes) -> Api:
    """Detect the format of a request body. Raises BadInput for anything but a JSON object.

    If both formats with `messages` are possible, the model's name decides.
    """
    try:
        value = decode_json(body)
    except ValueError as problem:
        raise BadInput(f"the request body is not JSON: {problem}") from problem
    if not isinstance(value, dict):
        raise BadInput("the request body is not a JSON object")
    if "input" in value and "messages" not in value:
        return "openai_responses"
    messages = list(_objects(value.get("messages")))
    tools = list(_objects(value.get("tools")))
    if _ANTHROPIC_FIELDS & value.keys() or any("input_schema" in tool for tool in tools):
        return "anthropic"
    if any("function" in tool for tool in tools) or any(one.get("role") in _CHAT_ROLES for one in messages):
        return "openai_chat"
    if any(block.get("type") in _ANTHROPIC_BLOCKS for one in messages for block in _objects(one.get("content"))):
        return "anthropic"
    return "anthropic" if "claude" in str(value.get("model")) else "openai_chat"


def _objects(value: object) -> Iterator[Mapping[str, Any]]:
    return (one for one in value if isinstance(one, dict)) if isinstance(value, list) else iter(())
