"""Choose the cache TTL of a request, and track the cache entries of a branch: `policy.economics.cache_keepalive` for a
session.

The cached prefix is journaled after each answered request, so another process can continue from it. Only for Messages,
where the client's breakpoints set the TTL, and only if the caller can keep a session alive (`Traffic.prepare`,
`lasting`).
"""

from dataclasses import dataclass, replace
from typing import Final

from pagein.engine.cache.request_prices import prices_for
from pagein.engine.log.journal import Fold, Journal
from pagein.engine.log.state import State
from pagein.engine.window.decision_inputs import moment_of
from pagein.model.entries import Body, EntryId, NoteEntry
from pagein.model.journal_notes import CachedPrefixNote
from pagein.model.messages import Usage
from pagein.policy.economics import cache_keepalive
from pagein.policy.economics.cache_keepalive import MARGIN, Lease, Lifetimes, Request
from pagein.policy.economics.decision_prices import economics_of
from pagein.policy.economics.rewrite_cost import Account, Economics, Moment, at_risk
from pagein.providers.prices.token_prices import Prices, cost

_CACHED: Final = 0.9  # least cached share of a window with a breakpoint at its end


@dataclass(frozen=True, slots=True)
class CachedPrefix:
    """The part of a branch in the provider's cache.

    lease: its size and expiry.
    kept: keep-alive requests so far.
    spent: their cost in BIT.
    place: message at which the anchor ends.
    left: the place of the anchor in the cache of the model used before this one; -1 without one.
    left_until: expiry of the anchor at `left`, in seconds.
    """

    lease: Lease
    kept: int = 0
    spent: float = 0.0
    place: int = -1
    left: int = -1
    left_until: float = float("-inf")


@dataclass(frozen=True, slots=True)
class Means:
    """The budget for cache TTLs and keep-alive requests, in BIT.

    in_hand: amount to risk beside the savings of earlier TTL choices.
    may_cost: the most that one keep-alive request may cost.
    """

    in_hand: float
    may_cost: float


@dataclass(frozen=True, slots=True)
class TtlQuery:
    """The facts of a request that decide its cache TTL.

    model: name of the model.
    long: True if the client asks for the long TTL.
    may_cost: the most that a keep-alive request after it may cost, in BIT.
    was_short: True if pagein set the short TTL on the request before.
    switched: True if the model or the prompt prefix differs from the request before.
    """

    model: str
    long: bool
    may_cost: float
    was_short: bool = False
    switched: bool = False


@dataclass(frozen=True, slots=True)
class CacheTerms:
    """The chosen cache terms of a request.

    lifetimes: TTLs and prices of the model.
    before: the cached prefix until now.
    asking: the requested TTL, in seconds.
    at: time of the request, in seconds.
    fresh: True if the request shares nothing with the last one.
    rewriting: the TTL if the window is rewritten, in seconds.
    front: tokens of the prompt prefix.
    returning: message at the end of an anchor in this model's cache, to which the client may return; -1 without one.
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
        """Return the terms once it is known whether the window is rewritten."""
        return replace(self, asking=self.rewriting) if rewritten else self

    @property
    def shortens(self) -> bool:
        """True if the client's breakpoints ask for a longer TTL."""
        return self.asking <= self.lifetimes.short < self.lifetimes.asked

    @property
    def anchor(self) -> int | None:
        """The message at the end of the anchor, if lookups from other breakpoints may miss the anchor.

        That happens after a pause, when only the anchor is cached, and when the client returns to an earlier model
        after messages to another one.
        """
        if self.returning >= 0:
            return self.returning
        lease = self.before.lease
        is_needed = not self.fresh and lease.anchored > 0 and lease.is_paused(self.at)
        return self.before.place if is_needed and self.before.place >= 0 else None


@dataclass(frozen=True, slots=True)
class KeepAlivePlan:
    """The next keep-alive request, unless another request comes first.

    at: time to send, in seconds since 1970.
    price: expected cost in BIT.
    kept, spent: as in `CachedPrefix`.
    """

    at: float
    price: float
    kept: int = 0
    spent: float = 0.0


