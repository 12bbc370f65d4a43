"""Estimate which part of a session the cache holds, and choose keep-alive requests during a pause.

An entry with the long TTL costs more to write at every call; one with the short TTL is lost in a pause. Two requests
are cheaper than both. One entry with the long TTL, an *anchor*, holds the whole prompt in front of it for an hour,
whatever TTL that prompt was written with: so a request that asks for the long TTL anchors the whole window, and pays
the long price for its own news alone. And when a pause has almost outlasted the short TTL, one *keep-alive request*
reads the window, asks for one token, and leaves an anchor after the answer that is known by then (rules A3, A5 and A6,
and the formula of mixed TTLs).

Each model has a cache of its own, and a client may come back to the model that it left. So at a change of the model or
of the prompt prefix, the exposed tokens of the old cache are written off (`lease_after_switch`): the worst is that they
are lost, and that is paid. While the old cache may still hold the window, by the TTL that the client asks for, no
rewrite is free, and the client's own TTL is asked for: nothing more is exposed.

Where the anchor is too far in front of the cache breakpoints, the first request after a pause has one on it (A3).

Money is in BIT, sizes in tokens, times in seconds. Pure: the caller passes the time.
"""

from dataclasses import dataclass, replace
from typing import Final

from pagein.policy.economics.rewrite_cost import BELOW
from pagein.providers.prices.token_prices import Cliff

MARGIN: Final = 20.0
"""Seconds between a keep-alive request and the end of the short TTL."""
BESIDE: Final = 50.0
"""Cost of a keep-alive request besides reading the window and writing the answer: one output token and the framing."""
RETURNS: Final = 0.7
"""Share of pauses beyond the short TTL that end within the long TTL; the rest end the session or last for hours."""

PAUSES: Final = 0.02
"""Share of requests that a pause longer than the short TTL and shorter than the long one follows; .018 to .031 in recorded
sessions that people sat at."""
PRIOR: Final = 50.0
"""Number of requests of a session that weigh as much as `PAUSES`."""
STOP: Final = 60.0
"""Seconds between two requests from which on somebody, or something slow, lets the session wait."""

LATE: Final = 60.0
"""Seconds by which a time must outlast the short TTL to show anything, because a provider may remove expired entries late."""
MISSED: Final = 0.7
"""A request that read less than this share of the cached tokens met a loss at the provider."""


@dataclass(frozen=True, slots=True)
class Lifetimes:
    """The two cache TTLs of a provider, with prices.

    asked: TTL that the client itself asks for, seconds.
    read, write, write_long: price of a token read, written for the short TTL, written for the long TTL.
    short, long: the two TTLs, seconds.
    cliff: request size above which every token is dearer; None for no such size.
    is_proven: whether the provider documents, or has shown, that it keeps an entry with the long TTL after a prefix with
        the short one.
    lookback: positions checked per breakpoint, as in `CacheRules`.
    """

    asked: float
    read: float = 0.1
    write: float = 1.25
    write_long: float = 2.0
    short: float = 300.0
    long: float = 3600.0
    cliff: Cliff | None = None
    is_proven: bool = True
    lookback: int | None = 20

    def price(self, lifetime: float) -> float:
        """Return the price of a token written for this TTL."""
        return self.write_long if lifetime > self.short else self.write

    def keepalive_price(self, tokens: float, answer: float = 0.0) -> float:
        """Return the price of a keep-alive request for a window of this size and the answer after it.

        Where nothing is known of the provider, the window may be written anew.
        """
        window = self.read if self.is_proven else self.write_long
        return self.steep(tokens + answer) * (window * tokens + self.write_long * answer + BESIDE)

    def lost_with(self, tokens: float, whole: float) -> float:
        """Return the highest cost of writing lost tokens again.

        The tokens are part of a window of `whole` tokens that an hour's entry would have held. They cost the one-hour write
        price, so that they are not lost again.
        """
        return self.steep(whole) * max(0.0, self.write_long - self.read) * tokens

    def steep(self, tokens: float) -> float:
        """Return the price factor of a request that may have this many tokens: 1, or more above the cliff."""
        return self.cliff.input if self.cliff is not None and tokens > BELOW * self.cliff.above else 1.0


