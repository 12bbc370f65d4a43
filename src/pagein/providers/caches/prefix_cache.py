"""Caches with an entry at every position (OpenAI before GPT-5.6, Gemini implicit, vLLM).

A prompt uses every prefix at once, so the time of last use never grows with the position. Bisection finds the longest
live prefix; only the update of the times walks the prompt.
"""

import math
from bisect import bisect_left, bisect_right

from pagein.providers.caches.cache_rules import CacheRules
from pagein.providers.caches.cache_values import CacheRequest, CacheUsage, Reason


class Anywhere:
    """The state of one cache with an entry at every position. Serve requests in the order of their start."""

    def __init__(self, rules: CacheRules) -> None:
        self._rules = rules
        self._lasts = rules.ttl + rules.grace
        self._used: dict[int, float] = {}
        self._usable_from: dict[int, float] = {}

    def serve(self, request: CacheRequest) -> CacheUsage:
        """Serve one request and store each prefix."""
        total = request.prompt
        reach, reason = self._reach(request)
        read = self._countable(request.cumulative[reach - 1] if reach else 0.0, total)
        if reach and not read:
            reason = "below_minimum"
        if request.warm > read:
            read, reason = min(request.warm, total), "warm"
        if request.read_cap is not None and request.read_cap < read:
            read, reason = max(request.read_cap, 0.0), "capped"
        self._remember(request, reach)
        return CacheUsage(read, 0.0, 0.0, total - read, request.output, bisect_right(request.cumulative, read), reason)

    def _reach(self, request: CacheRequest) -> tuple[int, Reason]:
        """Position of the last block of the longest live prefix, and the reason for the end."""
        chain, at, used = request.chain, request.at, self._used

        def dead(name: int) -> bool:
            return name not in used or at - used[name] > self._lasts or self._usable_from[name] > at

        reach = bisect_left(chain, 1, key=dead)
        if reach:
            return reach, "hit"
        if not chain or chain[0] not in used:
            return 0, "not_found"
        return 0, "unanswered" if at - used[chain[0]] <= self._lasts else "expired"

    def _countable(self, reached: float, total: float) -> float:
        rules = self._rules
        usable = min(reached, total - rules.recomputed)
        whole = usable // rules.granularity * rules.granularity if rules.granularity > 1 else usable
        return whole * rules.hit_probability if whole >= rules.min_prefix else 0.0

    def _remember(self, request: CacheRequest, reach: int) -> None:
        for name in request.chain[reach:]:
            lives = request.at - self._used.get(name, -math.inf) <= self._lasts
            pending = self._usable_from.get(name, math.inf) if lives else math.inf
            self._usable_from[name] = min(pending, request.usable_from)
        self._used.update(dict.fromkeys(request.chain, request.at))
