"""Decide how the children of an operation share the beginning of their prompts in the provider's cache.

Rules of this file
------------------
1. Children share tools, instructions and targets that stand before what differs. One schema and one order of tools per
   operation keep these bytes equal.
2. A cache takes a prefix from the model's minimum on. Below it nothing is marked, and that is told.
3. An entry can be read only when the answer that wrote it has begun (A7). Children that begin together all write it. So
   the first child goes ahead, and the others wait for its answer, if this saves at least `WORTH` of what the batch pays
   for its prompts: waiting costs the time of one child.
4. Where the provider caches by itself, nothing is marked, and waiting pays for the same reason.
"""

from dataclasses import dataclass
from typing import Final

from pagein.providers.prices.price_lookup import newest_prices
from pagein.providers.prices.token_prices import Prices

WORTH: Final = 0.05
"""Least share of the cost of all prompts for which children wait."""


@dataclass(frozen=True, slots=True)
class SharedPrefix:
    """A prefix that several prompts begin with.

    tokens: its size, from tools and instructions on. own: tokens of a prompt behind it, on the average.
    """

    tokens: int
    own: int


@dataclass(frozen=True, slots=True)
class PrefixPlan:
    """How the children of an operation are begun.

    is_marked: whether each request marks the end of the prefix. warms: whether the first child goes ahead.
    saved: expected share of the cost of all prompts, against the same prompts without a cache.
    says: the reason, for a reader. is_told: whether a user should know it: something is shared, or the prefix is too small.
    """

    is_marked: bool = False
    warms: bool = False
    saved: float = 0.0
    says: str = ""
    is_told: bool = False


def plan_prefix(model: str, prefix: SharedPrefix, children: int, concurrency: int) -> PrefixPlan:
    """Return how children share a prefix.

    model: as named by its provider. children: that are still to be asked. concurrency: how many at once.
    """
    if children < 2:  # noqa: PLR2004  one child shares with nobody
        return PrefixPlan(says="one child shares its prompt with no other")
    prices = newest_prices(model)
    if prices is None:
        return PrefixPlan(says=f"nothing is known of the cache of {model}")
    least = prices.cache.min_prefix
    if prices.cache.model == "none":
        return PrefixPlan(says=f"{model} has no cache")
    if prefix.tokens < least:
        return PrefixPlan(
            says=f"the shared prefix of about {prefix.tokens:,} tokens is below the minimum of {least:,} that {model} caches",
            is_told=True,
        )
    plain = children * (prefix.tokens + prefix.own)
    together = min(children, concurrency)
    cold = _prompt_cost(prices, prefix, children, writers=together)
    warm = _prompt_cost(prices, prefix, children, writers=1)
    if min(cold, warm) >= plain:
        return PrefixPlan(says=f"a cache of {prefix.tokens:,} shared tokens would not pay for {children} children")
    warms = together > 1 and cold - warm >= WORTH * plain
    chosen = warm if warms else cold
    saved = 1 - chosen / plain
    return PrefixPlan(
        prices.cache.model == "breakpoints",
        warms,
        saved,
        f"{children} children share about {prefix.tokens:,} tokens, which saves about {saved:.0%} of their prompts"
        + ("; the first goes ahead, so that the others read what it wrote" if warms else ""),
        is_told=True,
    )


def _prompt_cost(prices: Prices, prefix: SharedPrefix, children: int, writers: int) -> float:
    """Return the cost of every prompt in BIT, given the number of cache misses."""
    write = prices.write_5m if prices.cache.model == "breakpoints" else 1.0
    read = 1 - (1 - prices.read) * prices.cache.hit_probability
    return prefix.tokens * (write * writers + read * (children - writers)) + prefix.own * children
