"""Look up the prices of a request: by model, day and the cache TTL of its breakpoints."""

from collections.abc import Mapping
from datetime import UTC, date, datetime
from functools import lru_cache
from typing import Final

from pagein.engine.cache.cache_use import CacheUse
from pagein.engine.intake.message_chain import Transcript
from pagein.errors import BadSetting
from pagein.policy.economics.decision_prices import economics_of, economics_without_cache, waits_for_marks
from pagein.policy.economics.rewrite_cost import Economics
from pagein.providers.prices.price_lookup import prices
from pagein.providers.prices.token_prices import Prices

_MARK: Final = b'"cache_control"'
_LONG: Final = (b'"ttl":"1h"', b'"ttl": "1h"')
_LOOKED_AT: Final = 4  # messages at the end to search for the client's last breakpoint


def economics_for(model: str, fields: Mapping[str, bytes], script: Transcript, at: float | None) -> Economics | None:
    """Return the prices of a request.

    None for a model without a price.
    """
    day = None if at is None else datetime.fromtimestamp(at, UTC).date()
    return _economics(model, day, asks_long(fields, script)) if model else None


def prices_without_cache(model: str, at: float | None, caching: CacheUse, *, front: bool = False) -> Economics | None:
    """Return the prices of a request without breakpoints in its conversation.

    None if the cache takes part anyway.

    caching: the cache use of the branch.
    front: True if the prompt prefix has breakpoints.
    """
    found = prices_for(model, at)
    if found is None or caching.told or not waits_for_marks(found):
        return None
    held = caching.holds(at, found.cache.long_ttl + found.cache.grace)
    return economics_without_cache(economics_of(found, long=True), held=held, front=front)


def prices_for(model: str, at: float | None) -> Prices | None:
    """Return the price row of a model on a day.

    None for a model without a price.
    """
    return _prices(model, None if at is None else datetime.fromtimestamp(at, UTC).date()) if model else None


def asks_long(fields: Mapping[str, bytes], script: Transcript) -> bool:
    """Return whether the client asks the cache to keep the end of a request for an hour."""
    marked = [item.raw for item in script.items[-_LOOKED_AT:] if _MARK in item.raw]
    last = marked[-1] if marked else fields.get("cache_control", b"")
    return any(one in last for one in _LONG)


@lru_cache(maxsize=256)
def _prices(model: str, day: date | None) -> Prices | None:
    try:
        return prices(model, day)
    except BadSetting:
        return None


@lru_cache(maxsize=256)
def _economics(model: str, day: date | None, long: bool) -> Economics | None:  # noqa: FBT001 -- a cache key
    try:
        return economics_of(prices(model, day), long=long)
    except BadSetting:
        return None
