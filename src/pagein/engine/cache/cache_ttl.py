"""For how long the cache is asked to keep a request, and what it holds of a branch: `policy.economics.cache_keepalive` on a session.

What the cache holds is journaled behind each answered request, so another process goes on with it. Only for Messages, where a
client's marks say for how long, and only where the caller can keep a session alive (`Traffic.prepare`, `lasting`).
"""

from dataclasses import dataclass, replace
from typing import Final

import msgspec

from pagein.engine.cache.request_prices import prices_for
from pagein.engine.log.folds import Fold
from pagein.engine.log.journal import Journal
from pagein.engine.log.state import State
from pagein.engine.window.decision_inputs import moment_of
from pagein.model.entries import Body, EntryId, NoteEntry
from pagein.model.messages import Usage
from pagein.policy.economics import cache_keepalive
from pagein.policy.economics.cache_keepalive import MARGIN, Lease, Lifetimes, Request
from pagein.policy.economics.decision_prices import economics_of
from pagein.policy.economics.rewrite_cost import Account, Economics, Moment, at_risk
from pagein.providers.prices.token_prices import Prices, cost

KIND: Final = "request.lease"
_CACHED: Final = 0.9  # what is read and written of a window that is marked to its end, at least


@dataclass(frozen=True, slots=True)
class CachedPrefix:
    """What the cache holds of a branch. kept, spent: keep-alive requests on it so far, and what they cost in BIT. place: the message that the
    anchor ends with. left, left_until: the same for the model that was asked before this one, and until when that anchor lives.
    """

    lease: Lease
    kept: int = 0
    spent: float = 0.0
    place: int = -1
    left: int = -1
    left_until: float = float("-inf")


@dataclass(frozen=True, slots=True)
class Means:
    """What there is for lifetimes and keep-alive requests, BIT. in_hand: what may be risked beside what lifetimes saved. may_cost: the most that
    a keep-alive request may cost.
    """

    in_hand: float
    may_cost: float


@dataclass(frozen=True, slots=True)
class TtlQuery:
    """What a request asks: which model, whether for the long lifetime; and what a keep-alive request behind it may cost, BIT.

    was_short: whether we had the request before it ask for the short one. switched: whether it asks another model than the request before, or has
    another front.
    """

    model: str
    long: bool
    may_cost: float
    was_short: bool = False
    switched: bool = False


@dataclass(frozen=True, slots=True)
class CacheTerms:
    """What was chosen for a request. before: what was held until then. asking: the lifetime that is asked for, seconds; rewriting: the one
    that is if the window is rewritten. front: tokens in front of the conversation. returning: the message that the anchor ends with which the
    client left in the cache of this model and may return to, -1 for none.
    """

    lifetimes: Lifetimes
    before: CachedPrefix
    asking: float
    at: float
    fresh: bool = False
    rewriting: float = 0.0
    front: float = 0.0
    returning: int = -1

    def settle(self, *, rewritten: bool) -> "CacheTerms":
        """The terms once it is known whether the window is rewritten."""
        return replace(self, asking=self.rewriting) if rewritten else self

    @property
    def shortens(self) -> bool:
        """Whether the client's marks ask for more."""
        return self.asking <= self.lifetimes.short < self.lifetimes.asked

    @property
    def anchor(self) -> int | None:
        """The message that the anchor ends with, where a lookup from the other breakpoints might not reach it.

        That is so behind a pause, where nothing else is held, and where the client returns to the model that it left: what it said to the
        other model stands between.
        """
        if self.returning >= 0:
            return self.returning
        lease = self.before.lease
        is_needed = not self.fresh and lease.anchored > 0 and lease.is_paused(self.at)
        return self.before.place if is_needed and self.before.place >= 0 else None


@dataclass(frozen=True, slots=True)
class Due:
    """A keep-alive request is to be sent at this time, seconds since 1970, if nothing came until then. price: about what it costs, BIT.

    kept, spent: as in `Held`.
    """

    at: float
    price: float
    kept: int
    spent: float


class _TtlNote(msgspec.Struct, frozen=True, omit_defaults=True):
    lifetime: float
    saved: float = 0.0
    sent: float | None = None
    held: float = 0.0
    anchored: float = 0.0
    until: float | None = None
    whole: bool = False
    returns: int = 0
    kept: int = 0
    spent: float = 0.0
    place: int = -1
    elsewhere: float | None = None
    left: int = -1
    left_until: float | None = None


