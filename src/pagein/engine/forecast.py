"""What a provider's cache is expected to read of each request of a session, and what to make of what it did read.

Called when a request was answered, off the way of the request. One simulator for a session: what other sessions leave in the cache
makes a call read more than expected, which needs no explanation.
"""

from collections import OrderedDict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import accumulate
from typing import Final

from pagein.engine.heads import Head
from pagein.errors import BadSetting, CallerError
from pagein.model.codec import decode_json
from pagein.model.messages import Usage
from pagein.providers.billing import Prices
from pagein.providers.cache import CacheRequest, CacheSimulator, Chains, Mark, Served
from pagein.providers.doctor import Diagnosis, Facts, diagnosed
from pagein.providers.footprint import Footprint, footprints, head_footprints
from pagein.providers.prices import prices
from pagein.providers.tokens import ratio_counter
from pagein.providers.validity import Api
from pagein.providers.wire.request import message_of

_REMEMBERED: Final = 1 << 15
_BRANCHES: Final = 16
_MOVED: Final = 3
_UNPRICED: Final = {
    "anthropic": "generic:",
    "openai_chat": "generic:cache=openai",
    "openai_responses": "generic:cache=openai",
}


IN_FRONT: Final = ("tools", "system", "instructions", "cache_control")
"""Fields of a body that its prompt cache reads before the messages, or that mark it as a whole."""


@dataclass(frozen=True, slots=True)
class Sent:
    """A request as it was sent. fields: those that stand in front of the messages, as their bytes; items: the messages as theirs;
    theirs: names of the client's. at: seconds since 1970.
    """

    api: Api
    fields: Mapping[str, bytes]
    items: Sequence[bytes]
    theirs: Sequence[str]
    head: Head
    at: float


@dataclass(frozen=True, slots=True)
class Forecast:
    """What was expected of a call and what came. Tokens as the provider counts them; None where nothing can be said."""

    expected: float | None
    predicted: float
    diagnosis: Diagnosis


@dataclass(frozen=True, slots=True)
class _Asked:
    """A request that was answered, as later ones on its branch are compared with it. items: place of each block's message."""

    sent: Sent
    chain: Sequence[int]
    items: Sequence[int]
    cumulative: Sequence[float]
    held: float
    end: int


