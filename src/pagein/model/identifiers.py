"""Ids of objects: UUIDv7, ordered by creation time (RFC 9562)."""

import re
from typing import Final

from pagein.errors import BadInput, BadName

_UUID7: Final = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}")
_VERSION: Final = re.compile(r"(.+)@([0-9]{1,9})", re.DOTALL)
_LONGEST: Final = 512
RANDOM_BYTES: Final = 10
"""Number of random bytes that `uuid7` takes."""


def uuid7(milliseconds: int, random: bytes) -> str:
    """Make the id for a time (milliseconds since 1970) and random bytes.

    The first twelve random bits may hold a counter.
    """
    if not 0 <= milliseconds < 1 << 48:
        raise BadInput(f"a UUIDv7 cannot hold the time {milliseconds} ms")
    if len(random) != RANDOM_BYTES:
        raise BadInput(f"a UUIDv7 takes {RANDOM_BYTES} random bytes, not {len(random)}")
    bits = int.from_bytes(random, "big")
    head, tail = bits >> 64 & 0xFFF, bits & (1 << 62) - 1
    whole = milliseconds << 80 | 0x7 << 76 | head << 64 | 0b10 << 62 | tail
    digits = f"{whole:032x}"
    return "-".join((digits[:8], digits[8:12], digits[12:16], digits[16:20], digits[20:]))


def object_id(text: str, type_: str) -> str:
    """Return the text if it is a valid id for an object of this type: a UUIDv7, or any provider id for a tool call.

    Provider ids are stored unchanged. They must not be blank or longer than 512 characters. Raises BadName.
    """
    if type_ == "toolcall":
        if text.strip() and len(text) <= _LONGEST:
            return text
        raise BadName(f"the id of a tool call must have 1 to {_LONGEST} characters, not {len(text)}")
    if not _UUID7.fullmatch(text):
        raise BadName(f"not the id of an object: {text[:60]!r}; expected a UUIDv7 in lower case")
    return text


def version_named(text: str) -> tuple[str, int] | None:
    """The id or nickname, and the number, in the name of a version: `auth-notes@3`. None for a name without a number."""
    found = _VERSION.fullmatch(text)
    return None if found is None else (found[1], int(found[2]))
