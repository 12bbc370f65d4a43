r"""JSON text: encode and decode plain values; split and join text without decoding it.

Text may hold lone surrogates (hosts cut strings between them), which providers accept. msgspec refuses them in both
directions, `json` does not; to split text, a scanner on top of `json` finds the same parts. A duplicate key in an object
keeps its last value.
"""

import json
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from json.decoder import scanstring  # type: ignore[attr-defined]  # not in the stubs; what JSONDecoder reads keys with
from typing import Final

import msgspec

from pagein.errors import BadInput

_FIELDS: Final = msgspec.json.Decoder(dict[str, msgspec.Raw])
_ITEMS: Final = msgspec.json.Decoder(list[msgspec.Raw])
_BLANK: Final = re.compile(r"[ \t\n\r]*")
_VALUE: Final = json.JSONDecoder()


def encode_json(value: object, plain: Callable[[object], object] | None = None) -> bytes:
    """Encode a value of plain types as compact JSON. Lone surrogates become escapes.

    plain: converts a value of another type to a plain one.
    """
    try:
        return msgspec.json.encode(value, enc_hook=plain)
    except UnicodeEncodeError:
        return json.dumps(value, ensure_ascii=True, separators=(",", ":"), allow_nan=False, default=plain).encode()


def encode_each(values: Iterable[object]) -> list[bytes]:
    """Encode each of these values as `encode_json` does."""
    return [encode_json(value) for value in values]


def decode_each(texts: Iterable[bytes]) -> list[object]:
    """Decode some texts as `decode_json` does. Raises ValueError for the first invalid text."""
    return [decode_json(text) for text in texts]


def decode_json(text: bytes) -> object:
    """Decode JSON into plain values.

    Raises ValueError (or a subclass of msgspec or json), also for nesting without end.
    """
    try:
        return _decode_line(text)
    except RecursionError as problem:
        raise ValueError("nested too deeply") from problem


def _decode_line(text: bytes) -> object:
    try:
        value: object = msgspec.json.decode(text)
    except ValueError:
        value = json.loads(text.decode("utf-8", "surrogatepass"))
    return value


def object_fields(text: bytes, what: str) -> dict[str, bytes]:
    """Split a JSON object into fields, in order. Raises BadInput, naming `what`, for any malformed text."""
    try:
        return {name: bytes(raw) for name, raw in _FIELDS.decode(text).items()}
    except (ValueError, RecursionError):
        return dict(_scan(text, "{", "}", what))


def array_items(text: bytes, what: str) -> list[bytes]:
    """Split a JSON array into items. Raises BadInput, naming `what`, for any malformed text."""
    try:
        return [bytes(raw) for raw in _ITEMS.decode(text)]
    except (ValueError, RecursionError):
        return [value for _, value in _scan(text, "[", "]", what)]


def object_of(parts: Mapping[str, bytes]) -> bytes:
    """Join fields to a JSON object."""
    return b"{" + b",".join(encode_json(name) + b":" + value for name, value in parts.items()) + b"}"


def object_with(parts: Mapping[str, bytes], name: str, inner: Sequence[bytes]) -> bytes:
    """Join fields to a JSON object, with the array `inner` under `name`. The middle of the array is copied only once."""
    around = parts if name in parts else {**parts, name: b""}
    told = [
        field + b":" + (b"[" if other == name else value)
        for field, (other, value) in zip(encode_each(around), around.items(), strict=True)
    ]
    place = next(place for place, field in enumerate(around) if field == name)
    front, behind = b"{" + b",".join(told[: place + 1]), b",".join((b"]", *told[place + 1 :])) + b"}"
    if not inner:
        return front + behind
    if len(inner) == 1:
        return b"".join((front, inner[0], behind))
    return b",".join((front + inner[0], *inner[1:-1], inner[-1] + behind))


def array_of(parts: Iterable[bytes]) -> bytes:
    """Join items to a JSON array."""
    return b"[" + b",".join(parts) + b"]"


def array_with(array: bytes, more: Sequence[bytes]) -> bytes:
    """The bytes of an array with further items at its end. The items keep their bytes."""
    return array_of([*array_items(array, "an array"), *more])


def _scan(content: bytes, opening: str, closing: str, what: str) -> list[tuple[str, bytes]]:
    try:
        return _members(content.decode(), opening, closing)
    except (ValueError, IndexError, RecursionError) as problem:
        kind = "object" if opening == "{" else "array"
        raise BadInput(f"{what} is not a JSON {kind}: {problem}") from problem


def _members(text: str, opening: str, closing: str) -> list[tuple[str, bytes]]:
    found: list[tuple[str, bytes]] = []
    at = _expect(text, _after_blank(text, 0), opening)
    if text[_after_blank(text, at)] == closing:
        return _end_scan(text, _after_blank(text, at) + 1, found)
    while True:
        at = _after_blank(text, at)
        name = ""
        if opening == "{":
            name, at = scanstring(text, _expect(text, at, '"'))
            at = _after_blank(text, _expect(text, _after_blank(text, at), ":"))
        _, end = _VALUE.raw_decode(text, at)
        found.append((name, text[at:end].encode()))
        at = _after_blank(text, end)
        if text[at] == closing:
            return _end_scan(text, at + 1, found)
        at = _expect(text, at, ",")


def _after_blank(text: str, at: int) -> int:
    match = _BLANK.match(text, at)
    return match.end() if match else at


def _expect(text: str, at: int, char: str) -> int:
    if text[at] != char:
        raise ValueError(f"expected {char!r} at character {at}")
    return at + 1


def _end_scan(text: str, at: int, found: list[tuple[str, bytes]]) -> list[tuple[str, bytes]]:
    if _after_blank(text, at) != len(text):
        raise ValueError(f"something follows at character {at}")
    return found
