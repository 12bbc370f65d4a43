"""The prompt cache of Gemini: implicit, without breakpoints, and caches that a request names.

A hit of the implicit cache is likely, not promised: `CacheRules.hit_probability`. Its smallest prefix stands in the row
of each model, `prices/models/google.py`.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from pagein.providers.wire.wire_format import CacheForm

FORM: Final = CacheForm("generic:r=.1,w=1,cache=gemini")


@dataclass(frozen=True, slots=True)
class ExplicitCache:
    """A cache that the client makes by a request of its own, and names in later requests. pagein makes none.

    field: the field of a request that names the cache.
    holds: fields of a request that the cache may hold; then the request must not have them.
    ttl: seconds that it lives if the client names no time.
    storage_usd: dollars per million tokens and hour, by model; a model that is not named has no known price.
    """

    field: str
    holds: tuple[str, ...]
    ttl: float
    storage_usd: Mapping[str, float]


EXPLICIT: Final = ExplicitCache(
    "cachedContent",
    ("systemInstruction", "tools", "toolConfig"),
    3600.0,
    {"gemini-2.5-pro": 4.50, "gemini-3.1-flash-lite": 1.00},
)
"""S: prices, discuss.ai.google.dev and macaron.im, 2026. Gemini 4 Argon and later take no such caches."""
