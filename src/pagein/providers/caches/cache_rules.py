"""The behaviour of a provider's prompt cache, as data."""

from dataclasses import dataclass, replace
from typing import Literal, TypeAlias

Model: TypeAlias = Literal["breakpoints", "anywhere", "units", "none"]
Eligible: TypeAlias = Literal["last_user_or_tool", "last_user", "none"]

UNKNOWN_MINIMUM = 4096
"""Minimum prefix if the provider documents no value, in tokens: the largest known minimum."""


@dataclass(frozen=True, slots=True)
class CacheRules:
    """A kind of prompt cache with parameters. Times in seconds, sizes in tokens.

    model: `breakpoints` (entries only at breakpoints), `anywhere` (every position is an entry), `units`, or `none` (no
        cache).
    min_prefix: smallest cumulative prefix that is cached; a smaller one is silently fresh.
    ttl, long_ttl: TTL of entries written at a short (`Breakpoint.ttl` 300) and a long (3600) breakpoint.
    grace: how long an entry survives its TTL.
    max_marks: maximum number of breakpoints.
    lookback: positions checked per breakpoint, its own included; None: no look-back, entries match exactly at
        breakpoints only.
    read_breakpoints: without look-back, the number of latest breakpoints of the conversation that are checked.
    strict_marks: more than `max_marks` breakpoints, or a long one after a short one, is refused; otherwise the last
        ones count.
    ancestor_refresh: reading an entry also keeps alive the entries that it extends.
    refresh_on_read: reading keeps an entry alive at all.
    prefix_bound: an entry ends with the prefix that it extends.
    implicit_eligible: where the provider sets its automatic breakpoint.
    granularity: a hit is rounded down to a multiple of this.
    recomputed: tokens at the end of a prompt that are never read.
    hit_probability: expected share of a hit that is really read, for a provider that promises nothing.
    interval: tokens between the units inside a long input; 0: none assumed.
    """

    name: str
    model: Model
    min_prefix: int = UNKNOWN_MINIMUM
    ttl: float = 300.0
    long_ttl: float = 3600.0
    grace: float = 0.0
    max_marks: int = 4
    lookback: int | None = 20
    read_breakpoints: int = 80
    strict_marks: bool = True
    ancestor_refresh: bool = True
    refresh_on_read: bool = True
    prefix_bound: bool = False
    implicit_eligible: Eligible = "none"
    granularity: int = 1
    recomputed: int = 0
    hit_probability: float = 1.0
    interval: int = 0

    def least(self, min_prefix: int) -> "CacheRules":
        """The same rules with a different minimum prefix."""
        return replace(self, min_prefix=min_prefix)

    def unrefreshed(self) -> "CacheRules":
        """The same rules for a provider that keeps every block for its own TTL, however often it is read."""
        return replace(self, refresh_on_read=False, ancestor_refresh=False, prefix_bound=True)

    def without_hour(self) -> "CacheRules":
        """The same rules for a provider that charges for the long TTL, and keeps entries for the short one."""
        return replace(self, long_ttl=self.ttl)

    def with_ttl(self, ttl: float) -> "CacheRules":
        """The same rules with a different short TTL."""
        return replace(self, ttl=ttl)


NO_CACHE = CacheRules("none", "none", min_prefix=0)
