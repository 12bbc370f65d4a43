"""OpenAI Responses: one neutral message per input item."""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, Final

from pagein.model.json_text import encode_json
from pagein.model.messages import Block, Image, Message, Other, Role, Text, Thinking, ToolCall, ToolResult
from pagein.providers.wire.json_values import (
    Json,
    block_words,
    count_leading_system,
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

_ROLES: Final[Mapping[str, Role]] = {"assistant": "assistant", "system": "system", "developer": "system"}


def system(fields: Mapping[str, object]) -> tuple[Message, ...]:
    """Read the instructions of a request.

    fields: its top-level fields, decoded.
    """
    instructions = fields.get("instructions")
    return (Message("system", (Text(instructions),)),) if isinstance(instructions, str) and instructions else ()


def message(value: Json, _place: int = 0) -> Message:
    """Convert an input item. An item of unknown kind belongs to the model if it is a call, otherwise to the user."""
    kind = text_at(value, "type") or "message"
    read = _READERS.get(kind)
    if read is not None:
        return read(value)
    return Message("assistant" if kind.endswith("_call") else "user", (Other(kind, json_text(value)),))


def _text_message(value: Json) -> Message:
    role = _ROLES.get(text_at(value, "role"), "user")
    return Message(role, tuple(_block(part) for part in parts_of(value.get("content"))))


def _function_call(value: Json) -> Message:
    return _block_message(ToolCall(text_at(value, "call_id"), text_at(value, "name"), text_at(value, "arguments")))


def _custom_call(value: Json) -> Message:
    return _block_message(ToolCall(text_at(value, "call_id"), text_at(value, "name"), json_text(value.get("input"))))


def _shell_call(value: Json) -> Message:
    return _block_message(ToolCall(text_at(value, "call_id"), "local_shell", json_text(value.get("action"))))


def _reasoning_message(value: Json) -> Message:
    text = "\n".join(text_at(part, "text") for part in parts_of(value.get("summary")))
    return _block_message(Thinking(text, text_at(value, "encrypted_content") or None))


def _output_message(value: Json) -> Message:
    text, images = result_parts(value.get("output"))
    return Message("tool", (ToolResult(text_at(value, "call_id") or text_at(value, "id"), text, images=images),))


_READERS: Final[Mapping[str, Callable[[Json], Message]]] = {
    "message": _text_message,
    "function_call": _function_call,
    "custom_tool_call": _custom_call,
    "local_shell_call": _shell_call,
    "reasoning": _reasoning_message,
    "function_call_output": _output_message,
    "custom_tool_call_output": _output_message,
    "local_shell_call_output": _output_message,
}


def _block_message(block: Block) -> Message:
    return Message("assistant", (block,))


def _block(part: Json) -> Block:
    match part.get("type"):
        case "input_text" | "output_text" | "text":
            return Text(text_at(part, "text"))
        case "refusal":
            return Text(text_at(part, "refusal"))
        case "input_image":
            return image_of(part)
        case kind:
            return Other(str(kind), json_text(part))


def with_results(item: bytes, texts: Mapping[int, str]) -> bytes:
    """Replace the output of an output item (a single block)."""
    return with_field(item, "output", partial(replace_content, text=texts[0], kind="input_text"))


def with_arguments(item: bytes, arguments: Mapping[int, str]) -> bytes:
    """Replace the arguments of a call (a single block): the input of a custom tool, the action of a shell."""
    text = arguments[0]
    match text_at(parse_item(item), "type"):
        case "custom_tool_call":
            return with_field(item, "input", lambda _: json_bytes(text))
        case "local_shell_call":
            return with_field(item, "action", lambda _: json_bytes(text))
        case _:
            return with_field(item, "arguments", lambda _: encode_json(text))


def user_message(text: str) -> dict[str, Any]:
    """A message of the user, as an item."""
    return {"type": "message", "role": "user", "content": [{"type": "input_text", "text": text}]}


def with_notes(item: bytes, notes: Sequence[str]) -> bytes:
    """Append notes to an item of the user's side, as user messages."""
    return with_messages_behind(item, [encode_json(user_message(note)) for note in notes])


def with_words(item: bytes, words: MessageTexts) -> bytes:
    """Change the text of a user message."""
    return with_content_words(item, words, "input_text", joins=True)


def render(messages: Sequence[Message], model: str, *, max_tokens: int) -> dict[str, Any]:
    """Render neutral messages as a request body. Thinking is left out: the ids of the items around are missing."""
    head = count_leading_system(tuple(messages))
    body: dict[str, Any] = {"model": model, "max_output_tokens": max_tokens}
    instructions = "\n\n".join(block.text for one in messages[:head] for block in one.blocks if isinstance(block, Text))
    if instructions:
        body["instructions"] = instructions
    body["input"] = [item for one in messages[head:] for item in _wire_items(one)]
    return body


def _wire_items(one: Message) -> list[dict[str, Any]]:
    results = [
        {"type": "function_call_output", "call_id": block.call_id, "output": result_text(block)}
        for block in one.blocks
        if isinstance(block, ToolResult)
    ]
    calls = [
        {"type": "function_call", "call_id": block.id, "name": block.name, "arguments": block.arguments}
        for block in one.blocks
        if isinstance(block, ToolCall)
    ]
    kind = "output_text" if one.role == "assistant" else "input_text"
    parts = [_wire_part(block, kind) for block in one.blocks if not isinstance(block, ToolResult | ToolCall | Thinking)]
    role = {"assistant": "assistant", "system": "developer"}.get(one.role, "user")
    said = [{"type": "message", "role": role, "content": parts}] if parts else []
    return [*results, *said, *calls]


def _wire_part(block: Block, kind: str) -> dict[str, Any]:
    match block:
        case Text():
            return {"type": kind, "text": block.text}
        case Image(data=str(data)):
            return {"type": "input_image", "image_url": f"data:{block.media_type};base64,{data}"}
        case Image():
            return {"type": kind, "text": image_words(block)}
        case Other():
            return {"type": kind, "text": block_words(block)}
        case _:
            return {"type": kind, "text": ""}


FORM: Final = RequestForm(
    "input",
    ("instructions",),
    system,
    message,
    with_results,
    with_arguments,
    user_message,
    with_notes,
    with_words,
    render,
    cache_blocks,
    takes_bare_string=True,
)