def note_of(held: CachedPrefix) -> CachedPrefixNote:
    """Return the note of a cached prefix."""
    one = held.lease
    return CachedPrefixNote(
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
        _json_time(one.lingers),
    )


def _json_time(time: float) -> float | None:
    """Return a time as a JSON value; None for minus infinity."""
    return time if time > float("-inf") else None


def _time(told: float | None) -> float:
    return float("-inf") if told is None else told


def step(held: CachedPrefix | None, body: Body) -> CachedPrefix | None:
    """Return the cached prefix after a further entry.

    None before the first record.
    """
    match body:
        case NoteEntry(note=CachedPrefixNote() as note):
            return _prefix_of(note)
        case _:
            return held


def _prefix_of(one: CachedPrefixNote) -> CachedPrefix:
    until, elsewhere = _time(one.until), _time(one.elsewhere)
    of_entry = (one.lifetime, one.saved, one.sent, one.held, one.anchored, until, one.whole, one.returns)
    lease = Lease(*of_entry, elsewhere, _time(one.lingers))
    return CachedPrefix(lease, one.kept, one.spent, one.place, one.left, _time(one.left_until))


def lifetimes_of(prices: Prices, *, long: bool) -> Lifetimes | None:
    """Return the TTLs of a model's cache.

    None for a cache without TTL requests.

    long: True if the client asks for the long TTL.
    """
    rules = prices.cache
    if rules.model != "breakpoints":
        return None
    asked = rules.long_ttl if long else rules.ttl
    return Lifetimes(asked, prices.read, prices.write_5m, prices.write_1h, rules.ttl, rules.long_ttl, prices.cliff)


def terms(
    held: CachedPrefix | None, lifetimes: Lifetimes, moment: Moment, means: Means, *, anew: bool, switched: bool = False
) -> CacheTerms | None:
    """Choose the cache terms of a request; None without a time.

    anew: True if the request shares nothing with the last one.
    switched: as in `TtlQuery`.
    """
    if moment.now is None:
        return None
    before, returning = held if held is not None else CachedPrefix(Lease(lifetimes.asked)), -1
    if anew:
        before = replace(before, lease=cache_keepalive.lease_after_restart(before.lease), left=-1)
    elif switched:
        returning = before.left if moment.now <= before.left_until else -1
        before = _after_switch(before, lifetimes)
    size = moment.floor + moment.scale * moment.size
    # whether other sessions have cached this prompt prefix is unknown before the answer
    goes_on = before.lease.alive(moment.now) and not (anew or switched)
    new = moment.scale * (moment.new if goes_on else moment.size)
    asking = rewriting = lifetimes.asked
    if lifetimes.keepalive_price(size) <= means.may_cost:  # else keep-alive requests are not sent
        asked = cache_keepalive.UpcomingRequest(moment.now, size, new)
        asking = cache_keepalive.chosen(before.lease, lifetimes, asked, means.in_hand)
        rewriting = cache_keepalive.chosen_rewritten(before.lease, lifetimes, asked, means.in_hand)
    return CacheTerms(lifetimes, before, asking, moment.now, anew, rewriting, moment.floor, returning)


def _after_switch(held: CachedPrefix, lifetimes: Lifetimes) -> CachedPrefix:
    """Return the cached prefix after a switch to another model, which has a separate cache.

    The anchor in the cache of the earlier model is remembered for a return.
    """
    lease = held.lease
    left = held.place if lease.anchored > 0 else -1
    return replace(
        held, lease=cache_keepalive.lease_after_switch(lease, lifetimes), place=-1, left=left, left_until=lease.until
    )


def economics(usual: Economics, terms: CacheTerms) -> Economics:
    """Return the prices of a call: expiry of the cache, cost of a rewrite, savings outside the window."""
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
    """Return the cached prefix after an answer.

    rewritten: True if pagein changed the prompt before its end.
    messages: number of messages in the request.
    """
    before = terms.before.lease
    size = float(usage.read + usage.written)  # the part after the last breakpoint is not cached
    goes_on = before.sent is not None and not terms.fresh
    new = max(0.0, size - before.held) if goes_on else size
    request = Request(terms.at, terms.asking, size, new, float(usage.written), rewritten, terms.front)
    lease = cache_keepalive.lease_after_request(before, terms.lifetimes, request)
    anchors = terms.asking > terms.lifetimes.short
    return replace(terms.before, lease=lease, place=messages - 1 if anchors else terms.before.place)


