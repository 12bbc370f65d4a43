"""The prompt cache of Gemini: implicit, without breakpoints, and caches that a request names.

A hit of the implicit cache is likely, not promised: `CacheRules.hit_probability`. Its smallest prefix stands in the row
of each model, `prices/models/google.py`.
"""

from dataclasses import dataclass
from typing import Final

from pagein.providers.wire.wire_format import CacheForm

FORM: Final = CacheForm("generic:r=.1,w=1,cache=gemini")


@dataclass(frozen=True, slots=True)
class ExplicitCache:
    """A cache that the client creates by a request, and names in later requests. pagein creates no such cache.

    field: the field of a request that names the cache.
    holds: fields of a request that the cache may hold; then the request must not have them.
    ttl: seconds that it lives if the client names no time.
    """

    field: str
    holds: tuple[str, ...]
    ttl: float


EXPLICIT: Final = ExplicitCache(
    "cachedContent",
    ("systemInstruction", "tools", "toolConfig"),
    3600.0,
)
"""Gemini 4 Argon and later take no such caches. What their storage costs is `Prices.storage_usd` of each model."""