def encode_cached_prefix(held: CachedPrefix) -> str:
    """As it is journaled."""
    one = held.lease
    record = _TtlNote(
        one.lifetime,
        one.saved,
        one.sent,
        one.held,
        one.anchored,
        _json_time(one.until),
        one.whole,
        one.returns,
        held.kept,
        held.spent,
        held.place,
        _json_time(one.elsewhere),
        held.left,
        _json_time(held.left_until),
    )
    return msgspec.json.encode(record).decode()


def _json_time(time: float) -> float | None:
    """A time as JSON can say it."""
    return time if time > float("-inf") else None


def _time(told: float | None) -> float:
    return float("-inf") if told is None else told


def step(held: CachedPrefix | None, body: Body) -> CachedPrefix | None:
    """What is held after one more entry; None before anything is known."""
    if not isinstance(body, NoteEntry) or body.kind != KIND:
        return held
    try:
        one = msgspec.json.decode(body.data, type=_TtlNote)
    except msgspec.MsgspecError:  # a record of another version
        return held
    until, elsewhere = _time(one.until), _time(one.elsewhere)
    lease = Lease(one.lifetime, one.saved, one.sent, one.held, one.anchored, until, one.whole, one.returns, elsewhere)
    return CachedPrefix(lease, one.kept, one.spent, one.place, one.left, _time(one.left_until))


def lifetimes_of(prices: Prices, *, long: bool) -> Lifetimes | None:
    """The lifetimes of a model's cache; None where nobody is asked for one. long: what the client asks for."""
    rules = prices.cache
    if rules.model != "breakpoints":
        return None
    asked = rules.long_ttl if long else rules.ttl
    return Lifetimes(asked, prices.read, prices.write_5m, prices.write_1h, rules.ttl, rules.long_ttl, prices.cliff)


def terms(
    held: CachedPrefix | None, lifetimes: Lifetimes, moment: Moment, means: Means, *, anew: bool, switched: bool = False
) -> CacheTerms | None:
    """What to ask for with the request of this moment. anew: nothing of the last one is in it. switched: as in `Asking`."""
    if moment.now is None:
        return None
    before, returning = held if held is not None else CachedPrefix(Lease(lifetimes.asked)), -1
    if anew:
        before = replace(before, lease=cache_keepalive.lease_after_restart(before.lease), left=-1)
    elif switched:
        returning = before.left if moment.now <= before.left_until else -1
        before = _after_switch(before, lifetimes)
    size = moment.floor + moment.scale * moment.size
    # of what others hold of a front nobody knows before the answer
    goes_on = before.lease.alive(moment.now) and not (anew or switched)
    new = moment.scale * (moment.new if goes_on else moment.size)
    asking = rewriting = lifetimes.asked
    if lifetimes.keepalive_price(size) <= means.may_cost:  # what cannot be kept alive must not rest on it
        asked = cache_keepalive.UpcomingRequest(moment.now, size, new)
        asking = cache_keepalive.chosen(before.lease, lifetimes, asked, means.in_hand)
        rewriting = cache_keepalive.chosen_rewritten(before.lease, lifetimes, asked, means.in_hand)
    return CacheTerms(lifetimes, before, asking, moment.now, anew, rewriting, moment.floor, returning)


def _after_switch(held: CachedPrefix, lifetimes: Lifetimes) -> CachedPrefix:
    """Another model is asked from now on. Its cache is another one; the anchor in the cache of the model before may be read on a return."""
    lease = held.lease
    left = held.place if lease.anchored > 0 else -1
    return replace(
        held, lease=cache_keepalive.lease_after_switch(lease, lifetimes), place=-1, left=left, left_until=lease.until
    )


def economics(usual: Economics, terms: CacheTerms) -> Economics:
    """The prices of this call: when the cache is cold, what a change would void, and what was saved beside the window."""
    lease, lifetimes = terms.before.lease, terms.lifetimes
    expires = lease.expires()
    write = lifetimes.price(terms.rewriting)
    if expires is None or lease.sent is None:
        return replace(usual, write=write)
    whole = lease.whole or lease.is_paused(terms.at)
    return replace(
        usual,
        write=write,
        lifetime=expires - lease.sent,
        keeps_front=usual.keeps_front and not whole,
        aside=lease.saved,
    )


