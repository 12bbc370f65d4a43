"""Validate untrusted import files: bounds on lines and numbers, and types of fields. Violations raise BadInput or TypeError.

The sender controls every byte of a file. So the cost of reading must stay proportional to the file's length, and every number must fit
into a database and into other readers.
"""

import math
import sys
from collections.abc import Iterable
from typing import Any, Final

import msgspec

from pagein.errors import BadInput
from pagein.model.derived_versions import is_following
from pagein.model.json_text import decode_json
from pagein.model.version_hash import decode_content

LONGEST_LINE: Final = 1 << 26
"""Longest accepted line, in bytes. Longer than any output of a tool or input of a model."""
_LONGEST_RECORD: Final = 1 << 24
"""The same for records other than blobs: nested values take many times their bytes in memory, flat text does not."""
_MOST: Final = (1 << 53) - 1
_DEEPEST: Final = 200


def text(value: Any) -> str:  # noqa: ANN401 -- whatever a file says
    """Return a text field, checked."""
    if not isinstance(value, str):
        raise TypeError(f"{str(value)[:40]!r} is not a text")
    return value


def count(value: Any, what: str, least: int = 0) -> int:  # noqa: ANN401 -- whatever a file says
    """Return a field with a count, checked: a whole number within the range of other readers."""
    if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= _MOST:
        raise BadInput(f"{what} must be a whole number from {least} to {_MOST}, not {_show_value(value)}")
    return value


def moment(value: Any, what: str) -> float:  # noqa: ANN401 -- whatever a file says
    """Return a time field in seconds since 1970, checked."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not abs(value) <= sys.float_info.max:
        raise BadInput(f"{what} must be a number of seconds since 1970, not {_show_value(value)}")
    return float(value)


def following_request(value: object) -> str:
    """Return a request by which a journal was followed, checked: no others come from a file."""
    request = text(value)
    if not is_following(request):
        raise BadInput(f"{request[:40]!r} is no request of following a journal")
    return request


def chars_of(content: bytes) -> int | None:
    """Return the number of characters of a content, or None for binary content."""
    try:
        return len(decode_content(content))
    except UnicodeDecodeError:
        return None


class _Blob(msgspec.Struct):
    """The record of a blob. Decoding skips any other fields without storing them."""

    type: str
    hash: str
    text: str | msgspec.UnsetType = msgspec.UNSET
    base64: str | msgspec.UnsetType = msgspec.UNSET


def record(line: bytes) -> dict[str, Any]:
    """Return the record in a line.

    Memory stays within a few times the line's length; only a blob's line may be long.
    """
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
    """Check numbers and nesting depth recursively. Raises BadInput for a number out of range or too deep a nesting."""
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