@dataclass(frozen=True, slots=True)
class CacheLease:
    """Cache contents of a session and their expiry; immutable, each step is O(1).

    lifetime: TTL of the last request, seconds.
    saved: BIT saved by short TTLs, less keep-alive requests and losses in pauses.
    sent: time of the last request; None before the first.
    held: tokens of the last request that the cache was asked to hold.
    anchored: tokens in front of the last anchor; 0 for no anchor.
    until: expiry of the anchor.
    whole: only a long entry outlived a pause, so nothing in front of a change is read any more.
    returns: number of ended pauses longer than the short TTL and shorter than the long one.
    elsewhere: time until which the cache of another model, or behind another prompt prefix, may hold earlier requests
        of this session.
    lingers: time until which an entry written for the long TTL may live, though no answer proves it. Nothing is
        spared because of it, and no rewrite is free before it has expired.
    feared: BIT that pauses since the last anchor would have lost on average.
    calls: number of requests.
    stops: number of waits of `STOP` and more before a request.
    short: time at which an entry written for the short TTL entered the window, and since which no pause outlasted that
        TTL; None if the window is not known to hold one.
    mixed: whether such an entry is known to be in front of the anchor.
    unknown: whether the last request had a shorter TTL than the client's, and no answer told what the cache holds of it.
    """

    lifetime: float
    saved: float = 0.0
    sent: float | None = None
    held: float = 0.0
    anchored: float = 0.0
    until: float = float("-inf")
    whole: bool = False
    returns: int = 0
    elsewhere: float = float("-inf")
    lingers: float = float("-inf")
    feared: float = 0.0
    calls: int = 0
    stops: int = 0
    short: float | None = None
    mixed: bool = False
    unknown: bool = False

    @property
    def pause_rate(self) -> float:
        """Share of requests that a pause beyond the short TTL, within the long one, follows."""
        return (PAUSES * PRIOR + self.returns) / (PRIOR + self.calls)

    def is_surely_held(self, now: float, lifetimes: Lifetimes) -> bool:
        """Return whether the cache holds the last request even if reads do not renew its entries.

        True while the entries are young enough, and after they were read at an age that they reach by renewal only.
        """
        if self.sent is None or self.short is None:
            return False
        return now - self.short <= lifetimes.short - MARGIN or self.sent - self.short > lifetimes.short + LATE

    def alive(self, now: float) -> bool:
        """Return whether the cache may still hold any part of the last request."""
        return self.sent is not None and (now - self.sent <= self.lifetime or self.may_hold_long_entry(now))

    def is_paused(self, now: float) -> bool:
        """Return whether the last request's own entries have expired, and an entry with the long TTL may live."""
        return self.sent is not None and now - self.sent > self.lifetime and self.may_hold_long_entry(now)

    def may_hold_long_entry(self, now: float) -> bool:
        """Return whether an entry written for the long TTL may live: the anchor, or one of which no answer told."""
        return now <= max(self.until, self.lingers)

    def anchored_tokens(self, now: float) -> float:
        """Return the window tokens that an anchor holds, whatever happens to the rest."""
        return self.anchored if now <= self.until else 0.0

    def cached_tokens(self, now: float) -> float:
        """Return the tokens of the last request still in the cache."""
        if self.sent is None:
            return 0.0
        return self.held if now - self.sent <= self.lifetime else self.anchored_tokens(now)

    def lost_at(self, now: float, asked: float) -> float:
        """Return the tokens of the last request lost from the cache that the client's own TTL would have kept."""
        return self.held - self.cached_tokens(now) if self.sent is not None and now - self.sent <= asked else 0.0

    def expires(self) -> float | None:
        """Return the time when every cache of this session is empty; None before the first request."""
        return None if self.sent is None else max(self.sent + self.lifetime, self.until, self.elsewhere, self.lingers)


@dataclass(frozen=True, slots=True)
class Request:
    """A request that was sent.

    at: time of sending. lifetime: TTL asked for.
    size: tokens that the cache was asked to hold.
    new: tokens beyond the last held request.
    written: tokens written to the cache, as reported by the provider.
    written_long: those of them that a request with both TTLs wrote for the long one, in front of the others.
    rewritten: whether pagein changed tokens in front of the news.
    front: tokens of the prompt prefix, which other sessions may hold too.
    """

    at: float
    lifetime: float
    size: float
    new: float
    written: float
    rewritten: bool = False
    front: float = 0.0
    written_long: float = 0.0


def feared_with(
    lease: CacheLease, lifetimes: Lifetimes, at: float, size: float, new: float, *, rewritten: bool
) -> float:
    """Return the average cost of pauses since the last anchor, including a pause after this request, in BIT."""
    exposed = max(size - (0.0 if rewritten else lease.anchored_tokens(at)), new)
    before = 0.0 if rewritten else lease.feared
    return before + lease.pause_rate * (lifetimes.write - lifetimes.read) * exposed


