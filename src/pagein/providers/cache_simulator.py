"""The cache simulator: from requests with times to read, written and fresh tokens, and their cost, without a clock.

    chains = Chains()
    simulator = CacheSimulator(prices("claude-sonnet-5-5").cache)
    served = simulator.serve(CacheRequest(at=0.0, chain=..., cumulative=..., marks=(Breakpoint(3),)))
    bill(served, prices("claude-sonnet-5-5"))

Each kind of cache is described in its module under `caches`. The price table names the kind of each model.
"""

from collections.abc import Iterable
from typing import Protocol

from pagein.providers.caches.breakpoint_cache import Breakpoints
from pagein.providers.caches.cache_rules import CacheRules
from pagein.providers.caches.cache_values import LONG, SHORT, Breakpoint, CacheRequest, CacheUsage, Chains, Reason
from pagein.providers.caches.prefix_cache import Anywhere
from pagein.providers.caches.unit_cache import Units
from pagein.providers.prices.price_table import KINDS
from pagein.providers.prices.token_prices import Prices, charge

__all__ = [
    "KINDS",
    "LONG",
    "SHORT",
    "Breakpoint",
    "CacheRequest",
    "CacheRules",
    "CacheSimulator",
    "CacheUsage",
    "Chains",
    "Reason",
    "bill",
    "simulate",
]


class _Model(Protocol):
    def serve(self, request: CacheRequest) -> CacheUsage: ...


class _NoCache:
    def serve(self, request: CacheRequest) -> CacheUsage:
        return CacheUsage(0.0, 0.0, 0.0, request.prompt, request.output, 0, "no_cache")


class CacheSimulator:
    """The cache of a provider, for one account or workspace and one set of rules.

    Conversations share the cache (A8) if a common `Chains` names their blocks. Serve requests in the order of their
    start. The result depends on the requests alone.
    """

    def __init__(self, rules: CacheRules) -> None:
        self.rules = rules
        self._model = _model(rules)

    def serve(self, request: CacheRequest) -> CacheUsage:
        """Serve one request and update the cache.

        Raises BadInput for breakpoints that the provider would refuse (M14, M15) or that are outside the prompt.
        """
        return self._model.serve(request)


def simulate(
    requests: Iterable[CacheRequest], rules: CacheRules, simulator: CacheSimulator | None = None
) -> list[CacheUsage]:
    """Serve requests in order, with a new or a given simulator."""
    going_on = simulator or CacheSimulator(rules)
    return [going_on.serve(request) for request in requests]


def bill(served: CacheUsage, prices: Prices, at: float | None = None) -> float:
    """The cost of a call in BIT: input and output, with price cliffs and peak hours.

    at: seconds since 1970; None for a price without peak hours.
    """
    return charge(prices, (served.fresh, served.read, served.written_5m, served.written_1h, served.output), at)


def _model(rules: CacheRules) -> _Model:
    if rules.model == "breakpoints":
        return Breakpoints(rules)
    if rules.model == "anywhere":
        return Anywhere(rules)
    if rules.model == "units":
        return Units(rules)
    return _NoCache()
