"""Choose the cache TTL of a session's requests, plan keep-alive requests, and track what the cache holds of a branch.

The rules are in `policy.economics.cache_lifetimes` and `policy.economics.cache_keepalive`. The cached prefix
(`engine.cache.cached_prefix`) is journaled after each answered request.

A TTL is chosen only for Messages, where the client's breakpoints set it; only if the caller wants it (`lasting` of
`Traffic.prepare`); and only while the model's provider is not known to drop entries too soon
(`engine.cache.cache_evidence`).
"""

from dataclasses import dataclass, replace
from typing import Final

from pagein.engine.cache.cached_prefix import CachedPrefix
from pagein.model.cache_notes import CachePractice, CacheVerdictNote
from pagein.model.messages import Usage
from pagein.policy.economics import cache_keepalive, cache_lifetimes
from pagein.policy.economics.cache_keepalive import MARGIN, CacheLease, Lifetimes, Request
from pagein.policy.economics.cache_lifetimes import ShortRewrite
from pagein.policy.economics.cache_trust import has_anchor_held
from pagein.policy.economics.rewrite_cost import Economics, Moment
from pagein.providers.prices.token_prices import Prices

_CACHED: Final = 0.9  # least cached share of a window with a breakpoint at its end


@dataclass(frozen=True, slots=True)
class TtlQuery:
    """The facts of a request that determine its cache TTL.

    model: name of the model.
    long: True if the client asks for the long TTL.
    may_cost: the most that a keep-alive request after it may cost, in BIT.
    was_short, was_long: True if pagein set the short or the long TTL on the request before.
    switched: True if the model or the prompt prefix differs from the request before.
    documented: True if the provider documents what the choice rests on.
    """

    model: str
    long: bool
    may_cost: float
    was_short: bool = False
    was_long: bool = False
    switched: bool = False
    documented: bool = False