class Forecasts:
    """Expectations of one session's calls. Called by one thread at a time, in about the order in which requests were sent."""

    def __init__(self) -> None:
        self._chains = Chains()
        self._simulators: dict[str, CacheSimulator] = {}
        self._blocks: OrderedDict[bytes, tuple[Footprint, ...]] = OrderedDict()
        self._asked: list[_Asked] = []

    def answered(self, sent: Sent, usage: Usage) -> Forecast:
        """Take in what a call took, and say what that means."""
        price = _prices(sent.head.model, sent.api)
        now, marks, sides = self._laid_out(sent)
        request = CacheRequest(
            sent.at,
            now.chain,
            now.cumulative,
            marks,
            newest_user=sides.get("user", 0),
            newest_tool=sides.get("tool", 0),
        )
        served = self._served(request, price)
        before = self._before(now)
        prompt = now.cumulative[-1] if now.cumulative else 0.0
        scale = usage.prompt / prompt if prompt and usage.prompt else 1.0
        asked = _Asked(sent, now.chain, now.items, now.cumulative, _held(now, marks, price), _last(now, marks, price))
        is_over = before is not None and _shared(before.sent.theirs, sent.theirs) >= len(before.sent.theirs) - _MOVED
        self._asked = [asked, *(one for one in self._asked if one is not before or not is_over)][:_BRANCHES]
        facts = self._facts(before, asked, served, usage, scale)
        return Forecast(facts.expected, facts.predicted, diagnosed(facts))

    def _laid_out(self, sent: Sent) -> tuple[_Asked, tuple[Mark, ...], dict[str, int]]:
        fields = {name: decode_json(raw) for name, raw in sent.fields.items()}
        counter = ratio_counter(sent.head.model)
        blocks = list(head_footprints(fields, counter))
        places = [-1] * len(blocks)
        for place, raw in enumerate(sent.items):
            found = self._blocks_of(raw, sent, place)
            blocks += found
            places += [place] * len(found)
        head = sent.head
        root = self._chains.extend(Chains.ROOT, (head.model, head.headers))
        chain: list[int] = []
        for place, block in zip(places, blocks, strict=True):
            if place == 0 and (not chain or places[len(chain) - 1] < 0):
                root = self._chains.extend(root, ("settings", head.settings))
            root = self._chains.extend(root, block.name)
            chain.append(root)
        marks = tuple(Mark(at, block.ttl) for at, block in enumerate(blocks, 1) if block.ttl)
        if "cache_control" in sent.fields and blocks:
            marks = tuple({mark.position: mark for mark in (*marks, Mark(len(blocks)))}.values())
        sides = {block.side: at for at, block in enumerate(blocks, 1)}
        sizes = list(accumulate(block.tokens for block in blocks))
        return _Asked(sent, chain, places, sizes, 0.0, 0), marks, sides

    def _blocks_of(self, raw: bytes, sent: Sent, place: int) -> tuple[Footprint, ...]:
        found = self._blocks.get(raw)
        if found is None:
            value, _ = message_of(raw, sent.api, place)
            found = self._blocks[raw] = footprints(value, sent.api, ratio_counter(sent.head.model))
            while len(self._blocks) > _REMEMBERED:
                self._blocks.popitem(last=False)
        return found

    def _served(self, request: CacheRequest, price: Prices) -> Served:
        simulator = self._simulators.get(price.name)
        if simulator is None:
            simulator = self._simulators[price.name] = CacheSimulator(price.cache)
        try:
            return simulator.serve(request)
        except CallerError:  # marks that the provider refuses: then it reads nothing, and says so itself
            return Served(0.0, 0.0, 0.0, request.prompt, 0.0, 0, "no_marks")

    def _before(self, now: _Asked) -> _Asked | None:
        """The request before on the branch: the one that has most in common with this one."""
        found: tuple[int, _Asked] | None = None
        for one in self._asked:
            shared = _shared(one.sent.theirs, now.sent.theirs)
            if shared and (found is None or shared > found[0]):
                found = shared, one
        return None if found is None else found[1]

    def _facts(self, before: _Asked | None, now: _Asked, served: Served, usage: Usage, scale: float) -> Facts:
        rules = _prices(now.sent.head.model, now.sent.api).cache
        prompt, read, predicted = float(usage.prompt), float(usage.read), scale * served.read
        if before is None:
            return Facts(prompt, read, None, predicted, served.reason, rules)
        place = self._changed(before.sent, now.sent)
        offered = (
            before.sent.fields.get("tools") != now.sent.fields.get("tools")
            and before.sent.head.tools == now.sent.head.tools
        )
        return Facts(
            prompt=prompt,
            read=read,
            expected=scale * before.held,
            predicted=predicted,
            reason=served.reason,
            rules=rules,
            changed=before.sent.head.differs_in(now.sent.head),
            place=0 if offered else place,
            by_us=offered or (place is not None and _shared(before.sent.theirs, now.sent.theirs) > place),
            idle=now.sent.at - before.sent.at,
            blocks=len(now.chain) - before.end,
        )

    def _changed(self, before: Sent, now: Sent) -> int | None:
        """The first message that does not say what it said."""
        for place, (one, other) in enumerate(zip(before.items, now.items, strict=False)):
            if one != other and self._names(one, before, place) != self._names(other, now, place):
                return place
        return None

    def _names(self, raw: bytes, sent: Sent, place: int) -> list[bytes]:
        return [block.name for block in self._blocks_of(raw, sent, place)]


def _shared(some: Sequence[str], others: Sequence[str]) -> int:
    for place, (one, other) in enumerate(zip(some, others, strict=False)):
        if one != other:
            return place
    return min(len(some), len(others))


def _last(now: _Asked, marks: tuple[Mark, ...], price: Prices) -> int:
    """How many blocks the cache holds once this was answered."""
    if price.cache.model != "breakpoints" or not price.cache.strict_marks:
        return len(now.chain)
    return max((mark.position for mark in marks), default=0)


def _held(now: _Asked, marks: tuple[Mark, ...], price: Prices) -> float:
    end = _last(now, marks, price)
    size = now.cumulative[end - 1] if end else 0.0
    return size if size >= price.cache.min_prefix and price.cache.model != "none" else 0.0


@lru_cache(maxsize=256)
def _prices(model: str, api: Api) -> Prices:
    try:
        return prices(model)
    except BadSetting:
        return prices(_UNPRICED[api])
