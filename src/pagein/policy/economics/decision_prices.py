"""Prices for eviction decisions, from the model's price table and the client's cache TTL."""

from dataclasses import replace
from math import inf

from pagein.policy.economics.rewrite_cost import Economics
from pagein.providers.prices.token_prices import Prices


def economics_of(prices: Prices, *, long: bool = False) -> Economics:
    """Return the cost of a rewrite and of carrying tokens at these prices.

    long: whether the client's cache breakpoints ask for the long TTL.
    """
    rules = prices.cache
    hit = 0.0 if rules.model == "none" else rules.hit_probability
    read = hit * prices.read + (1.0 - hit)  # without a guaranteed cache hit the full price is due now and then
    if rules.model == "breakpoints":
        write, lasts = (prices.write_1h, rules.long_ttl) if long else (prices.write_5m, rules.ttl)
    else:
        write, lasts = 1.0, rules.ttl
    keeps_front = rules.model != "units"
    return Economics(
        read,
        write,
        prices.output,
        lasts + rules.grace,
        keeps_front=keeps_front,
        peak=prices.peak,
        cliff=prices.cliff,
        least=rules.min_prefix,
        at_marks=rules.model == "breakpoints",
    )


def waits_for_marks(prices: Prices) -> bool:
    """Return whether this model's cache stores nothing of a request without cache breakpoints."""
    return prices.cache.model == "breakpoints" and prices.cache.implicit_eligible == "none"


def economics_without_cache(cached: Economics, *, held: bool, front: bool = False) -> Economics:
    """Return the prices of a call without any cached message.

    held: whether the cache may hold a prompt that the client goes back to.
    front: whether the cache holds the prompt prefix.
    """
    lost = cached.write - cached.read if held else 0.0
    return replace(
        cached,
        read=1.0,
        write=1.0,
        lifetime=inf,
        least=0,
        at_marks=False,
        uncached=lost,
        front=(cached.read, cached.write) if front else None,
    )
