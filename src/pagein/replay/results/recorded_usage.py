"""What recorded calls cost by the usage that the provider reported: parts of the bill, cache lifetimes, long windows.

Nothing here is replayed. The cost under the other cache lifetime is computed from the recorded calls: after a pause longer than
that lifetime, reads would have been writes; after a pause shorter than it, writes of expired tokens would have been reads.
"""

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Final, TypeAlias

from pagein.model.bill import Miss, RecordedUsage, UsageLine
from pagein.model.messages import Usage
from pagein.providers.caches.cache_rules import CacheRules
from pagein.providers.prices.token_prices import Prices, cost, factors
from pagein.replay.prompt.billable_session import BillableSession

WINDOWS: Final = (200_000, 400_000)
"""Sizes that an agent can be told to compact at, tokens."""
_MINUTE: Final = 60.0
_EXPIRED: Final = "expired"
Lines: TypeAlias = dict[str, UsageLine]


@dataclass(frozen=True, slots=True)
class _UsedCall:
    """A call with its usage. number: of the call in the session. gap: seconds since the call before; 0 for the first."""

    number: int
    usage: Usage
    at: float
    gap: float


@dataclass(slots=True)
class _LongWrite:
    """Tokens that a call wrote to the cache for an hour.

    start: their place in the prompt, tokens. is_used: whether a call read them after a pause that five minutes do not
    bridge.
    """

    start: int
    tokens: int
    is_used: bool = False


def session_usage(pure: BillableSession, misses: Sequence[Miss], rules: CacheRules, prices: Prices) -> RecordedUsage:
    """Return the recorded usage of a session.

    pure: the recording on its own kind of cache. misses: its cache misses. rules: of this cache. prices: to charge by.
    """
    used = list(_used_calls(pure))

    def line(counts: Iterable[tuple[float, float]]) -> UsageLine:
        """Return the line of tokens and their costs in BIT, a pair for each call."""
        some = [(tokens, paid) for tokens, paid in counts if tokens or paid]
        paid = sum(one for _, one in some)
        return UsageLine(
            cost=round(paid, 1), usd=prices.usd(paid), calls=len(some), tokens=round(sum(tokens for tokens, _ in some))
        )

    parts = [_parts(one, prices) for one in used]
    by_cause: dict[str, list[tuple[float, float]]] = defaultdict(list)
    for miss in misses:
        by_cause[miss["cause"]].append((miss["missed"], _extra(miss, pure, rules, prices)))
    lasts = _Lifetimes(pure, {one["call"]: one for one in misses}, rules, prices)
    has_choice = rules.model == "breakpoints" and pure.calls.timed and any(one.usage.written for one in used)
    return RecordedUsage(
        whole=line((one.usage.prompt + one.usage.output, cost(one.usage, prices, one.at)) for one in used),
        parts={name: line(one[name] for one in parts) for name in ("read", "written", "fresh", "output")},
        again={cause: line(some) for cause, some in by_cause.items()},
        above={str(size): line(_beyond(one, size, prices) for one in used) for size in WINDOWS},
        lifetimes={name: line(lasts.paid(used, name)) for name in ("recorded", "5m", "1h")} if has_choice else {},
        long_writes={name: line(some) for name, some in lasts.long_writes(used).items()} if has_choice else {},
    )


def sum_of(usages: Sequence[RecordedUsage]) -> RecordedUsage:
    """Return the recorded usage of several sessions together."""

    def merged(part: Callable[[RecordedUsage], Lines]) -> Lines:
        names = dict.fromkeys(name for one in usages for name in part(one))
        return {name: _sum_lines([part(one)[name] for one in usages if name in part(one)]) for name in names}

    return RecordedUsage(
        whole=_sum_lines([one["whole"] for one in usages]),
        parts=merged(lambda one: one["parts"]),
        again=merged(lambda one: one["again"]),
        above=merged(lambda one: one["above"]),
        lifetimes=merged(lambda one: one["lifetimes"]),
        long_writes=merged(lambda one: one["long_writes"]),
    )


def _sum_lines(lines: Sequence[UsageLine]) -> UsageLine:
    usd = [one["usd"] for one in lines]
    return UsageLine(
        cost=round(sum(one["cost"] for one in lines), 1),
        usd=None if any(one is None for one in usd) else sum(one or 0.0 for one in usd),
        calls=sum(one["calls"] for one in lines),
        tokens=sum(one["tokens"] for one in lines),
    )


def _used_calls(pure: BillableSession) -> Iterator[_UsedCall]:
    before: float | None = None
    for number, sized in enumerate(pure.sized):
        at = sized.call.at
        if sized.call.usage is not None:
            yield _UsedCall(number, sized.call.usage, at, 0.0 if before is None else at - before)
        before = at


