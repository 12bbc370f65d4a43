"""Gemini requests: one neutral message per content, one neutral block per part."""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, Final

from pagein.model.json_text import array_items, array_of, encode_json
from pagein.model.messages import Block, Image, Message, Other, Text, Thinking, ToolCall, ToolResult
from pagein.providers.validity.turns import object_at, padded_objects
from pagein.providers.wire.json_values import (
    Json,
    arguments_of,
    block_words,
    count_leading_system,
    image_words,
    json_bytes,
    json_text,
    objects_in,
    parse_item,
    text_at,
    with_field,
)
from pagein.providers.wire.message_texts import MessageTexts
from pagein.providers.wire.wire_format import RequestForm

TEXTS: Final = ("output", "error")
"""The fields of a function's response whose text is its result. A response without them counts as a whole."""
_MEDIA: Final = ("inlineData", "fileData")


def parts_in(value: object) -> list[Json]:
    """The parts of a content. Malformed items keep their places."""
    return padded_objects(value.get("parts")) if isinstance(value, dict) else []


def system(fields: Mapping[str, object]) -> tuple[Message, ...]:
    """Read the system prompt of a request.

    fields: its top-level fields, decoded.
    """
    told = next((fields[name] for name in FORM.system_fields if name in fields), None)
    blocks = tuple(Text(text_at(part, "text")) for part in parts_in(told) if "text" in part)
    return (Message("system", blocks),) if blocks else ()


def message(value: Json, place: int = 0) -> Message:
    """Convert a content.

    Ids are made, because either side may leave out the wire's own. The id of a call names its content, its function,
    and how many calls of this function stand before it there. A result answers the content before its own. A client
    that sends a result twice answers once: the copy is no result.
    """
    is_model = value.get("role") == "model"
    asked = place if is_model else place - 1
    counts: Counter[str] = Counter()
    seen: set[tuple[object, str]] = set()
    blocks: list[Block] = []
    for part in parts_in(value):
        call, answer = object_at(part, "functionCall"), object_at(part, "functionResponse")
        name = text_at(call or answer, "name")
        known = answer.get("id"), name
        if is_model and call:
            blocks.append(ToolCall(_id(asked, name, counts), name, json_text(call.get("args", {}))))
        elif not is_model and answer and (known[0] is None or known not in seen):
            seen.add(known)
            blocks.append(_result(answer, _id(asked, name, counts)))
        else:
            blocks.append(_block(part))
    return Message("assistant" if is_model else "user", tuple(blocks))


def _id(asked: int, name: str, counts: Counter[str]) -> str:
    counts[name] += 1
    return f"{asked}.{name}.{counts[name]}"


def _result(answer: Json, made_id: str) -> ToolResult:
    response = object_at(answer, "response")
    told = _text_field(response)
    text = text_at(response, told) if told else json_text(answer.get("response", {}))
    images = tuple(_image(part) for part in objects_in(answer.get("parts")))
    return ToolResult(made_id, text, text_at(answer, "name"), "error" in response, images)


def _text_field(response: Json) -> str:
    """The field with the text of a result; "" if the whole response is the text."""
    return next((name for name in TEXTS if isinstance(response.get(name), str)), "")


def _block(part: Json) -> Block:
    if isinstance(part.get("text"), str):
        text, signature = text_at(part, "text"), text_at(part, "thoughtSignature")
        return Thinking(text, signature or None) if part.get("thought") is True else Text(text)
    if any(name in part for name in _MEDIA):
        return _image(part)
    return Other(next((name for name in part if name != "thoughtSignature"), "part"), json_text(part))


def _image(part: Json) -> Image:
    media = next((object_at(part, name) for name in _MEDIA if name in part), part)
    return Image(text_at(media, "mimeType") or "unknown", len(encode_json(part)))


def _with_parts(item: bytes, change: Callable[[list[bytes]], Sequence[bytes]]) -> bytes:
    return with_field(item, "parts", lambda raw: array_of(change(array_items(raw or b"[]", "parts"))))


def with_results(item: bytes, texts: Mapping[int, str]) -> bytes:
    """Replace the text of some results in a content. All other bytes of the parts, ids included, stay the same.

    texts: new texts by block.
    """

    def change(parts: list[bytes]) -> list[bytes]:
        for place, text in texts.items():
            response = partial(_with_response, text=text)
            parts[place] = with_field(
                parts[place],
                "functionResponse",
                lambda raw, to=response: with_field(raw or b"{}", "response", to),  # type: ignore[misc]
            )
        return parts

    return _with_parts(item, change)


