"""Convert request bodies of the three wire formats to turns."""

from collections.abc import Callable, Mapping
from typing import Final

from pagein.providers.validity.turns import Api, PartKind, PromptTurn, Side, TurnPart, Turns, Wire, object_at, text_at

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
_CALLS: Final = ("function_call", "custom_tool_call", "local_shell_call")
_NO_SERVER_RESULTS: Final = ("tool_result", "mcp_tool_result")


def turns_of(body: Wire, api: Api) -> Turns:
    """Convert a request body, given as plain values, to turns."""
    return _READERS[api](body)


def _anthropic(body: Wire) -> Turns:
    head = [
        TurnPart("tool", -1, index, mark=_ttl(tool), source=tool) for index, tool in enumerate(_list(body.get("tools")))
    ]
    turns = [
        PromptTurn(_side(message.get("role")), place, _blocks(message.get("content"), place))
        for place, message in enumerate(_list(body.get("messages")))
    ]
    return Turns(turns, [*head, *_blocks(body.get("system") or [], -1)], body, from_wire=True)


def _chat(body: Wire) -> Turns:
    """Convert a Chat body. Consecutive tool messages are one turn."""
    turns: list[PromptTurn] = []
    for place, message in enumerate(_list(body.get("messages"))):
        role = message.get("role")
        if role == "tool":
            part = TurnPart("result", place, 0, id=text_at(message, "tool_call_id"), source=message)
            if turns and turns[-1].parts and turns[-1].parts[0].kind == "result":
                turns[-1].parts.append(part)
            else:
                turns.append(PromptTurn("user", place, [part]))
        elif role == "assistant":
            calls = [
                TurnPart("call", place, index, id=text_at(call, "id"), source=call)
                for index, call in enumerate(_list(message.get("tool_calls")))
            ]
            turns.append(PromptTurn("assistant", place, [*_contents(message, place), *calls]))
        else:
            turns.append(PromptTurn("user", place, _contents(message, place) or [TurnPart("text", place, 0)]))
    return Turns(turns, fields=body, from_wire=True)


def _responses(body: Wire) -> Turns:
    """Convert a Responses body. Each item is a separate turn."""
    turns = [
        PromptTurn("assistant" if _is_model_item(item) else "user", place, _item(item, place))
        for place, item in enumerate(_list(body.get("input")))
    ]
    return Turns(turns, fields=body, from_wire=True)


_READERS: Final[Mapping[Api, Callable[[Wire], Turns]]] = {
    "anthropic": _anthropic,
    "openai_chat": _chat,
    "openai_responses": _responses,
}


def _list(value: object) -> list[Wire]:
    """The items of a list as objects. An item of a different type becomes an empty object, to keep its place."""
    return [one if isinstance(one, Mapping) else {} for one in value] if isinstance(value, list) else []


def _side(role: object) -> Side:
    return _SIDES.get(role, "user") if isinstance(role, str) else "user"


def _blocks(content: object, message: int) -> list[TurnPart]:
    if isinstance(content, str):
        return [TurnPart("text", message, 0, text=content)]
    return [_block(block, message, index) for index, block in enumerate(_list(content))]


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


def _contents(message: Wire, place: int) -> list[TurnPart]:
    """The content of a message in the formats of OpenAI."""
    content = message.get("content")
    if isinstance(content, str):
        return [TurnPart("text", place, 0, text=content)]
    return [
        TurnPart("text", place, index, text=text_at(part, "text"), mark=_breakpoint(part), source=part)
        for index, part in enumerate(_list(content))
    ]


def _breakpoint(part: Wire) -> str | None:
    return "30m" if object_at(part, "prompt_cache_breakpoint") else None


def _is_model_item(item: Wire) -> bool:
    kind = text_at(item, "type")
    return item.get("role") == "assistant" or kind == "reasoning" or kind.endswith("_call")


def _item(item: Wire, place: int) -> list[TurnPart]:
    kind = text_at(item, "type") or "message"
    if kind.endswith("_call_output"):
        return [TurnPart("result", place, 0, id=text_at(item, "call_id") or text_at(item, "id"), source=item)]
    if kind.endswith("_call") and text_at(item, "call_id"):
        # The provider itself may answer calls of further kinds.
        return [
            TurnPart("call" if kind in _CALLS else "server_call", place, 0, id=text_at(item, "call_id"), source=item)
        ]
    if kind == "reasoning":
        return [TurnPart("thinking", place, 0, id=text_at(item, "id"), source=item)]
    if kind == "message":
        return _contents(item, place) or [TurnPart("text", place, 0, source=item)]
    return [TurnPart("other", place, 0, source=item)]
