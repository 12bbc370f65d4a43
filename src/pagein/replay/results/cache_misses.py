"""The cache doctor for recordings: every call that read less than the call before had left in the cache, and why.

What is told here is about the recording and its own provider, not about any policy: the calls as they were made, with the usage that
was reported, beside what the simulator of that kind of cache says without knowing of the misses.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Final

from pagein.model.bill import Ailment, Checkup, Doctor, Miss
from pagein.providers.cache_simulator import Reason
from pagein.providers.caches.cache_doctor import CallFacts, Diagnosis, diagnose
from pagein.providers.prices.price_lookup import Prices
from pagein.providers.prices.token_prices import cost
from pagein.replay.policies.baselines import APPEND
from pagein.replay.policies.ledger import Ledger, Trace
from pagein.replay.prompt.model_calls import RecordedCall
from pagein.replay.prompt.prompt_sizes import ONE_HOUR, SizedCall
from pagein.replay.prompt.recording import BillableSession

COMPACTED: Final = "compaction"
_COMPACTED_WORDS: Final = "the host compacted: a new prompt behind the instructions"
_DROPPED_WORDS: Final = "the client took something out of the prompt, or changed it"


@dataclass(frozen=True, slots=True)
class SessionMisses:
    """What one session showed. calls: those with recorded usage; bill: what they cost, in BIT."""

    source: str
    calls: int
    bill: float
    misses: tuple[Miss, ...]


def examine_session(pure: BillableSession, prices: Prices) -> SessionMisses:
    """Examine a session. pure: the recording on the kind of cache that it ran on, its misses not given; prices: of that cache."""
    ledger = Ledger(pure, APPEND, prices, stress=False, trace=True)
    ledger.run()
    usages = [(one.call.usage, one.call.at) for one in pure.sized if one.call.usage is not None]
    paid = sum(cost(usage, prices, at) for usage, at in usages)
    misses = () if ledger.trace is None else tuple(_misses(pure, prices, ledger.trace))
    return SessionMisses(pure.head.source, len(usages), paid, misses)


@dataclass(frozen=True, slots=True)
class _HostCache:
    """What the recording's host asked its cache for."""

    prices: Prices
    long: bool

    @property
    def lasts(self) -> float:
        """Seconds after which nothing is left."""
        rules = self.prices.cache
        return (rules.long_ttl if self.long and rules.model == "breakpoints" else rules.ttl) + rules.grace

    @property
    def dearer(self) -> float:
        """What a token costs more that is not read: a write where the cache asks a fee for it, else the whole price."""
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
    # of another model, and of what the host takes out, the simulator knows nothing
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
    """Others keep the front of the prompt warm; that it was read from them does not say why our own was not."""
    return "expired" if told == "warm" and idle > lasts else told


def _cause_words(found: Diagnosis, sized: SizedCall) -> tuple[str, str]:
    """The cause and a sentence of it. A recording tells that a prompt shrank, but not which message changed."""
    if sized.opens_segment and found.cause in ("messages", "unexplained"):
        return COMPACTED, _COMPACTED_WORDS
    if found.cause == "messages":
        return found.cause, _DROPPED_WORDS
    return found.cause, found.words


def report(sessions: Iterable[SessionMisses]) -> Doctor:
    """What all sessions show together."""
    by_source: dict[str, list[SessionMisses]] = defaultdict(list)
    for one in sessions:
        by_source[one.source].append(one)
    return Doctor(
        sources={source: _checkup(some) for source, some in sorted(by_source.items())},
        misses=[miss for some in by_source.values() for one in some for miss in one.misses],
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