def _with_response(raw: bytes | None, text: str) -> bytes:
    told = _text_field(parse_item(raw or b"{}"))
    if not told:
        return encode_json({"output": text})
    return with_field(raw or b"{}", told, lambda _: encode_json(text))


def with_arguments(item: bytes, arguments: Mapping[int, str]) -> bytes:
    """Replace the arguments of some calls in a content.

    arguments: JSON text by block.
    """

    def change(parts: list[bytes]) -> list[bytes]:
        for place, text in arguments.items():
            args = json_bytes(text)
            parts[place] = with_field(
                parts[place],
                "functionCall",
                lambda raw, to=args: with_field(raw or b"{}", "args", lambda _: to),  # type: ignore[misc]
            )
        return parts

    return _with_parts(item, change)


def user_message(text: str) -> dict[str, Any]:
    """A content of the user."""
    return {"role": "user", "parts": [{"text": text}]}


def with_notes(item: bytes, notes: Sequence[str]) -> bytes:
    """Append notes to a content of the user's side, as parts."""
    return _with_parts(item, lambda parts: [*parts, *(encode_json({"text": note}) for note in notes)])


def with_words(item: bytes, words: MessageTexts) -> bytes:
    """Change the text of a user's content."""

    def change(parts: list[bytes]) -> list[bytes]:
        for place, text in words.texts.items():
            parts[place] = with_field(parts[place], "text", lambda _, text=text: encode_json(text))  # type: ignore[misc]
        front, behind = ([encode_json({"text": one})] if one else [] for one in (words.front, words.behind))
        return [*front, *parts, *behind]

    return _with_parts(item, change)


def cache_blocks(value: Json) -> list[tuple[Json, str]]:
    """The parts of a content as the cache counts them. Media carry the type by which their size is assumed."""
    side = "assistant" if value.get("role") == "model" else "user"
    parts = [{"type": "image", **part} if any(name in part for name in _MEDIA) else part for part in parts_in(value)]
    return [(part, "tool" if "functionResponse" in part else side) for part in parts]


def render(messages: Sequence[Message], model: str, *, max_tokens: int) -> dict[str, Any]:
    """Render neutral messages as a request body. Thinking is left out; the model's name is no part of a body.

    Everything between two answers becomes one content, so that the results of parallel calls share it (G3).
    """
    del model
    head = count_leading_system(tuple(messages))
    body: dict[str, Any] = {"contents": [], "generationConfig": {"maxOutputTokens": max_tokens}}
    prompt = [part for one in messages[:head] for block in one.blocks for part in _wire_part(block, {})]
    if prompt:
        body["systemInstruction"] = {"parts": prompt}
    names = {block.id: block.name for one in messages for block in one.blocks if isinstance(block, ToolCall)}
    turns: list[dict[str, Any]] = body["contents"]
    for one in messages[head:]:
        role = "model" if one.role == "assistant" else "user"
        parts = [part for block in one.blocks for part in _wire_part(block, names)]
        if turns and turns[-1]["role"] == role:
            turns[-1]["parts"].extend(parts)
        elif parts:
            turns.append({"role": role, "parts": parts})
    return body


def _wire_part(block: Block, names: Mapping[str, str]) -> list[dict[str, Any]]:
    match block:
        case Text():
            return [{"text": block.text}] if block.text else []
        case ToolCall():
            return [{"functionCall": {"name": block.name, "args": arguments_of(block.arguments)}}]
        case ToolResult():
            name = block.name or names.get(block.call_id, "") or "unknown"
            told = {"error" if block.is_error else "output": block.text}
            media = [part for image in block.images for part in _wire_part(image, names)]
            return [{"functionResponse": {"name": name, "response": told}}, *media]
        case Image(data=str(data)):
            return [{"inlineData": {"mimeType": block.media_type, "data": data}}]
        case Image() | Other():
            return [{"text": image_words(block) if isinstance(block, Image) else block_words(block)}]
        case _:
            return []


FORM: Final = RequestForm(
    "contents",
    ("systemInstruction", "system_instruction"),
    system,
    message,
    with_results,
    with_arguments,
    user_message,
    with_notes,
    with_words,
    render,
    cache_blocks,
    has_call_ids=False,
    model_field="",
)
