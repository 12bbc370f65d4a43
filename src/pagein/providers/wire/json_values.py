"""Lenient values from foreign JSON: a wrong type counts as an absent value.

Also the text for content that cannot be sent.
"""

from collections.abc import Callable, Mapping
from typing import Any, Final, TypeAlias

from pagein.model.json_text import decode_json, encode_json, object_fields, object_of
from pagein.model.messages import Image, Message, Other
from pagein.model.server_results import stub_of

Json: TypeAlias = Mapping[str, Any]

_MOST: Final = 1 << 50  # a larger number is not a count

THINKING_LEFT_OUT: Final = "[thinking left out]"
"""Replacement text for a message of the model that held only thinking, after the thinking was removed."""

_TEXT_KINDS: Final = ("text", "input_text", "output_text")


def text_at(value: object, name: str) -> str:
    """The string under a name, or an empty string."""
    found = value.get(name) if isinstance(value, dict | Mapping) else None
    return found if isinstance(found, str) else ""


def count_at(value: object, name: str) -> int:
    """The count under a name, or 0. Some providers write whole numbers as 12.0."""
    found = value.get(name) if isinstance(value, dict | Mapping) else None
    if isinstance(found, bool) or not isinstance(found, int | float) or not 0 < found < _MOST:
        return 0
    return int(found)


def texts_at(value: Json, *names: str) -> list[str]:
    """The strings under some names, each as `text_at` finds it."""
    return [text_at(value, name) for name in names]


def json_text(value: object) -> str:
    """Encode a value as JSON text, in key order of the value."""
    return encode_json(value).decode("utf-8", "surrogatepass")


def json_bytes(text: str) -> bytes:
    """Encode JSON text for a request body. Characters outside UTF-8 become escapes."""
    try:
        return text.encode()
    except UnicodeEncodeError:
        return encode_json(decode_json(text.encode("utf-8", "surrogatepass")))


def arguments_of(text: str) -> dict[str, Any]:
    """Parse the arguments of a call. Arguments without an object (a patch, a string) become the field `input`."""
    value = parse_json(text)
    return value if isinstance(value, dict) else {"input": text if value is None else value}


def parse_json(text: str | bytes) -> object:
    """Parse JSON text. Invalid text gives None."""
    try:
        return decode_json(text.encode("utf-8", "surrogatepass") if isinstance(text, str) else text)
    except ValueError:
        return None


def decoded_object(text: str | bytes) -> dict[str, Any] | None:
    """Parse a JSON object. Anything else gives None."""
    value = parse_json(text)
    return value if isinstance(value, dict) else None


def is_blank(part: Json) -> bool:
    """Whether a part is a text part without text."""
    text = part.get("text")
    return part.get("type") in _TEXT_KINDS and isinstance(text, str) and (not text or text.isspace())


def parse_item(item: bytes) -> Json:
    """Decode the fields of an already validated message."""
    value = decode_json(item)
    return value if isinstance(value, dict) else {}


def parts_of(content: object) -> list[Json]:
    """The parts of a content, given as a string or a list of parts."""
    if isinstance(content, str):
        return [{"type": "text", "text": content}]
    # An item that is not a part keeps its place, so that places in the content are places in the message.
    return [part if isinstance(part, dict) else {} for part in content] if isinstance(content, list) else []


def role_and_parts(value: Json) -> tuple[str, list[Json]]:
    """The role of a message, or an empty string, and the parts of its content."""
    return text_at(value, "role"), parts_of(value.get("content"))


def result_parts(content: object) -> tuple[str, tuple[Image, ...]]:
    """The text of a result, and its other parts as images (a result with images stays in the window)."""
    parts = parts_of(content)
    text = "".join(text_at(part, "text") for part in parts if _is_text(part))
    return text, tuple(image_of(part) for part in parts if not _is_text(part))


def image_of(part: Json) -> Image:
    """The type and size of an image, or of any part without text. The data stays in the wire bytes."""
    kind = text_at(part.get("source"), "media_type") or text_at(part, "type") or "unknown"
    return Image(kind, len(encode_json(part)))


def image_words(image: Image) -> str:
    """Replacement text for an image without data, or at a place where images are not accepted."""
    return f"[image: {image.media_type}, {image.size:,} characters]"


def block_words(block: Other) -> str:
    """Replacement text for a block without a form in the target format: the text of a stub, else its JSON."""
    stub = stub_of(block)
    return block.json if stub is None else stub[1]


def replace_content(content: bytes | None, text: str, kind: str) -> bytes:
    """Encode new content in the form of the old content: a string, or a list with one part of type `kind`."""
    if content is not None and content.lstrip()[:1] == b"[":
        return encode_json([{"type": kind, "text": text}])
    return encode_json(text)


def with_field(item: bytes, name: str, change: Callable[[bytes | None], bytes]) -> bytes:
    """Change one field of an object. The remaining fields keep their bytes and their order."""
    parts = object_fields(item, "a message or block")
    return object_of({**parts, name: change(parts.get(name))})


def count_leading_system(messages: tuple[Message, ...]) -> int:
    """Number of system messages at the start of a conversation."""
    return next((place for place, one in enumerate(messages) if one.role != "system"), len(messages))


def field_value(fields: Mapping[str, bytes], name: str) -> object:
    """Decode a field of a request. None for an absent field."""
    raw = fields.get(name)
    return None if raw is None else decode_json(raw)


def objects_in(value: object) -> list[Json]:
    """The objects in a list. Other items are left out."""
    return [one for one in value if isinstance(one, dict)] if isinstance(value, list) else []


def first_object(value: object) -> Json | None:
    """The first item of a list, if it is an object."""
    first = value[0] if isinstance(value, list) and value else None
    return first if isinstance(first, dict) else None


def content_blocks(value: Json) -> list[tuple[Json, str]]:
    """The blocks of a message as the cache counts them, each with its side: content, then calls."""
    role, kind = str(value.get("role") or ""), str(value.get("type") or "")
    side = role or ("tool" if kind.endswith("_output") else "assistant")
    content, calls = value.get("content"), value.get("tool_calls")
    parts = content if isinstance(content, list) else [] if content is None else [{"type": "text", "text": content}]
    blocks = [one for one in [*parts, *(calls if isinstance(calls, list) else [])] if isinstance(one, Mapping)]
    return [(one, "tool" if one.get("type") == "tool_result" else side) for one in blocks]


def _is_text(part: Json) -> bool:
    return part.get("type") in _TEXT_KINDS and isinstance(part.get("text"), str)
