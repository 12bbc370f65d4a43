"""Tolerant access to the fields of a decoded line (see `pagein.model.fields`), with times and JSON text for recordings."""

import json
import math
import re
from datetime import UTC, datetime

import msgspec

from pagein.model.fields import Row, count, lines_of, number, object_at, objects, sequence, text

__all__ = ["Row", "count", "json_text", "lines_of", "number", "object_at", "objects", "seconds", "sequence", "text"]

_FIRST_MILLISECONDS = 1e11  # in seconds the year 5138, in milliseconds 1973: no recording is from either
_FIRST_OF_NEXT = 1e3  # so microseconds begin at 1e14, nanoseconds at 1e17
_EPOCH = re.compile(r"\d{9,19}(?:\.\d+)?")


def seconds(value: object) -> float | None:
    """Return a time in seconds since 1970.

    value: a time as hosts write it: ISO 8601, or seconds, milliseconds, microseconds or nanoseconds since 1970.
    """
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
    """Return the JSON text of a decoded value, in the order of its keys."""
    try:
        return msgspec.json.encode(value).decode()
    except (msgspec.MsgspecError, OverflowError, ValueError, TypeError):
        return json.dumps(value, ensure_ascii=False, default=str)
