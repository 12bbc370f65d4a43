"""Compute the keys by which a SQL store finds the references to a target. Two targets may have one key: whoever looks up verifies."""

import hashlib
from typing import Final

_DIGITS: Final = 12


def target_key(text: str) -> str:
    """Return the lookup key of a target, given its stored form."""
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def target_number(key: str) -> int:
    """Return a lookup key as a number of the table `lookup`; 0 for none."""
    return int(key[:_DIGITS] or "0", 16)
