"""OpenAI Chat Completions, and compatible servers: one neutral message per wire message."""

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any, Final

from pagein.model.json_text import array_items, array_of, encode_json, object_fields, object_of
from pagein.model.messages import Block, Image, Message, Other, Role, Text, Thinking, ToolCall, ToolResult
from pagein.providers.wire.json_values import (
    Json,
    block_words,
    image_of,
    image_words,
    json_bytes,
    json_text,
    parse_item,
    parts_of,
    replace_content,
    result_parts,
    text_at,
    with_field,
)
from pagein.providers.wire.message_texts import MessageTexts, with_content_words, with_messages_behind
from pagein.providers.wire.openai_shared import cache_blocks, result_text
from pagein.providers.wire.wire_format import RequestForm

_ROLES: Final[Mapping[str, Role]] = {
    "assistant": "assistant",
    "system": "system",
    "developer": "system",
    "tool": "tool",
    "function": "tool",
}


def system(_fields: Mapping[str, object]) -> tuple[Message, ...]:
    """The prompts outside the messages: always empty in this format."""
    return ()


def message(value: Json, _place: int = 0) -> Message:
    """Convert a wire message."""
    role = _ROLES.get(text_at(value, "role"), "user")
    if role == "tool":
        return Message(role, (_result(value),))
    blocks = [_block(part) for part in parts_of(value.get("content"))]
    if role == "assistant":
        thinking = text_at(value, "reasoning_content")
        if thinking:
            blocks.insert(0, Thinking(thinking))
        blocks.extend(_calls(value))
    return Message(role, tuple(blocks))


def _result(value: Json) -> ToolResult:
    text, images = result_parts(value.get("content"))
    # The old functions had no ids: a result named the function.
    return ToolResult(
        text_at(value, "tool_call_id") or text_at(value, "name"), text, text_at(value, "name"), images=images
    )


def _block(part: Json) -> Block:
    match part.get("type"):
        case "text":
            return Text(text_at(part, "text"))
        case "image_url":
            return image_of(part)
        case kind:
            return Other(str(kind), json_text(part))


def _calls(value: Json) -> list[Block]:
    calls = value.get("tool_calls")
    found: list[Block] = [_call(call) for call in calls if isinstance(call, dict)] if isinstance(calls, list) else []
    old = value.get("function_call")
    if isinstance(old, dict):
        found.append(ToolCall(text_at(old, "name"), text_at(old, "name"), text_at(old, "arguments")))
    return found


def _call(call: Json) -> ToolCall:
    function = call.get("function")
    if isinstance(function, dict):
        return ToolCall(text_at(call, "id"), text_at(function, "name"), text_at(function, "arguments"))
    custom = call.get("custom")
    custom = custom if isinstance(custom, dict) else {}
    return ToolCall(text_at(call, "id"), text_at(custom, "name"), json_text(custom.get("input")))


def with_results(item: bytes, texts: Mapping[int, str]) -> bytes:
    """Replace the content of a tool message (a single block)."""
    return with_field(item, "content", partial(replace_content, text=texts[0], kind="text"))


def with_arguments(item: bytes, arguments: Mapping[int, str]) -> bytes:
    """Replace the arguments of some calls in a message.

    arguments: JSON text by block. Calls are the last blocks of a message, and an old `function_call` comes after them.
    """
    fields = object_fields(item, "a message")
    calls = (
        array_items(fields["tool_calls"], "tool_calls") if fields.get("tool_calls", b"").lstrip()[:1] == b"[" else []
    )
    places = [place for place, call in enumerate(calls) if call.lstrip()[:1] == b"{"]
    is_old = fields.get("function_call", b"").lstrip()[:1] == b"{"
    first = len(message(parse_item(item)).blocks) - len(places) - is_old
    for block, text in arguments.items():
        at = block - first
        if at < len(places):
            calls[places[at]] = _with_call(calls[places[at]], text)
        else:
            fields["function_call"] = _with_arguments(fields["function_call"], text)
    return object_of({**fields, "tool_calls": array_of(calls)} if places else fields)


def _with_arguments(function: bytes, text: str) -> bytes:
    return with_field(function, "arguments", lambda _: encode_json(text))


def _with_call(call: bytes, text: str) -> bytes:
    inner = object_fields(call, "a call")
    if "function" in inner:
        return with_field(call, "function", lambda raw: _with_arguments(raw or b"{}", text))
    return with_field(call, "custom", lambda raw: with_field(raw or b"{}", "input", lambda _: json_bytes(text)))


def user_message(text: str) -> dict[str, Any]:
    """A message of the user."""
    return {"role": "user", "content": text}


def with_notes(item: bytes, notes: Sequence[str]) -> bytes:
    """Append notes to a message of the user's side, as user messages."""
    return with_messages_behind(item, [encode_json(user_message(note)) for note in notes])


def with_words(item: bytes, words: MessageTexts) -> bytes:
    """Change the text of a user message."""
    return with_content_words(item, words, "text", joins=True)


def render(messages: Sequence[Message], model: str, *, max_tokens: int) -> dict[str, Any]:
    """Render neutral messages as a request body. Thinking is left out; blocks without a form in Chat become text."""
    out: list[dict[str, Any]] = []
    for one in messages:
        results = [block for block in one.blocks if isinstance(block, ToolResult)]
        others = [block for block in one.blocks if not isinstance(block, ToolResult)]
        out.extend({"role": "tool", "tool_call_id": block.call_id, "content": result_text(block)} for block in results)
        if one.role == "assistant":
            out.extend(_wire_answer(others))
        elif others:
            role = "system" if one.role == "system" else "user"
            out.append({"role": role, "content": _wire_content(others)})
    return {"model": model, "max_completion_tokens": max_tokens, "messages": out}


def _wire_answer(blocks: Sequence[Block]) -> list[dict[str, Any]]:
    calls = [
        {"id": block.id, "type": "function", "function": {"name": block.name, "arguments": block.arguments}}
        for block in blocks
        if isinstance(block, ToolCall)
    ]
    said = [block for block in blocks if not isinstance(block, ToolCall | Thinking)]
    text = "\n".join(part["text"] for part in map(_wire_part, said) if part["type"] == "text")
    if not calls and not text:
        return []
    answer: dict[str, Any] = {"role": "assistant", "content": text or None}
    return [{**answer, "tool_calls": calls} if calls else answer]


def _wire_content(blocks: Sequence[Block]) -> str | list[dict[str, Any]]:
    parts = [_wire_part(block) for block in blocks]
    return parts[0]["text"] if len(parts) == 1 and parts[0]["type"] == "text" else parts


def _wire_part(block: Block) -> dict[str, Any]:
    match block:
        case Text() | Thinking():
            return {"type": "text", "text": block.text}
        case Image(data=str(data)):
            return {"type": "image_url", "image_url": {"url": f"data:{block.media_type};base64,{data}"}}
        case Image():
            return {"type": "text", "text": image_words(block)}
        case Other():
            return {"type": "text", "text": block_words(block)}
        case _:
            return {"type": "text", "text": ""}


FORM: Final = RequestForm(
    "messages",
    (),
    system,
    message,
    with_results,
    with_arguments,
    user_message,
    with_notes,
    with_words,
    render,
    cache_blocks,
)
