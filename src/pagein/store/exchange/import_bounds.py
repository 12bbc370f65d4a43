"""What a file may claim before it is believed: bounds on its lines and numbers, and the types of its fields. Raises BadInput or TypeError.

Whoever sends a file decides what stands in it. So nothing in it may cost more than the file is long, and no number may be one that a
database or another reader cannot hold.
"""

import math
import sys
from collections.abc import Iterable
from typing import Any, Final

import msgspec

from pagein.errors import BadInput
from pagein.model.codec import decode_json

LONGEST_LINE: Final = 1 << 26
"""Bytes. Longer than anything that a tool prints or a model reads."""
_LONGEST_RECORD: Final = 1 << 24
"""The same for all but blobs: what is nested takes many times its bytes in memory, a flat text does not."""
_MOST: Final = (1 << 53) - 1
_DEEPEST: Final = 200


def text(value: Any) -> str:  # noqa: ANN401 -- whatever a file says
    """A field that is a text."""
    if not isinstance(value, str):
        raise TypeError(f"{str(value)[:40]!r} is not a text")
    return value


def count(value: Any, what: str, least: int = 0) -> int:  # noqa: ANN401 -- whatever a file says
    """A field that counts something: a whole number that other readers can hold too."""
    if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= _MOST:
        raise BadInput(f"{what} must be a whole number from {least} to {_MOST}, not {_show_value(value)}")
    return value


def moment(value: Any, what: str) -> float:  # noqa: ANN401 -- whatever a file says
    """A field that is a time in seconds since 1970."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not abs(value) <= sys.float_info.max:
        raise BadInput(f"{what} must be a number of seconds since 1970, not {_show_value(value)}")
    return float(value)


class _Blob(msgspec.Struct):
    """The record of a blob; what else stands in its line is passed over without being kept."""

    type: str
    hash: str
    text: str | msgspec.UnsetType = msgspec.UNSET
    base64: str | msgspec.UnsetType = msgspec.UNSET


def record(line: bytes) -> dict[str, Any]:
    """The record in a line. Costs no more than a few times the line's length, and for any but a blob the line is short."""
    if len(line) > LONGEST_LINE:
        raise BadInput(f"longer than {LONGEST_LINE >> 20} MB, which no line of an export is")
    if len(line) > _LONGEST_RECORD:
        blob = msgspec.json.decode(line, type=_Blob)
        if blob.type != "blob":
            raise BadInput(f"longer than {_LONGEST_RECORD >> 20} MB, which only the line of a blob may be")
        return {name: value for name, value in msgspec.structs.asdict(blob).items() if value is not msgspec.UNSET}
    fields = decode_json(line)
    if not isinstance(fields, dict):
        raise BadInput("not a JSON object")
    _check([fields])
    return fields


def _check(values: Iterable[object], depth: int = 0) -> None:
    """No number in here is one that cannot be held, and nothing is nested too deeply."""
    if depth > _DEEPEST:
        raise BadInput(f"nested deeper than {_DEEPEST}")
    for value in values:
        match value:
            case bool() | str() | None:
                continue
            case int() if not -(1 << 63) <= value < 1 << 63:
                raise BadInput(f"the number {_show_value(value)} has more than 64 bits")
            case float() if not math.isfinite(value):
                raise BadInput(f"{value} is no number")
            case list():
                _check(value, depth + 1)
            case dict():
                _check(value.values(), depth + 1)


def _show_value(value: object) -> str:
    try:
        return repr(value)[:40]
    except ValueError:  # a number with thousands of digits
        return "a number with thousands of digits"
