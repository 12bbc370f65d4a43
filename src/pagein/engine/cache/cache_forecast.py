"""Predict the cache reads of each request of a session, and explain the difference to the reported reads.

Called after a request was answered, outside the request path. There is one simulator for each session: entries of other
sessions make a call read more than predicted, which needs no explanation.

Token estimates are off by up to a third for prompts with much JSON. So sizes come from the provider where an earlier
answer reported them: of a whole prompt, and of the part before its last breakpoint. Between two known sizes the
estimate only interpolates.
"""

from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from threading import Lock
from typing import Final

from pagein.engine.cache.cache_inputs import AnsweredRequest, changed_parts
from pagein.engine.cache.prompt_layout import Laid, Layouts, SentRequest
from pagein.engine.intake.message_chain import alike
from pagein.errors import BadSetting, CallerError
from pagein.model.cache_notes import CacheMissNote
from pagein.model.messages import Usage
from pagein.providers.cache_simulator import CacheRequest, CacheSimulator, CacheUsage
from pagein.providers.caches.cache_doctor import CallFacts, Diagnosis, diagnose
from pagein.providers.prices.price_lookup import prices
from pagein.providers.prices.token_prices import Prices
from pagein.providers.validity import Api
from pagein.providers.wire.formats import format_named

MOST_KEPT: Final = 64 << 20
"""Limit of the remembered requests of a session, in bytes; at least one is remembered."""
_BRANCHES: Final = 16
_SIZES: Final = 4096
"""Limit of prefixes with a reported size; the newest stay."""
_MOVED: Final = 3
_THINKING: Final = (b'"thinking"', b'"redacted_thinking"')


@dataclass(frozen=True, slots=True)
class Forecast:
    """The predicted and the reported cache use of a call. Tokens as the provider counts; None if unknown.

    expected: tokens that the previous request on the branch left in the cache.
    predicted: tokens that the simulator predicts to be read.
    diagnosis: explanation of a difference.
    """

    expected: float | None
    predicted: float
    diagnosis: Diagnosis

    def notes(self, told: str) -> tuple[CacheMissNote, ...]:
        """The journal notes about this request: a cache miss, if there was one.

        told: the provider's own reason for a miss; "" if it gave none.
        """
        found = self.diagnosis
        if found.is_miss:
            return (CacheMissNote(found.cause, found.who, found.shortfall, found.words, told),)
        return (CacheMissNote("", "", 0, told=told),) if told else ()


@dataclass(frozen=True, slots=True)
class _AnsweredRequest:
    """An answered request, for comparison with later requests on the branch.

    laid: its prompt layout.
    end: number of blocks in the cache.
    held: tokens in the cache.
    """

    laid: Laid
    end: int
    held: float

    @property
    def sent(self) -> SentRequest:
        return self.laid.sent


class Forecasts:
    """Predictions for the calls of a session. Thread-safe, with calls in about the order of the requests."""

    def __init__(self, most: int = MOST_KEPT) -> None:
        self._most = most
        self._lock = Lock()
        self._layouts = Layouts()
        self._simulators: dict[str, CacheSimulator] = {}
        self._asked: list[_AnsweredRequest] = []
        self._sizes: dict[int, float] = {}  # by name of the prefix

    @property
    def size(self) -> int:
        """Bytes of the remembered requests."""
        return sum(one.laid.size for one in self._asked)

    def take_usage(self, sent: SentRequest, usage: Usage, extended: AnsweredRequest | None = None) -> Forecast:
        """Record the usage of a call and return its forecast. Costs as much as differs from the request before on the
        branch.

        extended: the request before from the journal, if the call only extends it; used where another process sent it.
        """
        with self._lock:
            return self._record_usage(sent, usage, extended)

    def _record_usage(self, sent: SentRequest, usage: Usage, extended: AnsweredRequest | None) -> Forecast:
        price = _prices(sent.head.model, sent.api)
        before = self._before(sent)
        laid = self._layouts.laid(sent, before.laid if before is not None else None)
        request = laid.cache_request()
        served = self._simulate(request, price)
        end = _last(request, price)
        held = self._learn_sizes(request, end, usage, price)
        asked = _AnsweredRequest(laid, end, held)
        self._keep(asked, before)
        proven, predicted = self._predict(request, served, price.cache.min_prefix)
        if before is None and extended is not None:
            facts = _journaled_facts(extended, sent, usage, price)
            return Forecast(facts.expected, facts.predicted, diagnose(facts))
        facts = replace(_facts(before, asked, served, usage, predicted), proven=proven)
        return Forecast(facts.expected, facts.predicted, diagnose(facts))

    def _simulate(self, request: CacheRequest, price: Prices) -> CacheUsage:
        simulator = self._simulators.get(price.name)
        if simulator is None:
            simulator = self._simulators[price.name] = CacheSimulator(price.cache)
        try:
            return simulator.serve(request)
        except CallerError:  # refused breakpoints: the provider reads nothing and reports the error itself
            return CacheUsage(0.0, 0.0, 0.0, request.prompt, 0.0, 0, "no_marks")

    def _learn_sizes(self, request: CacheRequest, end: int, usage: Usage, price: Prices) -> float:
        """Learn prompt sizes from an answer. Returns the tokens that the cache now holds of the request."""
        if not request.chain or not usage.prompt:
            return 0.0
        by_marks = price.cache.model == "breakpoints" and price.cache.strict_marks
        held = float(usage.read + usage.written) if by_marks else _cached_share(usage, price)
        if by_marks and held and end:
            self._sizes[request.chain[end - 1]] = held
        self._sizes[request.chain[-1]] = float(usage.prompt)
        while len(self._sizes) > _SIZES:
            del self._sizes[next(iter(self._sizes))]
        return held

    def _predict(self, request: CacheRequest, served: CacheUsage, least: float) -> tuple[float, float]:
        """Predict cache reads in the provider's tokens: the proven part, and the expected total.

        least: tokens of the smallest prefix that the cache holds; the simulator knows only estimates of sizes.
        """
        if not served.read or not request.prompt:
            return 0.0, 0.0
        below = next((end for end in range(served.hit, 0, -1) if request.chain[end - 1] in self._sizes), 0)
        above = next(
            (end for end in range(max(served.hit, 1), len(request.chain)) if request.chain[end - 1] in self._sizes),
            len(request.chain),
        )
        low, high = (self._sizes.get(request.chain[end - 1], 0.0) if end else 0.0 for end in (below, above))
        first, last = (request.cumulative[end - 1] if end else 0.0 for end in (below, above))
        share = (served.read - first) / (last - first) if last > first else 0.0
        total = low + (max(high, low) - low) * min(1.0, max(0.0, share))
        return (low, total) if total >= least else (0.0, 0.0)

    def _before(self, now: SentRequest) -> _AnsweredRequest | None:
        """Return the request before on the branch: the newest with most shared messages."""
        found = max(self._asked, key=lambda one: _shared_names(one.sent.theirs, now.theirs), default=None)
        return found if found is not None and _shared_names(found.sent.theirs, now.theirs) else None

    def _keep(self, asked: _AnsweredRequest, before: _AnsweredRequest | None) -> None:
        """Remember a request in place of the request before it on its branch."""
        theirs = () if before is None else before.sent.theirs
        is_over = before is not None and _shared_names(theirs, asked.sent.theirs) >= len(theirs) - _MOVED
        kept = [asked, *(one for one in self._asked if one is not before or not is_over)][:_BRANCHES]
        size = sum(one.laid.size for one in kept)
        while size > self._most and len(kept) > 1:
            size -= kept.pop().laid.size
        self._asked = kept


