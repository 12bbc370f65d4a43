"""Anthropic Messages: one neutral message per wire message, one neutral block per content block."""

from collections.abc import Callable, Collection, Mapping, Sequence
from functools import partial
from typing import Any, Final

from pagein.model.json_text import array_items, array_of, encode_json
from pagein.model.messages import Block, Image, Message, Other, Role, Text, Thinking, ToolCall, ToolResult
from pagein.providers.wire.anthropic_messages.server_results import FORM as SERVER_RESULTS
from pagein.providers.wire.json_values import (
    THINKING_LEFT_OUT,
    Json,
    arguments_of,
    block_words,
    content_blocks,
    count_leading_system,
    image_of,
    image_words,
    is_blank,
    json_bytes,
    json_text,
    parse_json,
    parts_of,
    replace_content,
    result_parts,
    role_and_parts,
    text_at,
    texts_at,
    with_field,
)
from pagein.providers.wire.message_texts import MessageTexts, blocks_of, with_content_words
from pagein.providers.wire.wire_format import RequestForm

_ROLES: Final[Mapping[str, Role]] = {"assistant": "assistant", "system": "system"}
_OWN_KINDS: Final = frozenset(
    {
        "document",
        "search_result",
        "container_upload",
        "server_tool_use",
        "web_search_tool_result",
        "web_fetch_tool_result",
        "code_execution_tool_result",
        "bash_code_execution_tool_result",
        "text_editor_code_execution_tool_result",
        "tool_search_tool_result",
        "mcp_tool_use",
        "mcp_tool_result",
    }
)
"""Kinds of blocks without a value in pagein that a Messages request accepts unchanged."""


def system(fields: Mapping[str, object]) -> tuple[Message, ...]:
    """Read the system prompt of a request.

    fields: its top-level fields, decoded.
    """
    blocks = tuple(_block(part) for part in parts_of(fields.get("system")))
    return (Message("system", blocks),) if blocks else ()


def message(value: Json, _place: int = 0) -> Message:
    """Convert a wire message."""
    role, parts = role_and_parts(value)
    return Message(_ROLES.get(role, "user"), tuple(_block(part) for part in parts))


def _block(part: Json) -> Block:
    kind = str(part.get("type"))
    read = _READERS.get(kind)
    return read(part) if read is not None else Other(kind, json_text(part))


def _tool_use(part: Json) -> ToolCall:
    call_id, name = texts_at(part, "id", "name")
    return ToolCall(call_id, name, json_text(part.get("input", {})))


def _result(part: Json) -> ToolResult:
    text, images = result_parts(part.get("content"))
    return ToolResult(text_at(part, "tool_use_id"), text, is_error=part.get("is_error") is True, images=images)


_READERS: Final[Mapping[str, Callable[[Json], Block]]] = {
    "text": lambda part: Text(text_at(part, "text")),
    "tool_use": _tool_use,
    "tool_result": _result,
    "thinking": lambda part: Thinking(text_at(part, "thinking"), text_at(part, "signature") or None),
    "redacted_thinking": lambda part: Thinking("", text_at(part, "data") or None, redacted=True),
    "image": image_of,
}


def with_results(item: bytes, texts: Mapping[int, str]) -> bytes:
    """Replace the content of some results in a wire message. The remaining bytes stay the same.

    texts: new contents by block.
    """

    def in_blocks(content: bytes | None) -> bytes:
        blocks = array_items(content or b"[]", "content")
        for index, text in texts.items():
            blocks[index] = with_field(blocks[index], "content", partial(replace_content, text=text, kind="text"))
        return array_of(blocks)

    return with_field(item, "content", in_blocks)


def with_arguments(item: bytes, arguments: Mapping[int, str]) -> bytes:
    """Replace the input of some calls in a wire message. The remaining bytes stay the same.

    arguments: new inputs by block, as JSON text.
    """

    def in_blocks(content: bytes | None) -> bytes:
        blocks = array_items(content or b"[]", "content")
        for index, text in arguments.items():
            blocks[index] = with_field(blocks[index], "input", lambda _, text=text: json_bytes(text))  # type: ignore[misc]
        return array_of(blocks)

    return with_field(item, "content", in_blocks)


