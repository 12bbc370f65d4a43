"""The cache doctor for recordings: every call that read less from the cache than the previous call had left there, with
the cause.

The report is about the recording and its own provider, not about any policy: the recorded calls with their reported
usage, compared with a simulator of the same kind of cache that knows nothing of the misses.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Final

from pagein.model.bill import Ailment, Checkup, Doctor, Miss, RecordedUsage
from pagein.providers.cache_simulator import Reason
from pagein.providers.caches.cache_doctor import CallFacts, Diagnosis, diagnose
from pagein.providers.prices.price_lookup import Prices
from pagein.providers.prices.token_prices import cost
from pagein.replay.policies.baselines import APPEND
from pagein.replay.policies.ledger import Ledger
from pagein.replay.policies.tally import Trace
from pagein.replay.prompt.billable_session import BillableSession
from pagein.replay.prompt.model_calls import RecordedCall
from pagein.replay.prompt.prompt_sizes import ONE_HOUR, SizedCall
from pagein.replay.results.recorded_usage import session_usage, sum_of

COMPACTED: Final = "compaction"
_COMPACTED_WORDS: Final = "the host compacted: a new prompt behind the instructions"
_DROPPED_WORDS: Final = "the client took something out of the prompt, or changed it"


@dataclass(frozen=True, slots=True)
class SessionMisses:
    """The cache misses of a session. calls: number of calls with recorded usage. bill: their cost, BIT.
    usage: the recorded usage.
    """

    source: str
    calls: int
    bill: float
    misses: tuple[Miss, ...]
    usage: RecordedUsage


def examine_session(pure: BillableSession, prices: Prices, charged: Prices | None = None) -> SessionMisses:
    """Examine a session. pure: the recording on its own kind of cache, without its misses. prices: prices of this
    cache. charged: the prices that the recorded usage is charged by; those of the cache if omitted.
    """
    ledger = Ledger(pure, APPEND, prices, stress=False, trace=True)
    ledger.run()
    usages = [(one.call.usage, one.call.at) for one in pure.sized if one.call.usage is not None]
    paid = sum(cost(usage, prices, at) for usage, at in usages)
    misses = () if ledger.trace is None else tuple(_misses(pure, prices, ledger.trace))
    usage = session_usage(pure, misses, prices.cache, charged or prices)
    return SessionMisses(pure.head.source, len(usages), paid, misses, usage)


@dataclass(frozen=True, slots=True)
class _HostCache:
    """The cache as requested by the recording's host."""

    prices: Prices
    long: bool

    @property
    def lasts(self) -> float:
        """Seconds until an entry has expired."""
        rules = self.prices.cache
        return (rules.long_ttl if self.long and rules.model == "breakpoints" else rules.ttl) + rules.grace

    @property
    def dearer(self) -> float:
        """Extra price of a token missed by the cache: of a write if the cache charges for writes, else of a fresh
        token.
        """
        again = self.prices.write_1h if self.long else self.prices.write_5m
        return max(0.0, (again if self.prices.cache.model == "breakpoints" else 1.0) - self.prices.read)


def _misses(pure: BillableSession, prices: Prices, trace: Trace) -> Iterator[Miss]:
    before: RecordedCall | None = None
    lease = _HostCache(prices, pure.ttl == ONE_HOUR)
    for number, sized in enumerate(pure.sized):
        earlier, before = before, sized.call
        if earlier is None or earlier.usage is None or sized.call.usage is None:
            continue
        facts = _facts(sized, earlier, lease, trace, number)
        found = diagnose(facts)
        if found.cause in ("none", "first") or facts.expected is None:
            continue
        missed = max(0.0, min(facts.expected, facts.prompt) - facts.read)
        if not missed:
            continue
        cause, words = _cause_words(found, sized)
        yield Miss(
            file=pure.head.file,
            id=pure.head.id,
            source=pure.head.source,
            call=number,
            at=round(sized.call.at - pure.sized[0].call.at, 1),
            idle=round(sized.call.at - earlier.at, 1),
            cause=cause,
            who=found.who,
            words=words,
            prompt=round(facts.prompt),
            read=round(facts.read),
            expected=round(facts.expected),
            predicted=round(trace.read[number]),
            missed=round(missed),
            cost=round(lease.dearer * missed, 1),
        )


def _facts(sized: SizedCall, earlier: RecordedCall, lease: _HostCache, trace: Trace, number: int) -> CallFacts:
    call = sized.call
    usage, held = call.usage, earlier.usage
    new = call.blocks[1] - call.blocks[0]
    read = float(usage.read) if usage is not None else 0.0
    is_other, is_changed = earlier.model != call.model, sized.opens_segment or sized.dropped
    # the simulator knows nothing of another model or of removals by the host
    predicted = min(read, trace.read[number]) if is_other or is_changed else trace.read[number]
    return CallFacts(
        prompt=float(usage.prompt) if usage is not None else 0.0,
        read=read,
        expected=float(held.prompt) if held is not None else None,
        predicted=predicted,
        reason=_reason(trace.reasons[number], call.at - earlier.at, lease.lasts),
        rules=lease.prices.cache,
        changed=("model",) if is_other else (),
        place=0 if is_changed else None,
        idle=call.at - earlier.at,
        blocks=new + bool(sized.hidden),
    )


def _reason(told: Reason, idle: float, lasts: float) -> Reason:
    """Return the reason, with an expired entry instead of a warm one.

    Other sessions keep the prompt prefix warm; a read from their entry does not explain a miss of our own.
    """
    return "expired" if told == "warm" and idle > lasts else told


def _cause_words(found: Diagnosis, sized: SizedCall) -> tuple[str, str]:
    """Return the cause and a sentence about the cause. A recording shows a shrunk prompt, but not the changed message."""
    if sized.opens_segment and found.cause in ("messages", "unexplained"):
        return COMPACTED, _COMPACTED_WORDS
    if found.cause == "messages":
        return found.cause, _DROPPED_WORDS
    return found.cause, found.words


def report(sessions: Iterable[SessionMisses]) -> Doctor:
    """Return the report on all sessions together."""
    by_source: dict[str, list[SessionMisses]] = defaultdict(list)
    usages: list[RecordedUsage] = []
    for one in sessions:
        by_source[one.source].append(one)
        usages.append(one.usage)
    return Doctor(
        sources={source: _checkup(some) for source, some in sorted(by_source.items())},
        misses=[miss for some in by_source.values() for one in some for miss in one.misses],
        usage=sum_of(usages),
    )


def _checkup(some: list[SessionMisses]) -> Checkup:
    paid = sum(one.bill for one in some)
    causes: dict[str, list[Miss]] = defaultdict(list)
    for one in some:
        for miss in one.misses:
            causes[miss["cause"]].append(miss)
    ailments = [
        Ailment(
            cause=cause,
            words=misses[0]["words"],
            calls=len(misses),
            missed=sum(miss["missed"] for miss in misses),
            cost=round(sum(miss["cost"] for miss in misses), 1),
            share=round(sum(miss["cost"] for miss in misses) / paid, 4) if paid else 0.0,
        )
        for cause, misses in causes.items()
    ]
    return Checkup(
        calls=sum(one.calls for one in some),
        bill=round(paid, 1),
        ailments=sorted(ailments, key=lambda one: -one["cost"]),
    )
