"""The cache of DeepSeek V4: a hit matches a whole stored unit.

A unit ends at the end of a request, at the end of its answer, and at the point where a request diverged from an earlier
one.
So of three requests that share A and nothing else, the third is the first to read A.
"""

from bisect import bisect_left, bisect_right

from pagein.providers.caches.cache_rules import CacheRules
from pagein.providers.caches.cache_values import CacheRequest, CacheUsage, Reason


class Units:
    """The state of one unit cache. Serve requests in the order of their start."""

    def __init__(self, rules: CacheRules) -> None:
        self._rules = rules
        self._lasts = rules.ttl + rules.grace
        self._seen: dict[int, float] = {}  # id of the prefix -> last use
        self._units: dict[int, tuple[float, float]] = {}  # id of the prefix -> last use, usable from

    def serve(self, request: CacheRequest) -> CacheUsage:
        """Serve one request and store the units."""
        total = request.prompt
        common = self._common(request)
        hit, reason = self._find(request, common)
        read = request.cumulative[hit - 1] if hit else 0.0
        if self._rules.interval and common:
            read = max(read, request.cumulative[common - 1] // self._rules.interval * self._rules.interval)
        if read and read < self._rules.min_prefix:
            read, reason = 0.0, "below_minimum"
        if request.warm > read:
            read, reason = min(request.warm, total), "warm"
        if request.read_cap is not None and request.read_cap < read:
            read, reason = max(request.read_cap, 0.0), "capped"
        self._remember(request, common, hit)
        return CacheUsage(read, 0.0, 0.0, total - read, request.output, bisect_right(request.cumulative, read), reason)

    def _common(self, request: CacheRequest) -> int:
        """Number of blocks shared with a stored earlier request. A prompt uses every prefix at once, hence bisection."""
        at, seen = request.at, self._seen
        return bisect_left(request.chain, 1, key=lambda name: name not in seen or at - seen[name] > self._lasts)

    def _find(self, request: CacheRequest, common: int) -> tuple[int, Reason]:
        """Position of the longest live unit, and the reason if no unit is found."""
        at = request.at
        reason: Reason = "not_found"
        for position in range(common, 0, -1):
            unit = self._units.get(request.chain[position - 1])
            if unit is None:
                continue
            used, usable_from = unit
            if at - used > self._lasts:
                reason = "expired"
            elif usable_from > at:
                reason = "unanswered"
            else:
                return position, "hit"
        return 0, reason

    def _remember(self, request: CacheRequest, common: int, hit: int) -> None:
        chain, at = request.chain, request.at
        self._seen.update(dict.fromkeys(chain, at))
        if hit and self._rules.refresh_on_read:
            self._units[chain[hit - 1]] = (at, self._units[chain[hit - 1]][1])
        if request.answer:
            self._seen[request.answer] = at
        for name in {chain[common - 1] if common else 0, chain[-1] if chain else 0, request.answer} - {0}:
            self._units[name] = self._renew(name, request)

    def _renew(self, name: int, request: CacheRequest) -> tuple[float, float]:
        used, usable_from = self._units.get(name, (float("-inf"), 0.0))
        if request.at - used <= self._lasts:
            return max(used, request.at), min(usable_from, request.usable_from)
        return request.at, request.usable_from
