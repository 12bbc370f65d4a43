"""Forgiving access to the fields of a decoded line: a field of the wrong type is a field that is not there."""

import json
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import TypeAlias, cast

import msgspec

Row: TypeAlias = Mapping[str, object]

_EMPTY: Row = {}
_FIRST_MILLISECONDS = 1e11  # in seconds the year 5138, in milliseconds 1973: nobody recorded an agent in either
_FIRST_OF_NEXT = 1e3  # so microseconds begin at 1e14, nanoseconds at 1e17
_EPOCH = re.compile(r"\d{9,19}(?:\.\d+)?")


def text(row: Row, *keys: str) -> str | None:
    """The first of these fields that holds text, or None."""
    for key in keys:
        value = row.get(key)
        if isinstance(value, str):
            return value
    return None


def number(row: Row, *keys: str) -> int | None:
    """The first of these fields that holds a finite number, as an int; or None."""
    for key in keys:
        value = row.get(key)
        if isinstance(value, bool):
            continue
        if isinstance(value, int) or (isinstance(value, float) and math.isfinite(value)):
            return int(value)
    return None


def count(row: Row, *keys: str) -> int:
    """The first of these fields that holds a number, never below 0; 0 where none does."""
    return max(0, number(row, *keys) or 0)


def mapping(row: Row, key: str) -> Row:
    """The object in this field; an empty one where there is none."""
    value = row.get(key)
    return cast("Row", value) if isinstance(value, dict) else _EMPTY


def sequence(row: Row, key: str) -> Sequence[object]:
    """The list in this field; an empty one where there is none."""
    value = row.get(key)
    return value if isinstance(value, list) else ()


def objects(values: object) -> Iterator[Row]:
    """The objects of a list, in order; whatever else stands in it, or is no list, is passed over."""
    if isinstance(values, list | tuple):
        for value in values:
            if isinstance(value, dict):
                yield cast("Row", value)


def lines_of(values: object) -> str:
    """A text field that some versions store as text and some as a list of texts."""
    if isinstance(values, str):
        return values
    if isinstance(values, list):
        return "\n".join(value for value in values if isinstance(value, str))
    return ""


def seconds(value: object) -> float | None:
    """A time as hosts write it (ISO 8601; seconds, milliseconds, micro- or nanoseconds since 1970), in seconds since 1970."""
    if isinstance(value, bool):
        return None
    if isinstance(value, int | float):
        return _epoch(value)
    if not isinstance(value, str) or not value:
        return None
    if _EPOCH.fullmatch(value):
        return _epoch(float(value))
    try:
        moment = datetime.fromisoformat(value)
    except ValueError:
        return None
    return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()


def _epoch(value: float) -> float | None:
    try:
        moment = float(value)
    except OverflowError:
        return None
    if not math.isfinite(moment) or moment <= 0:
        return None
    for _ in ("milliseconds", "microseconds", "nanoseconds"):
        if moment < _FIRST_MILLISECONDS:
            break
        moment /= _FIRST_OF_NEXT
    return moment if moment < _FIRST_MILLISECONDS else None


def json_text(value: object) -> str:
    """JSON text of a decoded value, in the order of its keys."""
    try:
        return msgspec.json.encode(value).decode()
    except (msgspec.MsgspecError, OverflowError, ValueError, TypeError):
        return json.dumps(value, ensure_ascii=False, default=str)
