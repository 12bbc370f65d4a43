"""Values out of foreign JSON: a wrong type is an absent value, never an error. And text in place of what cannot be sent."""

from collections.abc import Callable, Mapping
from typing import Any, Final, TypeAlias

from pagein.model.codec import decode_json, encode_json
from pagein.model.messages import Image, Message, Other
from pagein.providers.wire import json_spans

Json: TypeAlias = Mapping[str, Any]

THINKING_LEFT_OUT: Final = "[thinking left out]"
"""What stands in a message of the model's that held nothing but thinking, where that had to go."""

_TEXT_KINDS: Final = ("text", "input_text", "output_text")


def text_at(value: Json, name: str) -> str:
    """The string under this name, else the empty one."""
    found = value.get(name)
    return found if isinstance(found, str) else ""


def json_text(value: object) -> str:
    """A value as JSON text, key order and all."""
    return encode_json(value).decode("utf-8", "surrogatepass")


def json_bytes(text: str) -> bytes:
    """JSON text as it stands in a body: what no UTF-8 holds comes out as escapes."""
    try:
        return text.encode()
    except UnicodeEncodeError:
        return encode_json(decode_json(text.encode("utf-8", "surrogatepass")))


def arguments_of(text: str) -> dict[str, Any]:
    """The arguments of a call as an object: those that are none (a patch, a string) become its field `input`."""
    value = parse_json(text)
    return value if isinstance(value, dict) else {"input": text if value is None else value}


def parse_json(text: str) -> object:
    """The value of JSON text, None where it is none."""
    try:
        return decode_json(text.encode("utf-8", "surrogatepass"))
    except ValueError:
        return None


def is_blank(part: Json) -> bool:
    """Whether this is a part of text that holds none."""
    text = part.get("text")
    return part.get("type") in _TEXT_KINDS and isinstance(text, str) and (not text or text.isspace())


def parse_item(item: bytes) -> Json:
    """The fields of a message that was read before, as plain values."""
    value = decode_json(item)
    return value if isinstance(value, dict) else {}


def parts_of(content: object) -> list[Json]:
    """The parts of a content that is a string or a list of parts."""
    if isinstance(content, str):
        return [{"type": "text", "text": content}]
    # Whatever is no part keeps its place, so that places in the content are places in the message.
    return [part if isinstance(part, dict) else {} for part in content] if isinstance(content, list) else []


def result_parts(content: object) -> tuple[str, tuple[Image, ...]]:
    """The text of a result, and whatever in it is no text (which keeps it in the window)."""
    parts = parts_of(content)
    text = "".join(text_at(part, "text") for part in parts if _is_text(part))
    return text, tuple(image_of(part) for part in parts if not _is_text(part))


def image_of(part: Json) -> Image:
    """What an image, or any other part that is not text, weighs. Its data stays in the span."""
    source = part.get("source")
    kind = text_at(source, "media_type") if isinstance(source, dict) else ""
    return Image(kind or text_at(part, "type") or "unknown", len(encode_json(part)))


def image_words(image: Image) -> str:
    """Words for an image whose data we do not have, or that cannot stand where it would."""
    return f"[image: {image.media_type}, {image.size:,} characters]"


def block_words(block: Other) -> str:
    """Words for a block that the receiving format has no form for: its JSON."""
    return block.json


def replace_content(content: bytes | None, text: str, kind: str) -> bytes:
    """A new content in the form of the old one: a string, or a list with one part of this kind."""
    if content is not None and content.lstrip()[:1] == b"[":
        return encode_json([{"type": kind, "text": text}])
    return encode_json(text)


def with_field(item: bytes, name: str, change: Callable[[bytes | None], bytes]) -> bytes:
    """The object with one field changed. All others keep their bytes and their order."""
    parts = json_spans.fields(item, "a message or block")
    return json_spans.object_of({**parts, name: change(parts.get(name))})


def count_leading_system(messages: tuple[Message, ...]) -> int:
    """How many system messages a conversation begins with."""
    return next((place for place, one in enumerate(messages) if one.role != "system"), len(messages))


def _is_text(part: Json) -> bool:
    return part.get("type") in _TEXT_KINDS and isinstance(part.get("text"), str)