def prefix_after_answer(terms: CacheTerms, usage: Usage, *, rewritten: bool, messages: int) -> CachedPrefix:
    """What is held once a request was answered. rewritten: whether we changed what stands in front of its end. messages: how many it had."""
    before = terms.before.lease
    size = float(usage.read + usage.written)  # what stands behind the last mark is held by nobody
    goes_on = before.sent is not None and not terms.fresh
    new = max(0.0, size - before.held) if goes_on else size
    request = Request(terms.at, terms.asking, size, new, float(usage.written), rewritten, terms.front)
    lease = cache_keepalive.lease_after_request(before, terms.lifetimes, request)
    anchors = terms.asking > terms.lifetimes.short
    return replace(terms.before, lease=lease, place=messages - 1 if anchors else terms.before.place)


def due(held: CachedPrefix, terms: CacheTerms, usage: Usage, in_hand: float) -> Due | None:
    """When the window is to be kept alive; None where it is not worth it, or the cache does not hold it."""
    lease = held.lease
    is_cached = usage.read + usage.written >= _CACHED * usage.prompt > 0
    if lease.sent is None or not is_cached or not cache_keepalive.keeps(lease, terms.lifetimes, in_hand, usage.output):
        return None
    price = terms.lifetimes.keepalive_price(lease.held, usage.output)
    return Due(lease.sent + terms.lifetimes.short - MARGIN, price, held.kept, held.spent)


def prefix_after_keepalive(
    held: CachedPrefix, lifetimes: Lifetimes, at: float, cost: float, messages: int
) -> CachedPrefix:
    """What is held once a keep-alive request was answered. messages: how many the request had that it kept; the answer stands behind them."""
    return CachedPrefix(
        cache_keepalive.lease_after_keepalive(held.lease, lifetimes, at, cost),
        held.kept + 1,
        held.spent + cost,
        messages,
    )


def _up_to_date(held: CachedPrefix | None, lasted: float, sent_at: float | None) -> CachedPrefix | None:
    """What is held where a later request went out of which nothing was told: it may be all of that, for as long as was asked (`lasted`)."""
    if held is None or sent_at is None or held.lease.sent is None or sent_at <= held.lease.sent:
        return held
    lease = cache_keepalive.lease_after_restart(held.lease)
    return replace(held, lease=replace(lease, lifetime=lasted, sent=sent_at, held=0.0))


def _in_hand(account: Account, price: Prices) -> float:
    return account.saved + at_risk(account, economics_of(price))


class Leases:
    """What the cache holds of the branches of one session. Called by one thread at a time."""

    def __init__(self, journal: Journal[State]) -> None:
        self._journal = journal
        self._held: Fold[CachedPrefix | None] = Fold(journal, None, step, "held")

    def terms(
        self, parent: EntryId | None, here: EntryId | None, asking: TtlQuery, at: float | None, *, anew: bool
    ) -> CacheTerms | None:
        """What to ask for with a request that stands here, behind the one at `parent`; None where nobody is asked for anything."""
        price = prices_for(asking.model, at)
        lifetimes = None if price is None else lifetimes_of(price, long=asking.long)
        if price is None or lifetimes is None:
            return None
        state = self._journal.state_at(here)
        lasted = lifetimes.short if asking.was_short else lifetimes.asked
        held = _up_to_date(self._held.at(parent), lasted, self._journal.state_at(parent).sent_at)
        means = Means(_in_hand(state.account, price), asking.may_cost)
        return terms(held, lifetimes, moment_of(state, at), means, anew=anew, switched=asking.switched)

    def due(self, held: CachedPrefix, of: CacheTerms, usage: Usage, model: str, entry: EntryId) -> Due | None:
        """When the window of a request that was answered is to be kept alive, None: never."""
        state = self._journal.state_at(entry)
        price = prices_for(model, of.at)
        return None if state.hand.off or price is None else due(held, of, usage, _in_hand(state.account, price))

    def after_keepalive(
        self, behind: EntryId | None, of: CacheTerms, model: str, usage: Usage, at: float, messages: int
    ) -> tuple[CachedPrefix, float] | None:
        """What is held behind a request that was kept alive, and what that cost; None where that is not known."""
        held, price = self._held.at(behind), prices_for(model, at)
        if held is None or price is None:
            return None
        spent = cost(usage, price, at)
        return prefix_after_keepalive(held, of.lifetimes, at, spent, messages), spent