@dataclass(frozen=True, slots=True)
class TtlTerms:
    """The cache TTL chosen for a request, with the facts of the choice.

    lifetimes: TTLs and prices of the model.
    before: the cached prefix until now.
    asking: the requested TTL, in seconds.
    at: time of the request, in seconds.
    fresh: True if the request shares nothing with the last one.
    rewrite: the rewrite for the short TTL, if the client asks for the long one.
    front: tokens of the prompt prefix.
    returning: message at the end of an anchor in this model's cache, to which the client may return; -1 without one.
    exposable: tokens at its end that may have the short TTL while all in front has the long one; 0 for one TTL.
    behind: tokens of its news after the model's last answer.
    split: message with the last breakpoint of the long TTL, if the short one follows in it; -1 for one TTL.
    reserve: amount that other sessions give for what a pause may lose, in BIT; negative where they borrowed of the session's
        own savings.
    earned: what the session has added to the shared savings so far, in BIT.
    bridges: True if a keep-alive request may be sent after it.
    is_trial: True if it is not known that keep-alive requests work with this model.
    """

    lifetimes: Lifetimes
    before: CachedPrefix
    asking: float
    at: float
    fresh: bool = False
    rewrite: ShortRewrite | None = None
    front: float = 0.0
    returning: int = -1
    exposable: float = 0.0
    behind: float = 0.0
    split: int = -1
    reserve: float = 0.0
    earned: float = 0.0
    bridges: bool = False
    is_trial: bool = False

    def settle(self, *, rewritten: bool, short: bool = False) -> "TtlTerms":
        """Return the terms once it is known whether the window is rewritten, and whether for the short TTL."""
        asking = self.lifetimes.short if short else self.lifetimes.asked
        return replace(self, asking=asking, exposable=0.0) if rewritten else self

    def split_at(self, message: int) -> "TtlTerms":
        """Return the terms of a request with both TTLs, the long one up to a block of this message."""
        return replace(self, asking=self.lifetimes.short, split=message)

    @property
    def shortens(self) -> bool:
        """True if the client's breakpoints ask for a longer TTL."""
        return self.split < 0 and self.asking <= self.lifetimes.short < self.lifetimes.asked

    @property
    def may_expose(self) -> bool:
        """True if a pause after the request may lose more than the client's own TTL would, or if it buys an anchor."""
        return self.asking != self.lifetimes.asked or self.exposable > 0 or self.rewrite is not None

    @property
    def lengthens(self) -> bool:
        """True if the client's breakpoints ask for a shorter TTL."""
        return self.lifetimes.asked <= self.lifetimes.short < self.asking

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
    is_trial: as in `TtlTerms`.
    """

    at: float
    price: float
    kept: int = 0
    spent: float = 0.0
    is_trial: bool = False


def lifetimes_of(prices: Prices, *, long: bool, is_proven: bool = True) -> Lifetimes | None:
    """Return the TTLs of a model's cache.

    None for a cache without TTL requests.

    long: True if the client asks for the long TTL.
    is_proven: as in `Lifetimes`.
    """
    rules = prices.cache
    if rules.model != "breakpoints":
        return None
    asked = rules.long_ttl if long else rules.ttl
    charged = (prices.read, prices.write_5m, prices.write_1h)
    return Lifetimes(asked, *charged, rules.ttl, rules.long_ttl, prices.cliff, is_proven, rules.lookback)


def terms(
    held: CachedPrefix | None,
    lifetimes: Lifetimes,
    moment: Moment,
    in_hand: float,
    *,
    anew: bool,
    switched: bool = False,
    reserve: float = 0.0,
) -> TtlTerms | None:
    """Choose the cache terms of a request; None without a time.

    in_hand: amount to risk beside the savings of earlier TTL choices, in BIT.
    anew: True if the request shares nothing with the last one.
    switched: as in `TtlQuery`.
    reserve: as in `TtlTerms`.
    """
    if moment.now is None:
        return None
    before, returning = held if held is not None else CachedPrefix(CacheLease(lifetimes.asked)), -1
    if anew:
        before = replace(before, lease=cache_keepalive.lease_after_restart(before.lease), left=-1)
    elif switched:
        returning = before.left if moment.now <= before.left_until else -1
        before = _after_switch(before, lifetimes)
    size = moment.floor + moment.scale * moment.size
    # whether other sessions have cached this prompt prefix is unknown before the answer
    goes_on = before.lease.alive(moment.now) and not (anew or switched)
    new = moment.scale * (moment.new if goes_on else moment.size)
    # results that the last request showed once are not in the cache yet; they stand in front of the model's answer
    shown = max(0.0, size - before.lease.held - new) if goes_on and before.lease.held > 0.0 else 0.0
    new += shown
    in_hand -= (1.0 - lifetimes.read) * shown  # if they stay, showing them outside of the cache was in vain
    is_near = lifetimes.lookback is None or moment.blocks < lifetimes.lookback
    said = moment.scale * moment.replied + shown if goes_on else 0.0
    # the first image of a conversation also voids the cached messages
    is_found = is_near and not moment.uncounted
    asked = cache_lifetimes.UpcomingRequest(moment.now, size, new, said=said, is_found=is_found)
    asking = cache_lifetimes.chosen(before.lease, lifetimes, asked, in_hand + reserve)
    lent = 0.0 if shown else reserve  # an anchor would write them, too: no other session pays for that
    exposable = cache_lifetimes.exposable(before.lease, lifetimes, asked, in_hand + lent)
    rewrite = cache_lifetimes.short_rewrite(before.lease, lifetimes, asked, in_hand + reserve)
    return TtlTerms(
        lifetimes,
        before,
        asking,
        moment.now,
        anew,
        rewrite,
        moment.floor,
        returning,
        exposable,
        new - said,
        reserve=reserve,
    )


def _after_switch(held: CachedPrefix, lifetimes: Lifetimes) -> CachedPrefix:
    """Return the cached prefix after a switch to another model, which has a separate cache.

    The anchor in the cache of the earlier model is remembered for a return.
    """
    lease = held.lease
    left = held.place if lease.anchored > 0 else -1
    return replace(
        held, lease=cache_keepalive.lease_after_switch(lease, lifetimes), place=-1, left=left, left_until=lease.until
    )


def economics(usual: Economics, terms: TtlTerms) -> Economics:
    """Return the prices of a call: expiry of the cache, cost of a rewrite, savings outside the window."""
    lease = terms.before.lease
    expires = lease.expires()
    if expires is None or lease.sent is None:
        return usual
    whole = lease.whole or lease.is_paused(terms.at)
    return replace(
        usual,
        lifetime=expires - lease.sent,
        keeps_front=usual.keeps_front and not whole,
        aside=lease.saved + min(0.0, terms.reserve),
    )


def prefix_after_answer(terms: TtlTerms, usage: Usage, *, rewritten: bool, messages: int) -> CachedPrefix:
    """Return the cached prefix after an answer.

    rewritten: True if pagein changed the prompt before its end.
    messages: number of messages in the request.
    """
    before = terms.before.lease
    size = float(usage.read + usage.written)  # the part after the last breakpoint is not cached
    goes_on = before.sent is not None and not terms.fresh
    new = max(0.0, size - before.held) if goes_on else size
    # a longer TTL than the client's is believed if the provider charges for it
    is_charged = not terms.lengthens or usage.written_1h > 0
    lifetime = terms.asking if is_charged else terms.lifetimes.asked
    # the prompt prefix keeps the hour of a client whose other breakpoints are shortened
    long = float(usage.written_1h) if terms.split >= 0 or terms.shortens else 0.0
    request = Request(terms.at, lifetime, size, new, float(usage.written), rewritten, terms.front, long)
    lease = cache_keepalive.lease_after_request(before, terms.lifetimes, request)
    anchors = lifetime > terms.lifetimes.short
    place = messages - 1 if anchors else terms.split if long else terms.before.place
    return replace(terms.before, lease=lease, place=place, bridged=False)


def verdict_of(terms: TtlTerms, usage: Usage, model: str) -> CacheVerdictNote | None:
    """Return an answer's evidence on the provider's cache; None for an answer without evidence.

    Only for a request in front of whose news nothing changed.
    """
    before = terms.before
    held = None if terms.fresh else has_anchor_held(before.lease, terms.lifetimes, terms.at, usage.read, terms.front)
    if held is None:
        return None
    practice: CachePractice = "keep_alive" if before.bridged else "hour"
    return CacheVerdictNote(model, practice, held, terms.at, before.lease.anchored, usage.read)


def due(held: CachedPrefix, terms: TtlTerms, usage: Usage, in_hand: float) -> KeepAlivePlan | None:
    """Return the next keep-alive request.

    None if it does not pay, or the cache does not hold the window.
    """
    lease = held.lease
    if not terms.bridges:
        return None
    is_cached = usage.read + usage.written >= _CACHED * usage.prompt > 0
    behind = usage.output + usage.fresh  # a keep-alive request writes both to the cache
    if lease.sent is None or not is_cached or not _keeps(lease, terms, in_hand, behind):
        return None
    price = terms.lifetimes.keepalive_price(lease.held, behind)
    return KeepAlivePlan(lease.sent + terms.lifetimes.short - MARGIN, price, held.kept, held.spent, terms.is_trial)


def _keeps(lease: CacheLease, terms: TtlTerms, in_hand: float, behind: float) -> bool:
    own = in_hand + min(0.0, terms.reserve)  # a keep-alive request is paid by the session alone
    return cache_keepalive.wants_keepalive(lease, terms.lifetimes, own, behind, max(0.0, terms.reserve))


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
        bridged=True,
    )