def without_blocks(item: bytes, gone: Collection[int]) -> bytes:
    """Remove some blocks of thinking from a wire message. The remaining bytes stay the same."""

    def in_blocks(content: bytes | None) -> bytes:
        kept = [block for index, block in enumerate(array_items(content or b"[]", "content")) if index not in gone]
        return array_of(kept or [encode_json({"type": "text", "text": THINKING_LEFT_OUT})])

    return with_field(item, "content", in_blocks)


def user_message(text: str) -> dict[str, Any]:
    """A message of the user."""
    return {"role": "user", "content": text}


def with_notes(item: bytes, notes: Sequence[str]) -> bytes:
    """Append notes to a user message, as blocks."""

    def behind(content: bytes | None) -> bytes:
        return array_of([*blocks_of(content), *(encode_json({"type": "text", "text": note}) for note in notes)])

    return with_field(item, "content", behind)


def with_words(item: bytes, words: MessageTexts) -> bytes:
    """Change the text of a user message."""
    return with_content_words(item, words, "text", joins=False)


def render(messages: Sequence[Message], model: str, *, max_tokens: int) -> dict[str, Any]:
    """Render neutral messages as a request body. Thinking without a signature is left out: no provider accepts it.

    Everything between two assistant messages becomes one message, results first (rules M3, M4, M8).
    """
    head = count_leading_system(tuple(messages))
    body: dict[str, Any] = {"model": model, "max_tokens": max_tokens}
    prompt = [part for one in messages[:head] for block in one.blocks for part in _wire_block(block)]
    if prompt:
        body["system"] = prompt
    turns: list[dict[str, Any]] = []
    for one in messages[head:]:
        role = "assistant" if one.role == "assistant" else "user"
        parts = [part for block in one.blocks for part in _wire_block(block)]
        if not parts:
            continue
        if turns and turns[-1]["role"] == role == "user":
            turns[-1]["content"].extend(parts)
        else:
            turns.append({"role": role, "content": parts})
    body["messages"] = turns
    return body


def _wire_block(block: Block) -> list[dict[str, Any]]:
    match block:
        case Text():
            wire: dict[str, Any] | None = {"type": "text", "text": block.text}
        case ToolCall():
            wire = {"type": "tool_use", "id": block.id, "name": block.name, "input": arguments_of(block.arguments)}
        case ToolResult():
            wire = _wire_result(block)
        case Thinking():
            wire = _wire_thinking(block)
        case Image():
            wire = _wire_image(block)
        case Other():
            wire = _wire_other(block)
    # A blank text block is refused (M7), whatever its source.
    return [wire] if wire is not None and not is_blank(wire) else []


def _wire_thinking(block: Thinking) -> dict[str, Any] | None:
    if block.signature is None:
        return None
    if block.redacted:
        return {"type": "redacted_thinking", "data": block.signature}
    return {"type": "thinking", "thinking": block.text, "signature": block.signature}


def _wire_result(block: ToolResult) -> dict[str, Any]:
    content: str | list[dict[str, Any]] = block.text
    if block.images:
        text = {"type": "text", "text": block.text}
        content = [*([] if is_blank(text) else [text]), *(_wire_image(image) for image in block.images)]
    result: dict[str, Any] = {"type": "tool_result", "tool_use_id": block.call_id, "content": content}
    return {**result, "is_error": True} if block.is_error else result


def _wire_image(image: Image) -> dict[str, Any]:
    if image.data is None:
        return {"type": "text", "text": image_words(image)}
    return {"type": "image", "source": {"type": "base64", "media_type": image.media_type, "data": image.data}}


def _wire_other(block: Other) -> dict[str, Any]:
    value = parse_json(block.json) if block.kind in _OWN_KINDS else None
    return value if isinstance(value, dict) else {"type": "text", "text": block_words(block)}


FORM: Final = RequestForm(
    "messages",
    ("system",),
    system,
    message,
    with_results,
    with_arguments,
    user_message,
    with_notes,
    with_words,
    render,
    content_blocks,
    without_blocks,
    SERVER_RESULTS,
)
