"""Counts in usage reports of providers."""

from collections.abc import Mapping
from typing import Any, Final

_MOST: Final = 1 << 50  # a larger number is not a token count


def count_at(told: Mapping[str, Any], name: str) -> int:
    """Return the count under a name; 0 for anything but a count."""
    value = told.get(name)
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value < _MOST:
        return 0
    return int(value)