def lease_after_request(lease: CacheLease, lifetimes: Lifetimes, request: Request) -> CacheLease:
    """Return the lease after a request."""
    now = request.at
    read = request.size - request.written
    # less was read than was cached: the provider lost the entries, and the anchor with them
    missed = not request.rewritten and read < MISSED * min(lease.cached_tokens(now), request.size)
    # a read smaller than the anchor means that the anchor is gone too, however little is missing
    found = lease.anchored > 0 and read >= lease.anchored - 1.0
    survives = found and now <= lease.until and not missed and not request.rewritten
    anchors = request.lifetime > lifetimes.short
    splits = request.written_long > 0 and not anchors
    lingers = not (anchors or splits or survives) and _may_linger(lease, lifetimes, request)
    gap = 0.0 if lease.sent is None else now - lease.sent
    feared = feared_with(lease, lifetimes, now, request.size, request.new, rewritten=request.rewritten)
    is_mixed = lease.short is not None and read > 0 and not missed
    return replace(
        lease,
        lifetime=request.lifetime,
        saved=lease.saved + _savings_of_request(lease, lifetimes, request),
        sent=now,
        held=request.size,
        anchored=_anchored_by(request, lifetimes) or (lease.anchored if survives else 0.0),
        until=now + lifetimes.long if anchors or splits or survives else float("-inf"),
        whole=(lease.whole or lease.is_paused(now)) and read > request.front + 1.0 and not request.rewritten,
        returns=lease.returns + (lifetimes.short < gap <= lifetimes.long),
        lingers=now + lifetimes.long if lingers else float("-inf"),
        feared=0.0 if anchors or splits else feared,
        calls=lease.calls + 1,
        stops=lease.stops + (gap >= STOP),
        short=_short_since(None if missed and read <= 0 else lease.short, lifetimes, request, gap),
        mixed=is_mixed if anchors or splits else lease.mixed and survives,
        unknown=False,
    )


def _anchored_by(request: Request, lifetimes: Lifetimes) -> float:
    """Return the tokens in front of the last entry that a request wrote for the long TTL; 0 for none."""
    if request.lifetime > lifetimes.short:
        return request.size
    return request.size - request.written + request.written_long if request.written_long > 0 else 0.0


def _short_since(since: float | None, lifetimes: Lifetimes, request: Request, gap: float) -> float | None:
    """Return `CacheLease.short` after a request.

    since: `CacheLease.short` before it. gap: seconds since the request before.
    """
    if since is None:
        return request.at if request.lifetime <= lifetimes.short and request.written > 0 else None
    return request.at if request.rewritten or gap > lifetimes.short else since


def _may_linger(lease: CacheLease, lifetimes: Lifetimes, request: Request) -> bool:
    """Return whether a request may have read, and so renewed, a long-TTL entry other than the anchor of its end.

    The prompt may have shrunk in front of the anchor, or a rewrite may have left entries in front of its first change.
    Only an answer without cache reads after the prompt prefix proves that no such entry is left. A client that asks for the
    short TTL would have no such entry itself.
    """
    if lifetimes.asked <= lifetimes.short or not lease.may_hold_long_entry(request.at):
        return False
    return request.size - request.written > request.front + 1.0


def _savings_of_request(lease: CacheLease, lifetimes: Lifetimes, request: Request) -> float:
    """Return the savings of a request against the client's own TTL; losses, but no savings, at the price above a cliff."""
    saved = _level_savings(lease, lifetimes, request)
    return saved if saved > 0.0 else lifetimes.steep(request.size) * saved


def _level_savings(lease: CacheLease, lifetimes: Lifetimes, request: Request) -> float:
    """Return the savings at prices below a cliff; losses of the short TTL count against pagein."""
    theirs, ours = lifetimes.price(lifetimes.asked), _price_written(lifetimes, request)
    if lease.sent is None:
        return (theirs - ours) * request.written
    if lease.unknown and request.at - lease.sent <= lifetimes.asked:
        return -(ours - lifetimes.read) * request.written  # all of it may be what the client's own TTL would have kept
    if request.rewritten and lease.alive(request.at):  # its price is in the account of the window
        return (theirs - ours) * min(request.new, request.written)
    held = lease.cached_tokens(request.at)
    if request.at - lease.sent <= lifetimes.asked:
        lost = min(max(0.0, request.written - request.new), lease.lost_at(request.at, lifetimes.asked))
        return (theirs - ours) * min(request.new, request.written) - (ours - lifetimes.read) * lost
    # without pagein the cache would hold nothing any more, except a prompt prefix that other sessions keep
    held = max(0.0, min(held, request.size - request.written) - request.front)
    return (theirs - ours) * request.written + (theirs - lifetimes.read) * held


