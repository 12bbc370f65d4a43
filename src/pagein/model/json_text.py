"""JSON text of plain values, compact.

Text may hold lone surrogates (hosts cut strings between them). msgspec refuses them in both directions, json does not.
"""

import json
from collections.abc import Callable, Iterable

import msgspec


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
