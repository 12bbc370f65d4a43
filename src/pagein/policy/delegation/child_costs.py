"""The cost of calls to child models: before a call as an upper bound, after it from the reported usage.

A model without a price has no cost, which is not a cost of 0: it is counted in tokens alone.
"""

from dataclasses import dataclass
from typing import Final

from pagein.model.messages import Usage
from pagein.providers.prices.price_lookup import newest_prices
from pagein.providers.prices.token_prices import charge, cost

OVERHEAD: Final = 1000
"""Tokens of a call beside its content: system prompt and tools."""
UNKNOWN_WINDOW: Final = 128_000
"""Window that is taken for models without a row in the price tables, in tokens."""


@dataclass(frozen=True, slots=True)
class CallCost:
    """What some calls cost, or may cost.

    calls: number of children.
    usd: dollars of the priced calls; None if none of them has a price.
    prompt, output: tokens of all calls.
    unpriced: the part of them on models without a price.
    """

    calls: int = 0
    usd: float | None = None
    prompt: int = 0
    output: int = 0
    unpriced: int = 0

    def __add__(self, other: "CallCost") -> "CallCost":
        """Return the cost of both."""
        known = [one.usd for one in (self, other) if one.usd is not None]
        return CallCost(
            self.calls + other.calls,
            sum(known) if known else None,
            self.prompt + other.prompt,
            self.output + other.output,
            self.unpriced + other.unpriced,
        )

    @property
    def tokens(self) -> int:
        """Tokens of prompt and output."""
        return self.prompt + self.output

    @property
    def says(self) -> str:
        """Return the cost in words, an unknown cost as unknown."""
        told = [] if self.usd is None else [f"${self.usd:.4f}"]
        if self.unpriced:
            told.append(f"cost unknown for {self.unpriced:,} tokens of a model without a price")
        return " and ".join(told) or "$0.0000"


NOTHING: Final = CallCost()


def highest_cost(model: str, prompt_tokens: int, output_tokens: int, calls: int = 0) -> CallCost:
    """Return the maximum cost of a call: no cache read, a full cache write, and the maximum output."""
    prompt = prompt_tokens + OVERHEAD
    prices = newest_prices(model)
    if prices is None or prices.input_usd is None:
        return CallCost(calls, None, prompt, output_tokens, prompt + output_tokens)
    dearest = charge(prices, (0, 0, prompt, 0, output_tokens)), charge(prices, (prompt, 0, 0, 0, output_tokens))
    return CallCost(calls, prices.usd(max(dearest)), prompt, output_tokens)


def usage_cost(model: str, usage: Usage) -> CallCost:
    """Return what a call cost outside peak hours."""
    prices = newest_prices(model)
    if prices is None or prices.input_usd is None:
        return CallCost(0, None, usage.prompt, usage.output, usage.prompt + usage.output)
    return CallCost(0, prices.usd(cost(usage, prices)), usage.prompt, usage.output)


def window_of(model: str) -> int:
    """Return the tokens that a prompt of a model may have at its usual price, as far as the price tables know."""
    prices = newest_prices(model)
    if prices is None:
        return UNKNOWN_WINDOW
    return prices.window if prices.cliff is None else min(prices.window, prices.cliff.above)