def due(held: CachedPrefix, terms: CacheTerms, usage: Usage, in_hand: float) -> KeepAlivePlan | None:
    """Return the next keep-alive request.

    None if it does not pay, or the cache does not hold the window.
    """
    lease = held.lease
    is_cached = usage.read + usage.written >= _CACHED * usage.prompt > 0
    behind = usage.output + usage.fresh  # a keep-alive request writes both to the cache
    if lease.sent is None or not is_cached or not cache_keepalive.keeps(lease, terms.lifetimes, in_hand, behind):
        return None
    price = terms.lifetimes.keepalive_price(lease.held, behind)
    return KeepAlivePlan(lease.sent + terms.lifetimes.short - MARGIN, price, held.kept, held.spent)


def prefix_after_keepalive(
    held: CachedPrefix, lifetimes: Lifetimes, at: float, cost: float, messages: int
) -> CachedPrefix:
    """Return the cached prefix after a keep-alive request.

    messages: number of messages in the request; the answer follows them.
    """
    return CachedPrefix(
        cache_keepalive.lease_after_keepalive(held.lease, lifetimes, at, cost),
        held.kept + 1,
        held.spent + cost,
        messages,
    )


def _up_to_date(
    held: CachedPrefix | None, lifetimes: Lifetimes, lasted: float, sent_at: float | None
) -> CachedPrefix | None:
    """Return the cached prefix, with a later request whose reply was not reported (TTL `lasted`)."""
    if held is None or sent_at is None or held.lease.sent is None or sent_at <= held.lease.sent:
        return held
    return replace(held, lease=cache_keepalive.lease_after_unreported(held.lease, lifetimes, sent_at, lasted))


def _in_hand(account: Account, price: Prices) -> float:
    return account.saved + at_risk(account, economics_of(price))


class Leases:
    """The cached prefixes of a session's branches. Not thread-safe."""

    def __init__(self, journal: Journal[State]) -> None:
        self._journal = journal
        self._held: Fold[CachedPrefix | None] = Fold(journal, None, step, "held", takes=(CachedPrefixNote,))

    def terms(
        self, parent: EntryId | None, here: EntryId | None, asking: TtlQuery, at: float | None, *, anew: bool
    ) -> CacheTerms | None:
        """Choose the cache terms of a request at `here`, after the request at `parent`.

        None for a cache without TTL requests.
        """
        price = prices_for(asking.model, at)
        lifetimes = None if price is None else lifetimes_of(price, long=asking.long)
        if price is None or lifetimes is None:
            return None
        state = self._journal.state_at(here)
        lasted = lifetimes.short if asking.was_short else lifetimes.asked
        held = _up_to_date(self._held[parent], lifetimes, lasted, self._journal.state_at(parent).sent_at)
        means = Means(_in_hand(state.account, price), asking.may_cost)
        return terms(held, lifetimes, moment_of(state, at), means, anew=anew, switched=asking.switched)

    def due(self, held: CachedPrefix, of: CacheTerms, usage: Usage, model: str, entry: EntryId) -> KeepAlivePlan | None:
        """Return the next keep-alive request after an answered request; None for no keep-alive."""
        state = self._journal.state_at(entry)
        price = prices_for(model, of.at)
        return None if state.hand.off or price is None else due(held, of, usage, _in_hand(state.account, price))

    def after_keepalive(
        self, behind: EntryId | None, of: CacheTerms, model: str, usage: Usage, at: float, messages: int
    ) -> tuple[CachedPrefix, float] | None:
        """Return the cached prefix after a keep-alive request, with the cost.

        None if unknown.
        """
        held, price = self._held[behind], prices_for(model, at)
        if held is None or price is None:
            return None
        spent = cost(usage, price, at)
        return prefix_after_keepalive(held, of.lifetimes, at, spent, messages), spent
