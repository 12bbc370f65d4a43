"""Convert bodies of model requests (Anthropic Messages, OpenAI Chat Completions, OpenAI Responses) to units and
messages.
"""

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import takewhile
from typing import Final

from pagein.model.messages import Block, Message, Role, Text, Thinking, ToolCall, ToolResult
from pagein.replay.readers.blocks import ToolCallIndex, content_blocks, flat
from pagein.replay.readers.row_fields import Row, json_text, object_at, objects, sequence, text
from pagein.replay.record.recorded_session import CARRIED_OVER

_ROLES: Final[dict[str, Role]] = {"system": "system", "developer": "system", "user": "user", "assistant": "assistant"}
_MODEL_ITEMS: Final = frozenset(
    ("reasoning", "function_call", "custom_tool_call", "local_shell_call", "web_search_call")
)
_SAYS: Final = frozenset(("role", "content", "type"))
_MARKS: Final = frozenset(("cache_control",))


def units(body: Row) -> list[Row]:
    """Return the messages or items of a request in order, without the system prompt."""
    if isinstance(body.get("messages"), list):
        return list(objects(body.get("messages")))
    given = body.get("input")
    if isinstance(given, str):
        return [{"role": "user", "content": given}]
    return list(objects(given))


def pieces(unit: Row) -> list[Row]:
    """Split a message or item into blocks, each as a message, if it has no other content.

    Some clients put into one message the blocks that others put into two.
    """
    content = unit.get("content")
    if not isinstance(content, list) or not content or not unit.keys() <= _SAYS:
        return [unit]
    return [{**unit, "content": [block]} for block in content]


def behind(rows: Sequence[Row], known: int) -> list[Row]:
    """Return the rest of the units after this number of pieces."""
    for place, unit in enumerate(rows):
        parts = pieces(unit)
        if known < len(parts):
            rest = {**unit, "content": [block for one in parts[known:] for block in sequence(one, "content")]}
            return [rest if known else unit, *rows[place + 1 :]]
        known -= len(parts)
    return []


def system_text(body: Row) -> str:
    """Return the system prompt beside the messages; "" without one."""
    return flat(body.get("system"))[0] or text(body, "instructions") or ""


def instructions(body: Row) -> str:
    """Return the instructions before the conversation, beside the messages or as the first messages."""
    first = [flat(unit.get("content"))[0] for unit in takewhile(_instructs, units(body))]
    return "\n".join((system_text(body), *first)).strip()


def _instructs(unit: Row) -> bool:
    return text(unit, "role") in ("system", "developer")


def name(unit: Row) -> bytes:
    """Return a name by content. Cache breakpoints and the two spellings of plain text make no difference."""
    return hashlib.blake2b(json_text(_plain(unit)).encode(), digest_size=16).digest()


def _plain(value: object) -> object:
    if isinstance(value, dict):
        plain = {key: _plain(inner) for key, inner in sorted(value.items()) if key not in _MARKS}
        if isinstance(plain.get("content"), str):
            plain["content"] = [{"text": plain["content"], "type": "text"}]
        return plain
    if isinstance(value, list):
        return [_plain(inner) for inner in value]
    return value


def is_ours(unit: Row) -> bool:
    """Return whether this unit comes from the model, not from the user or a tool."""
    return text(unit, "role") == "assistant" or text(unit, "type") in _MODEL_ITEMS


def messages(rows: Sequence[Row], calls: ToolCallIndex, at: float | None) -> Iterator[Message]:
    """Yield units as messages. Neighbouring items of the model come from a single call, and form a single message."""
    ours: list[Block] = []
    for unit in rows:
        if is_ours(unit):
            if unit.get("role") == "assistant" and ours and "type" not in unit:
                yield Message("assistant", tuple(ours), at)
                ours = []
            ours.extend(blocks(unit, calls))
            continue
        if ours:
            yield Message("assistant", tuple(ours), at)
            ours = []
        yield from _theirs(unit, calls, at)
    if ours:
        yield Message("assistant", tuple(ours), at)


def _theirs(unit: Row, calls: ToolCallIndex, at: float | None) -> Iterator[Message]:
    found = blocks(unit, calls)
    results = tuple(block for block in found if isinstance(block, ToolResult))
    if results:
        yield Message("tool", results, at)
    said = tuple(block for block in found if not isinstance(block, ToolResult))
    if said:
        yield Message(_ROLES.get(text(unit, "role") or "user", "user"), said, at)


def blocks(unit: Row, calls: ToolCallIndex) -> tuple[Block, ...]:
    """Return the blocks of a message or item."""
    kind, call_id = text(unit, "type") or "message", text(unit, "call_id", "id") or ""
    if kind.endswith("_output"):
        return (_result(call_id, unit.get("output"), calls),)
    if unit.get("role") == "tool":
        return (_result(text(unit, "tool_call_id") or "", unit.get("content"), calls),)
    if kind == "reasoning":
        words = "\n".join(text(row, "text") or "" for row in objects(unit.get("summary")))
        return (Thinking(words, text(unit, "encrypted_content"), redacted=not words),)
    if kind == "custom_tool_call":
        return (calls.add_call(call_id, text(unit, "name") or kind, json_text({"input": unit.get("input", "")})),)
    if kind in _MODEL_ITEMS:
        return (calls.add_call(call_id, text(unit, "name") or kind, _arguments(unit)),)
    return (*_content(unit, calls), *(_tool_call(row, calls) for row in objects(unit.get("tool_calls"))))


def _content(unit: Row, calls: ToolCallIndex) -> tuple[Block, ...]:
    found: list[Block] = []
    reasoning = text(unit, "reasoning_content", "reasoning")
    if reasoning:
        found.append(Thinking(reasoning))
    content = unit.get("content")
    if isinstance(content, list):
        content = [_as_text(row) for row in objects(content)]
    found.extend(content_blocks(content, calls))
    return tuple(found)


def _as_text(row: Row) -> Row:
    if row.get("type") in ("input_text", "output_text", "refusal"):
        return {"type": "text", "text": text(row, "text", "refusal") or ""}
    return {**row, "type": "image"} if row.get("type") in ("image_url", "input_image") else row


def _tool_call(row: Row, calls: ToolCallIndex) -> ToolCall:
    function = object_at(row, "function") or object_at(row, "custom")
    return calls.add_call(text(row, "id") or "", text(function, "name") or "", _arguments(function))


def _arguments(row: Row) -> str:
    arguments = row.get("arguments", row.get("action", row.get("input", {})))
    return arguments if isinstance(arguments, str) else json_text(arguments)


def _result(call_id: str, content: object, calls: ToolCallIndex) -> ToolResult:
    words, images = flat(content)
    own, tool = calls.answers(call_id)
    return ToolResult(own, words, tool, images=images)


def repeat_message(message: Message) -> Message:
    """Mark a message repeated in a rewritten prompt: neither new words nor a new call of a model."""
    blocks = tuple(replace(one, injected=CARRIED_OVER) if isinstance(one, Text) else one for one in message.blocks)
    return replace(message, blocks=blocks, stop=CARRIED_OVER if message.role == "assistant" else message.stop)
