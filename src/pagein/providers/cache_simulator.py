"""The cache simulator: given requests with times, what is read, written and fresh, and what that costs. No clock.

    chains = Chains()
    simulator = CacheSimulator(prices("claude-sonnet-5-5").cache)
    served = simulator.serve(CacheRequest(at=0.0, chain=..., cumulative=..., marks=(Mark(3),)))
    bill(served, prices("claude-sonnet-5-5"))

How each kind of cache works is told by its module under `caches`; which kind a model has, by the price table.
"""

from collections.abc import Iterable
from typing import Protocol

from pagein.providers.caches.breakpoint_cache import Breakpoints
from pagein.providers.caches.cache_rules import KINDS, CacheRules
from pagein.providers.caches.cache_values import LONG, SHORT, Breakpoint, CacheRequest, CacheUsage, Chains, Reason
from pagein.providers.caches.prefix_cache import Anywhere
from pagein.providers.caches.unit_cache import Units
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
    """One provider cache: one per account or workspace and rules. Conversations share it (A8), if one `Chains` names them.

    Serve requests in the order of their start. What it does is decided by the requests alone.
    """

    def __init__(self, rules: CacheRules) -> None:
        self.rules = rules
        self._model = _model(rules)

    def serve(self, request: CacheRequest) -> CacheUsage:
        """Serve one request and remember what it leaves in the cache.

        Raises BadInput for marks that the provider would refuse (M14, M15) or that stand outside the prompt.
        """
        return self._model.serve(request)


def simulate(
    requests: Iterable[CacheRequest], rules: CacheRules, simulator: CacheSimulator | None = None
) -> list[CacheUsage]:
    """Serve requests in order, by a fresh simulator, or going on with one that has served others."""
    going_on = simulator or CacheSimulator(rules)
    return [going_on.serve(request) for request in requests]


def bill(served: CacheUsage, prices: Prices, at: float | None = None) -> float:
    """Cost of a call in BIT: input and output, with price cliffs and, where `at` (seconds since 1970) is given, peak hours."""
    return charge(prices, (served.fresh, served.read, served.written_5m, served.written_1h, served.output), at)


def _model(rules: CacheRules) -> _Model:
    if rules.model == "breakpoints":
        return Breakpoints(rules)
    if rules.model == "anywhere":
        return Anywhere(rules)
    if rules.model == "units":
        return Units(rules)
    return _NoCache()