def _parts(one: _UsedCall, prices: Prices) -> dict[str, tuple[float, float]]:
    usage = one.usage
    into, out = factors(prices, usage.prompt, one.at)
    short = usage.written - usage.written_1h
    return {
        "read": (usage.read, into * prices.read * usage.read),
        "written": (usage.written, into * (prices.write_5m * short + prices.write_1h * usage.written_1h)),
        "fresh": (usage.fresh, into * usage.fresh),
        "output": (usage.output, out * prices.output * usage.output),
    }


def _extra(miss: Miss, pure: BillableSession, rules: CacheRules, prices: Prices) -> float:
    """Return what the missed tokens cost above the price of reading them, BIT."""
    call = pure.sized[miss["call"]].call
    usage = call.usage or Usage()
    again = 1.0
    if rules.model == "breakpoints":
        again = prices.write_1h if 2 * usage.written_1h > usage.written else prices.write_5m
    return factors(prices, usage.prompt, call.at)[0] * max(0.0, again - prices.read) * miss["missed"]


def _beyond(one: _UsedCall, size: int, prices: Prices) -> tuple[float, float]:
    """Return the tokens that a call read beyond a window of this size, and their cost."""
    tokens = max(0, min(one.usage.read, one.usage.prompt - size))
    return tokens, factors(prices, one.usage.prompt, one.at)[0] * prices.read * tokens


@dataclass(frozen=True, slots=True)
class _Lifetimes:
    """The recorded calls under one cache lifetime or the other. misses: by number of the call."""

    pure: BillableSession
    misses: dict[int, Miss]
    rules: CacheRules
    prices: Prices

    def paid(self, used: Sequence[_UsedCall], name: str) -> Iterator[tuple[float, float]]:
        """Yield prompt and output tokens, and cost, of each call under a lifetime."""
        was_long = False
        for one in used:
            usage = {"5m": self._short, "1h": self._long}.get(name, lambda call, _: call.usage)(one, was_long)
            yield usage.prompt + usage.output, cost(usage, self.prices, one.at)
            if one.usage.written:
                was_long = 2 * one.usage.written_1h > one.usage.written

    def long_writes(self, used: Sequence[_UsedCall]) -> dict[str, list[tuple[float, float]]]:
        """Return the writes for an hour, a pair of tokens and cost for each."""
        held: list[_LongWrite] = []
        every: list[_LongWrite] = []
        followed: list[tuple[float, float]] = []
        soon: list[tuple[float, float]] = []
        for place, one in enumerate(used):
            held = [write for write in held if write.start < one.usage.read]
            for write in held:
                write.is_used |= self._needs_hour(one.gap)
            wrote = _LongWrite(one.usage.read, one.usage.written_1h)
            held.append(wrote)
            if wrote.tokens:
                every.append(wrote)
                after = used[place + 1].gap if place + 1 < len(used) else None
                followed += [(wrote.tokens, 0.0)] if after is not None else []
                soon += [(wrote.tokens, 0.0)] if after is not None and after <= _MINUTE else []
        premium = self.prices.write_1h - self.prices.write_5m
        return {
            "all": [(one.tokens, self.prices.write_1h * one.tokens) for one in every],
            "unused": [(one.tokens, premium * one.tokens) for one in every if not one.is_used],
            "followed": followed,
            "within_minute": soon,
        }

    def _short(self, one: _UsedCall, was_long: bool) -> Usage:  # noqa: FBT001 -- called by name of the lifetime
        """Return the usage with entries of five minutes. Other sessions keep the beginning of the prompt warm."""
        usage = one.usage
        lost = round(max(0.0, usage.read - self.pure.cold_read)) if was_long and self._needs_hour(one.gap) else 0
        return replace(usage, read=usage.read - lost, written=usage.written + lost, written_1h=0)

    def _long(self, one: _UsedCall, was_long: bool) -> Usage:  # noqa: FBT001 -- called by name of the lifetime
        """Return the usage with entries of an hour."""
        usage, miss = one.usage, self.misses.get(one.number)
        found = 0
        if miss is not None and miss["cause"] == _EXPIRED and not was_long and self._needs_hour(one.gap):
            found = min(miss["missed"], usage.written)
        kept = usage.written - found
        return replace(usage, read=usage.read + found, written=kept, written_1h=kept)

    def _needs_hour(self, gap: float) -> bool:
        """Return whether an entry of an hour bridges a pause, and one of five minutes does not."""
        grace = self.rules.grace
        return self.rules.ttl + grace < gap <= self.rules.long_ttl + grace
