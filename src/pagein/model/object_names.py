"""Ids of the objects made from journals. The same journal gives the same ids, also after the objects were dropped."""

import hashlib
import re
from typing import Final

from pagein.model.derived_versions import FOLLOWING
from pagein.model.identifiers import RANDOM_BYTES, uuid7

_LONGEST_CALL: Final = 400
_RANDOM: Final = re.compile(r"(?=[\w-]*?[A-Za-z])(?=[\w-]*?[0-9])[\w-]*[A-Za-z0-9]{12}[\w-]*")
_TIME_BYTES: Final = 6
_LAST_MILLISECOND: Final = (1 << 48) - 1


def object_name(kind: str, *key: str, at: float | None) -> str:
    """Return the id of an object: a UUIDv7 whose random digits are a hash of kind and key.

    at: time of the first entry about it, seconds since 1970. None for an object that several sessions may meet first, such as a
        file: digits of the hash take the place of the time.
    """
    digest = _digest(kind, *key)
    time = int.from_bytes(digest[-_TIME_BYTES:], "big") if at is None else int(at * 1000)
    return uuid7(min(max(0, time), _LAST_MILLISECOND), digest[:RANDOM_BYTES])


def is_random(call_id: str) -> bool:
    """Return whether a provider draws ids of this form at random, so that an id is never used twice."""
    return _RANDOM.fullmatch(call_id) is not None


def second_call_name(call_id: str, session: str, entry: str) -> str:
    """Return the id of a tool call whose own id another call has already."""
    return f"{call_id[:_LONGEST_CALL]}~{_digest('toolcall', session, entry, call_id).hex()[:8]}"


def request_name(*parts: str) -> str:
    """Return the name of a write, the same for the same parts."""
    return f"{FOLLOWING}{_digest(*parts).hex()[:32]}"


def _digest(*parts: str) -> bytes:
    # lengths in front, so that two lists of parts never give the same text
    told = "".join(f"{len(part)}:{part}" for part in parts)
    return hashlib.sha256(told.encode("utf-8", "surrogatepass")).digest()
