"""A request as validity rules see it: turns made of parts, whatever it was made from.

Host-neutral messages are seen as `providers.wire` renders them: everything between two assistant messages is one turn of the
user's side. Wire messages are seen one by one, as the provider does.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias

from pagein.model.messages import Block, Image, Message, Other, Text, Thinking, ToolCall, ToolResult

PartKind: TypeAlias = Literal["text", "thinking", "call", "result", "image", "other"]
Side: TypeAlias = Literal["user", "assistant"]
Wire: TypeAlias = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Part:
    """One block. `message` and `block` are its place in what was checked, from 0; -1 stands for tools and system.

    id: of the call it makes or answers. text: of text blocks. mark: lifetime of the cache mark on it (`5m`, `1h`), None without one.
    """

    kind: PartKind
    message: int
    block: int
    id: str = ""
    text: str = ""
    mark: str | None = None


@dataclass(slots=True)
class Turn:
    """Parts that one side said in a row. `first` is the first message in it."""

    side: Side
    first: int
    parts: list[Part] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Turns:
    """What the rules read. `head` holds tools and system blocks, in this order."""

    turns: Sequence[Turn]
    head: Sequence[Part] = ()


def neutral_turns(messages: Iterable[Message], start: int) -> Iterator[Turn]:
    """One turn per message; `start` is the place of the first. System messages before all others are no turns: leave them out."""
    for place, message in enumerate(messages, start=start):
        side: Side = "assistant" if message.role == "assistant" else "user"
        yield Turn(side, place, [_part(block, place, index) for index, block in enumerate(message.blocks)])


def extended(turns: list[Turn], more: Iterable[Turn]) -> None:
    """Add turns, those of the user's side to the one before where that is of the same side."""
    for turn in more:
        if turns and turn.side == "user" and turns[-1].side == "user":
            turns[-1].parts.extend(turn.parts)
        else:
            turns.append(turn)


def cut(turns: list[Turn], keep: int) -> None:
    """Take away what came from messages at `keep` and behind."""
    while turns and turns[-1].first >= keep:
        turns.pop()
    if turns:
        parts = turns[-1].parts
        while parts and parts[-1].message >= keep:
            parts.pop()


def anthropic_turns(body: Wire) -> Turns:
    """The turns of a Messages request."""
    head = [_wire_part({**tool, "type": "tool"}, -1, index) for index, tool in enumerate(body.get("tools") or ())]
    head += _wire_parts(body.get("system") or (), -1)
    turns = [
        Turn(
            "assistant" if message.get("role") == "assistant" else "user",
            place,
            _wire_parts(message.get("content") or (), place),
        )
        for place, message in enumerate(body.get("messages") or ())
    ]
    return Turns(turns, head)


def chat_turns(body: Wire) -> Turns:
    """The turns of a Chat Completions request: tool messages in a row are one."""
    turns: list[Turn] = []
    for place, message in enumerate(body.get("messages") or ()):
        role = message.get("role")
        if role == "tool":
            part = Part("result", place, 0, id=str(message.get("tool_call_id") or ""))
            if turns and turns[-1].parts and turns[-1].parts[0].kind == "result":
                turns[-1].parts.append(part)
            else:
                turns.append(Turn("user", place, [part]))
        elif role == "assistant":
            calls = message.get("tool_calls") or ()
            turns.append(
                Turn(
                    "assistant",
                    place,
                    [Part("call", place, index, id=str(call.get("id") or "")) for index, call in enumerate(calls)],
                )
            )
        else:
            turns.append(Turn("user", place, [Part("text", place, 0)]))
    return Turns(turns)


def responses_turns(body: Wire) -> Turns:
    """The items of a Responses request, each its own turn."""
    items = body.get("input")
    turns = [
        Turn("user", place, [_item_part(item, place)])
        for place, item in enumerate(items if isinstance(items, list) else ())
    ]
    return Turns(turns)


def _part(block: Block, message: int, index: int) -> Part:
    match block:
        case Text():
            return Part("text", message, index, text=block.text)
        case Thinking():
            return Part("thinking", message, index)
        case ToolCall():
            return Part("call", message, index, id=block.id)
        case ToolResult():
            return Part("result", message, index, id=block.call_id)
        case Image():
            return Part("image", message, index)
        case Other():
            return Part("other", message, index)


_KINDS: dict[str, PartKind] = {
    "text": "text",
    "thinking": "thinking",
    "redacted_thinking": "thinking",
    "tool_use": "call",
    "tool_result": "result",
    "image": "image",
}


def _wire_parts(content: object, message: int) -> list[Part]:
    if isinstance(content, str):
        return [Part("text", message, 0, text=content)]
    blocks = content if isinstance(content, list) else []
    return [_wire_part(block, message, index) for index, block in enumerate(blocks)]


def _wire_part(block: Wire, message: int, index: int) -> Part:
    kind = _KINDS.get(str(block.get("type")), "other")
    name = block.get("id") if kind == "call" else block.get("tool_use_id") if kind == "result" else ""
    mark = block.get("cache_control")
    lifetime = str(mark.get("ttl") or "5m") if isinstance(mark, dict) else None
    return Part(kind, message, index, id=str(name or ""), text=str(block.get("text") or ""), mark=lifetime)


def _item_part(item: Wire, place: int) -> Part:
    kind = str(item.get("type") or "message")
    if kind.endswith("_call_output"):
        return Part("result", place, 0, id=str(item.get("call_id") or item.get("id") or ""))
    if kind in ("function_call", "custom_tool_call", "local_shell_call"):
        return Part("call", place, 0, id=str(item.get("call_id") or ""))
    return Part("thinking" if kind == "reasoning" else "text", place, 0)
