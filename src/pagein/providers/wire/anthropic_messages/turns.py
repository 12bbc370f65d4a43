"""Convert Anthropic Messages bodies to turns, the input of the validity rules."""

from collections.abc import Mapping, Sequence
from typing import Final

from pagein.providers.validity.turns import PartKind, PromptTurn, Side, TurnPart, Turns, Wire, padded_objects, text_at

_SIDES: Final[Mapping[str, Side]] = {"assistant": "assistant", "system": "system", "developer": "system"}
_KINDS: Final[Mapping[str, PartKind]] = {
    "text": "text",
    "thinking": "thinking",
    "redacted_thinking": "thinking",
    "tool_use": "call",
    "tool_result": "result",
    "image": "image",
    "server_tool_use": "server_call",
}
_NO_SERVER_RESULTS: Final = ("tool_result", "mcp_tool_result")


def turns(body: Wire) -> Turns:
    """Convert a Messages body."""
    head = [
        TurnPart("tool", -1, index, mark=_ttl(tool), source=tool)
        for index, tool in enumerate(padded_objects(body.get("tools")))
    ]
    said = [
        PromptTurn(_side(message.get("role")), place, _blocks(message.get("content"), place))
        for place, message in enumerate(padded_objects(body.get("messages")))
    ]
    return Turns(said, [*head, *_blocks(body.get("system") or [], -1)], body, from_wire=True)


def with_answer(body: Wire, answer: Sequence[Wire]) -> Wire:
    """Return a body with an answer behind it, given as blocks."""
    said = {"role": "assistant", "content": list(answer)}
    return {**body, "messages": [*body.get("messages", ()), said]}


def _side(role: object) -> Side:
    return _SIDES.get(role, "user") if isinstance(role, str) else "user"


def _blocks(content: object, message: int) -> list[TurnPart]:
    if isinstance(content, str):
        return [TurnPart("text", message, 0, text=content)]
    return [_block(block, message, index) for index, block in enumerate(padded_objects(content))]


def _block(block: Wire, message: int, index: int) -> TurnPart:
    shape = text_at(block, "type")
    kind = _KINDS.get(shape, "other")
    if kind == "other" and shape.endswith("_tool_result") and shape not in _NO_SERVER_RESULTS:
        kind = "server_result"
    match kind:
        case "call" | "server_call":
            name = text_at(block, "id")
        case "result" | "server_result":
            name = text_at(block, "tool_use_id")
        case "thinking":
            name = text_at(block, "signature") or text_at(block, "data")
        case _:
            name = ""
    return TurnPart(kind, message, index, name, text_at(block, "text"), _ttl(block), block)


def _ttl(block: Wire) -> str | None:
    mark = block.get("cache_control")
    return str(mark.get("ttl") or "5m") if isinstance(mark, Mapping) else None