def _facts(
    before: _AnsweredRequest | None, now: _AnsweredRequest, served: CacheUsage, usage: Usage, predicted: float
) -> CallFacts:
    rules = _prices(now.sent.head.model, now.sent.api).cache
    prompt, read = float(usage.prompt), float(usage.read)
    if before is None:
        return CallFacts(prompt, read, None, predicted, served.reason, rules)
    place = _first_changed_message(before.laid, now.laid)
    offered = (
        before.sent.fields.get("tools") != now.sent.fields.get("tools")
        and before.sent.head.tools == now.sent.head.tools
    )
    return CallFacts(
        prompt=prompt,
        read=read,
        expected=before.held,
        predicted=predicted,
        reason=served.reason,
        rules=rules,
        changed=changed_parts(before.sent.head, now.sent.head),
        place=0 if offered else place,
        by_us=offered or (place is not None and _shared_names(before.sent.theirs, now.sent.theirs) > place),
        idle=now.sent.at - before.sent.at,
        blocks=len(now.laid.chain) - before.end,
        drops_thinking=_drops_thinking(before.laid, now.laid),
    )


def _journaled_facts(before: AnsweredRequest, now: SentRequest, usage: Usage, price: Prices) -> CallFacts:
    """Return the facts of a call that extends a request of another process: its bytes are unknown, its usage is journaled."""
    by_marks = price.cache.model == "breakpoints" and price.cache.strict_marks
    lifetime = price.cache.long_ttl if before.usage.written_1h else price.cache.ttl
    idle = None if before.at is None else now.at - before.at
    return CallFacts(
        prompt=float(usage.prompt),
        read=float(usage.read),
        expected=float(before.usage.read + before.usage.written) if by_marks else _cached_share(before.usage, price),
        predicted=0.0,
        reason="expired" if idle is not None and idle > lifetime else "not_found",
        rules=price.cache,
        changed=changed_parts(before.head, now.head),
        idle=idle,
    )


def _first_changed_message(before: Laid, now: Laid) -> int | None:
    """Return the first message with other content than before."""
    ours, theirs = now.sent.items, before.sent.items
    for place in range(alike(ours, theirs), min(len(ours), len(theirs))):
        if ours[place] != theirs[place] and before.names(place) != now.names(place):
            return place
    return None


def _drops_thinking(before: Laid, now: Laid) -> bool:
    """Return whether a new turn began and the model no longer sees the thinking of the turn before."""
    end = before.reaches[-1]
    if not _prices(now.sent.head.model, now.sent.api).strips_thinking or now.reaches[-1].user <= end.blocks:
        return False
    items, place = before.sent.items, len(before.sent.items)
    while place > 0 and before.reaches[place].user == end.user:  # back to the user's last message
        place -= 1
        if any(kind in items[place] for kind in _THINKING):
            return True
    return False


def _shared_names(some: Sequence[str], others: Sequence[str]) -> int:
    """Return the number of leading names that two lists share.

    A name covers everything before it, so no equal name follows a different one.
    """
    return bisect_left(range(min(len(some), len(others))), x=True, key=lambda place: some[place] != others[place])


def _last(request: CacheRequest, price: Prices) -> int:
    """Return the number of blocks that the cache holds after the answer."""
    if price.cache.model != "breakpoints" or not price.cache.strict_marks:
        return len(request.chain)
    return max((mark.position for mark in request.marks), default=0)


def _cached_share(usage: Usage, price: Prices) -> float:
    """Return the cached tokens of a prompt in a cache without breakpoints."""
    return float(usage.prompt) if usage.prompt >= price.cache.min_prefix and price.cache.model != "none" else 0.0


@lru_cache(maxsize=256)
def _prices(model: str, api: Api) -> Prices:
    try:
        return prices(model)
    except BadSetting:
        return prices(format_named(api).cache.unpriced)
