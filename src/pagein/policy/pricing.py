"""The prices by which the planner decides, from those of a model and from the lifetime that its client asks the cache for."""

from pagein.policy.economics import Economics
from pagein.providers.billing import Prices


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
