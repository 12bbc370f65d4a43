"""The prices by which the planner decides, from those of a model and from the lifetime that its client asks the cache for."""

from dataclasses import replace
from math import inf

from pagein.policy.economics.rewrite_cost import Economics
from pagein.providers.prices.token_prices import Prices


def economics_of(prices: Prices, *, long: bool = False) -> Economics:
    """What a rewrite costs and what carrying costs at these prices. long: whether the client's marks ask for the long lifetime."""
    rules = prices.cache
    hit = 0.0 if rules.model == "none" else rules.hit_probability
    read = hit * prices.read + (1.0 - hit)  # what is not promised to be read is paid in full now and then
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
    """Whether the cache of this model holds nothing of a request that its client did not mark."""
    return prices.cache.model == "breakpoints" and prices.cache.implicit_eligible == "none"


def economics_without_cache(cached: Economics, *, held: bool, front: bool = False) -> Economics:
    """The prices of a call of whose messages the cache holds nothing. held: whether it may hold something that the client goes back to.
    front: whether it holds what stands in front of all messages.
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