def _price_written(lifetimes: Lifetimes, request: Request) -> float:
    """Return the price of a token written by a request, on average."""
    price = lifetimes.price(request.lifetime)
    if not request.written_long or not request.written:
        return price
    share = min(1.0, request.written_long / request.written)
    return price + share * (lifetimes.write_long - price)


def lease_after_restart(lease: CacheLease) -> CacheLease:
    """Return the lease after the client began its window anew: of the new window, the cache may hold the prompt prefix."""
    never = float("-inf")
    return replace(
        lease,
        held=0.0,
        anchored=0.0,
        until=never,
        whole=False,
        elsewhere=never,
        lingers=never,
        feared=0.0,
        mixed=False,
        unknown=False,
    )


def lease_after_unreported(lease: CacheLease, lifetimes: Lifetimes, at: float, lifetime: float) -> CacheLease:
    """Return the lease after a request without a reported reply, which the cache may hold. What a pause lost is written off."""
    lingers = lifetimes.asked > lifetimes.short and lease.may_hold_long_entry(at)
    lost = lease.lost_at(at, lifetimes.asked)
    return replace(
        lease_after_restart(lease),
        saved=lease.saved - lifetimes.steep(lease.held) * (lifetimes.price(lifetime) - lifetimes.read) * lost,
        lifetime=lifetime,
        sent=at,
        held=0.0,
        short=None,
        lingers=at + lifetimes.long if lingers else float("-inf"),
        unknown=lifetime < lifetimes.asked,
    )


def lease_after_switch(lease: CacheLease, lifetimes: Lifetimes) -> CacheLease:
    """Return the lease after the client switched to another model or prompt prefix, with a cache of its own.

    The client may come back. The exposed tokens are written off, because no request would report their loss.
    """
    if lease.sent is None:
        return lease
    is_exposed = lease.lifetime <= lifetimes.short < lifetimes.asked
    exposed = lease.held - lease.anchored_tokens(lease.sent + lifetimes.short) if is_exposed else 0.0
    elsewhere = max(lease.elsewhere, lease.sent + lifetimes.asked)
    saved = lease.saved - lifetimes.lost_with(exposed, lease.held)
    return replace(lease_after_restart(lease), saved=saved, short=None, elsewhere=elsewhere)


def wants_keepalive(
    lease: CacheLease, lifetimes: Lifetimes, in_hand: float, answer: float = 0.0, reserve: float = 0.0
) -> bool:
    """Return whether to send a keep-alive request if no request came until the short TTL is nearly over.

    in_hand: as in `cache_lifetimes.chosen`.
    answer: tokens of the model's answer, which are written for an hour.
    reserve: BIT that earlier sessions give for what a pause may lose, not for keep-alive requests.
    """
    if lease.sent is None or lease.lifetime > lifetimes.short:
        return False
    if lifetimes.asked <= lifetimes.short and not lease.returns:
        # no pause of this session has ended in time yet, and without pagein the cache would be lost anyway
        return False
    price = lifetimes.keepalive_price(lease.held, answer)
    covered = lease.saved + in_hand
    exposed = lease.held - lease.anchored_tokens(lease.sent + lifetimes.short)
    is_worth_it = RETURNS * (lifetimes.write - lifetimes.read) * (exposed + answer) > price
    return price <= covered and (is_worth_it or not is_covered(lease, lifetimes, in_hand + reserve))


def is_covered(lease: CacheLease, lifetimes: Lifetimes, in_hand: float) -> bool:
    """Return whether the savings in hand pay for the loss that a pause now would add to the client's own.

    False only where the provider lost the anchor (`cache_lifetimes.chosen`).
    """
    exposed = exposed_cost(lease, lifetimes)
    return not exposed or exposed <= lease.saved + in_hand


def exposed_cost(lease: CacheLease, lifetimes: Lifetimes) -> float:
    """Return the loss that a pause after the last request would add to the client's own, in BIT."""
    if lease.sent is None or max(lease.lifetime, lifetimes.short) >= lifetimes.asked:
        return 0.0
    exposed = lease.held - lease.anchored_tokens(lease.sent + lifetimes.short)
    return lifetimes.lost_with(max(0.0, exposed), lease.held)


def lease_after_keepalive(lease: CacheLease, lifetimes: Lifetimes, now: float, cost: float) -> CacheLease:
    """Return the lease after a keep-alive request sent now at this cost."""
    return replace(
        lease, saved=lease.saved - cost, anchored=lease.held, until=now + lifetimes.long, feared=0.0, mixed=True
    )
