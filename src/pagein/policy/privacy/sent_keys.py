"""Redact keys from a provider's messages: keys by their shape, and the key of the request itself.

A provider may repeat a key in its refusal, and not every key has the shape of one.
"""

from collections.abc import Collection, Iterable
from typing import Final

from pagein.policy.privacy.exclusions import keys_in

_NAMES: Final = frozenset(["authorization", "x-api-key", "api-key", "x-goog-api-key"])
_SHORTEST: Final = 4
"""Characters of a key, at least. Fewer are no secret, and stand in many words."""
_IN_ITS_PLACE: Final = "[key]"


def sent_keys(headers: Iterable[tuple[str, str]]) -> frozenset[str]:
    """Return the keys in a request's headers."""
    told = (value.split()[-1] for name, value in headers if name.lower() in _NAMES and value.strip())
    return frozenset(one for one in told if len(one) >= _SHORTEST)


def without_keys(words: str, sent: Collection[str] = ()) -> str:
    """Return a text without keys. sent: the keys of the request that the text answers."""
    for key in sorted(sent, key=len, reverse=True):
        words = words.replace(key, _IN_ITS_PLACE)
    for span in reversed(keys_in(words)):
        words = f"{words[: span.start]}{_IN_ITS_PLACE}{words[span.end :]}"
    return words
