"""Forgiving access to the fields of a decoded object: a field of the wrong type is a field that is not there."""

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import TypeAlias, cast

Row: TypeAlias = Mapping[str, object]

_EMPTY: Row = {}


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


def object_at(row: Row, key: str) -> Row:
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
