"""What a provider's cache is expected to read of each request of a session, and what to make of what it did read.

Called when a request was answered, off the way of the request. One simulator for a session: what other sessions leave in the cache
makes a call read more than expected, which needs no explanation.

How large a prompt is by estimate is off by a third where it holds much JSON. So sizes are the provider's own wherever an earlier answer told
them: of a whole prompt, and of what stood in front of its last mark. Between two of those the estimate only says where in between.
"""

from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from threading import Lock
from typing import Final

from pagein.engine.cache.prompt_layout import Laid, Layouts, SentRequest
from pagein.engine.intake.message_chain import alike
from pagein.errors import BadSetting, CallerError
from pagein.model.messages import Usage
from pagein.providers.cache_simulator import CacheRequest, CacheSimulator, CacheUsage
from pagein.providers.caches.cache_doctor import CallFacts, Diagnosis, diagnose
from pagein.providers.prices.price_lookup import prices
from pagein.providers.prices.token_prices import Prices
from pagein.providers.validity import Api

MOST_KEPT: Final = 64 << 20
"""Bytes of the requests that a session's later ones are compared with, each counted whole; one is kept in any case."""
_BRANCHES: Final = 16
_SIZES: Final = 4096
"""Prefixes whose size is remembered as the provider told it, at most; the latest stay."""
_MOVED: Final = 3
_THINKING: Final = (b'"thinking"', b'"redacted_thinking"')
_UNPRICED: Final = {
    "anthropic": "generic:",
    "openai_chat": "generic:cache=openai",
    "openai_responses": "generic:cache=openai",
}


@dataclass(frozen=True, slots=True)
class Forecast:
    """What was expected of a call and what came. Tokens as the provider counts them; None where nothing can be said."""

    expected: float | None
    predicted: float
    diagnosis: Diagnosis


@dataclass(frozen=True, slots=True)
class _AnsweredRequest:
    """A request that was answered, as later ones on its branch are compared with it. end: how many blocks the cache holds of it,
    held: tokens.
    """

    laid: Laid
    end: int
    held: float

    @property
    def sent(self) -> SentRequest:
        return self.laid.sent


class Forecasts:
    """Expectations of one session's calls. Any number of threads may ask, in about the order in which requests were sent."""

    def __init__(self, most: int = MOST_KEPT) -> None:
        self._most = most
        self._lock = Lock()
        self._layouts = Layouts()
        self._simulators: dict[str, CacheSimulator] = {}
        self._asked: list[_AnsweredRequest] = []
        self._sizes: dict[int, float] = {}  # by the prefix's name

    @property
    def size(self) -> int:
        """Bytes of the requests that are kept to compare with."""
        return sum(one.laid.size for one in self._asked)

    def take_usage(self, sent: SentRequest, usage: Usage) -> Forecast:
        """Take in what a call took, and say what that means. Costs what of the request is not as in the one before on its branch."""
        with self._lock:
            return self._answered(sent, usage)

    def _answered(self, sent: SentRequest, usage: Usage) -> Forecast:
        price = _prices(sent.head.model, sent.api)
        before = self._before(sent)
        laid = self._layouts.laid(sent, before.laid if before is not None else None)
        request = laid.cache_request()
        served = self._served(request, price)
        end = _last(request, price)
        held = self._learn_sizes(request, end, usage, price)
        asked = _AnsweredRequest(laid, end, held)
        self._keep(asked, before)
        proven, predicted = self._predict(request, served)
        facts = replace(_facts(before, asked, served, usage, predicted), proven=proven)
        return Forecast(facts.expected, facts.predicted, diagnose(facts))

    def _served(self, request: CacheRequest, price: Prices) -> CacheUsage:
        simulator = self._simulators.get(price.name)
        if simulator is None:
            simulator = self._simulators[price.name] = CacheSimulator(price.cache)
        try:
            return simulator.serve(request)
        except CallerError:  # marks that the provider refuses: then it reads nothing, and says so itself
            return CacheUsage(0.0, 0.0, 0.0, request.prompt, 0.0, 0, "no_marks")

    def _learn_sizes(self, request: CacheRequest, end: int, usage: Usage, price: Prices) -> float:
        """Learn the sizes that an answer tells. Returns what the cache holds of the request from now on."""
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

    def _predict(self, request: CacheRequest, served: CacheUsage) -> tuple[float, float]:
        """What the simulator says is read, in the provider's tokens: what is proven of it, and what is to be expected."""
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
        return low, low + (max(high, low) - low) * min(1.0, max(0.0, share))

    def _before(self, now: SentRequest) -> _AnsweredRequest | None:
        """The request before on the branch: the one that has most in common with this one, of several the latest."""
        found = max(self._asked, key=lambda one: _shared_names(one.sent.theirs, now.theirs), default=None)
        return found if found is not None and _shared_names(found.sent.theirs, now.theirs) else None

    def _keep(self, asked: _AnsweredRequest, before: _AnsweredRequest | None) -> None:
        """Have it compared with from now on, in place of the one that it goes on from."""
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
        changed=before.sent.head.differs_in(now.sent.head),
        place=0 if offered else place,
        by_us=offered or (place is not None and _shared_names(before.sent.theirs, now.sent.theirs) > place),
        idle=now.sent.at - before.sent.at,
        blocks=len(now.laid.chain) - before.end,
        drops_thinking=_drops_thinking(before.laid, now.laid),
    )


def _first_changed_message(before: Laid, now: Laid) -> int | None:
    """The first message that does not say what it said."""
    ours, theirs = now.sent.items, before.sent.items
    for place in range(alike(ours, theirs), min(len(ours), len(theirs))):
        if ours[place] != theirs[place] and before.names(place) != now.names(place):
            return place
    return None


def _drops_thinking(before: Laid, now: Laid) -> bool:
    """Whether the model thought in the turn before, is not shown that any more, and a new turn began since."""
    end = before.reaches[-1]
    if not _prices(now.sent.head.model, now.sent.api).strips_thinking or now.reaches[-1].user <= end.blocks:
        return False
    items, place = before.sent.items, len(before.sent.items)
    while place > 0 and before.reaches[place].user == end.user:  # back to what the user said last
        place -= 1
        if any(kind in items[place] for kind in _THINKING):
            return True
    return False


def _shared_names(some: Sequence[str], others: Sequence[str]) -> int:
    """How many names two lists have in common, from the first on. A name stands for all in front of it, so one that differs is
    followed by none that does not.
    """
    return bisect_left(range(min(len(some), len(others))), x=True, key=lambda place: some[place] != others[place])


def _last(request: CacheRequest, price: Prices) -> int:
    """How many blocks the cache holds once this was answered."""
    if price.cache.model != "breakpoints" or not price.cache.strict_marks:
        return len(request.chain)
    return max((mark.position for mark in request.marks), default=0)


def _cached_share(usage: Usage, price: Prices) -> float:
    """What is left of a prompt where it is not marks that say so."""
    return float(usage.prompt) if usage.prompt >= price.cache.min_prefix and price.cache.model != "none" else 0.0


@lru_cache(maxsize=256)
def _prices(model: str, api: Api) -> Prices:
    try:
        return prices(model)
    except BadSetting:
        return prices(_UNPRICED[api])
