"""For how long the provider's cache is asked to keep what is sent, and whether it is kept alive through a pause.

An entry with the long lifetime costs more to write at every call; one with the short lifetime is lost in a pause. Two requests are
cheaper than both. One entry with the long lifetime, an *anchor*, holds all that stands in front of it for an hour, whatever lifetime
that was written for: so a request that asks for the long one anchors the whole window, and pays the long price for its own news alone.
And when a pause has almost outlasted the short lifetime, one *keep-alive request* reads the window, asks for one token, and leaves an
anchor behind the answer that is known by then (rules A3, A5, A6 and the formula of mixed lifetimes, V3, in the notes on provider rules).

The rule, and its worst case
----------------------------
Where the host asks for the long lifetime, what stands behind the anchor is *exposed*: a pause loses it, whether a keep-alive request came
too late, was answered with an error, or stood behind an answer that the client changed. So the short lifetime is asked for only while what is in hand
would pay for writing all that is exposed again (`chosen`), and a keep-alive request is sent only if what is in hand pays for it, the
answer written at the long price included (`keeps`). In hand is what was saved so far and two thirds of the bankroll's share of the bill: sizes are
estimates. So the worst pause takes what was saved, and that part of the share of the bill; never more.

Where the host asks for the short lifetime nothing is exposed that it would not have lost itself, and keep-alive requests are all that can be lost.

Each model has a cache of its own, and a client may come back to the one that it left. So at a change of the model, or of what stands in front
of the conversation, what is exposed there is written off (`switched`): the worst is that it is lost, and that is paid. While that
cache may still hold the window, by the lifetime that the host asks for, no rewrite is free, and the host's own lifetime is asked for: nothing
more is exposed.

Where a lookup might miss the anchor because it stands too far in front of the marks, a mark must be spent on it at the first request
behind a pause (A3).

Money is in BIT, sizes in tokens, times in seconds. Pure: what time it is, is told.
"""

from dataclasses import dataclass, replace
from typing import Final

from pagein.policy.economics.rewrite_cost import BELOW, CAUTION
from pagein.providers.prices.token_prices import Cliff

MARGIN: Final = 20.0
"""A keep-alive request is sent so long before the short lifetime ends."""
BESIDE: Final = 50.0
"""What a keep-alive request costs beside reading the window and writing the answer: a token of output, and what makes it valid."""
RETURNS: Final = 0.7
"""Share of pauses beyond the short lifetime that end within the long one; the others end the session, or last for hours."""

MISSED: Final = 0.7
"""A request that read less than this share of what was there met a loss at the provider."""


@dataclass(frozen=True, slots=True)
class Lifetimes:
    """The two lifetimes of a cache and their prices. asked: which one the host asks for itself. cliff: a size above which all is dearer."""

    asked: float
    read: float = 0.1
    write: float = 1.25
    write_long: float = 2.0
    short: float = 300.0
    long: float = 3600.0
    cliff: Cliff | None = None

    def price(self, lifetime: float) -> float:
        """What a token written for this lifetime costs."""
        return self.write_long if lifetime > self.short else self.write

    def keepalive_price(self, tokens: float, answer: float = 0.0) -> float:
        """The price of one keep-alive request for a window of this size and an answer behind it."""
        return self._steep(tokens + answer) * (self.read * tokens + self.write_long * answer + BESIDE)

    def lost_with(self, tokens: float, whole: float) -> float:
        """The most that it costs to write so many tokens of `whole` again which an hour would have held: for an hour, so that they are
        not lost twice.
        """
        return self._steep(whole) * max(0.0, self.write_long - self.read) * tokens

    def _steep(self, tokens: float) -> float:
        return self.cliff.input if self.cliff is not None and tokens > BELOW * self.cliff.above else 1.0


@dataclass(frozen=True, slots=True)
class Lease:
    """What the cache holds of a session, and until when. Made by steps from the first one; each is O(1).

    saved: by short lifetimes, less keep-alive requests and what was lost in pauses. lifetime: of the last request; sent: when that was.
    anchored: tokens in front of the last anchor, 0 for none, and until when it lives.
    whole: only that entry outlived a pause, so nothing in front of a change is read any more. returns: pauses beyond the short
    lifetime, but not the long one, that have ended. elsewhere: until when the cache of another model, or behind another front, may hold
    what this session sent before.
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

    def alive(self, now: float) -> bool:
        """Whether anything of the last request is held."""
        return self.sent is not None and (now - self.sent <= self.lifetime or now <= self.until)

    def is_paused(self, now: float) -> bool:
        """Whether the last request's own entries are gone by now, and one that was kept alive is not."""
        return self.sent is not None and now - self.sent > self.lifetime and now <= self.until

    def anchored_tokens(self, now: float) -> float:
        """Tokens of the window that an anchor holds, whatever becomes of the rest."""
        return self.anchored if now <= self.until else 0.0

    def cached_tokens(self, now: float) -> float:
        """Tokens of the last request that the cache still holds."""
        if self.sent is None:
            return 0.0
        return self.held if now - self.sent <= self.lifetime else self.anchored_tokens(now)

    def lost_at(self, now: float, asked: float) -> float:
        """Tokens of the last request that the cache holds no more, and would with the host's own lifetime."""
        return self.held - self.cached_tokens(now) if self.sent is not None and now - self.sent <= asked else 0.0

    def expires(self) -> float | None:
        """When nothing is held any more, elsewhere neither; None before the first request."""
        return None if self.sent is None else max(self.sent + self.lifetime, self.until, self.elsewhere)


@dataclass(frozen=True, slots=True)
class Request:
    """A request that went out: when, for which lifetime, and tokens of it that the cache was asked to hold. new: tokens behind what the last one held; written: by the
    provider, as it says. rewritten: whether we changed what stands in front of these. front: tokens in front of the conversation, which others
    may hold too.
    """

    at: float
    lifetime: float
    size: float
    new: float
    written: float
    rewritten: bool = False
    front: float = 0.0


@dataclass(frozen=True, slots=True)
class UpcomingRequest:
    """A request that is about to go out: when, and of what size. new: tokens of it that are written for certain. rewritten: as in `Request`."""

    at: float
    size: float
    new: float
    rewritten: bool = False


def chosen(lease: Lease, lifetimes: Lifetimes, request: UpcomingRequest, in_hand: float) -> float:
    """The lifetime to ask for with a request. in_hand: what was saved beside lifetimes, and what of the bill may be risked."""
    if lifetimes.asked <= lifetimes.short or request.at <= lease.elsewhere:
        return lifetimes.asked
    anchored = 0.0 if request.rewritten else lease.anchored_tokens(request.at)
    # what a pause took of it is paid with this request, and is not there for the next one
    lost = min(lease.lost_at(request.at, lifetimes.asked), request.size)
    new = min(request.new, max(0.0, request.size - lost)) if lost else request.new
    spared = (lifetimes.write_long - lifetimes.write) * new - (lifetimes.write - lifetimes.read) * lost
    covered = lease.saved + in_hand + spared
    exposed = max(request.size - anchored, request.new)
    return lifetimes.short if lifetimes.lost_with(exposed, request.size) <= covered else lifetimes.asked


def chosen_rewritten(lease: Lease, lifetimes: Lifetimes, request: UpcomingRequest, in_hand: float) -> float:
    """The lifetime to ask for if the window is rewritten with this request: an anchor goes with what it held, and the rewrite may cost as
    much as is allowed it before.
    """
    left = in_hand - CAUTION * lifetimes.lost_with(request.size, request.size)
    return chosen(lease, lifetimes, replace(request, rewritten=True), left)


def lease_after_request(lease: Lease, lifetimes: Lifetimes, request: Request) -> Lease:
    """The lease after a request."""
    now = request.at
    read = request.size - request.written
    # less was read than was there: the provider lost it, and with it what was kept alive
    missed = not request.rewritten and read < MISSED * min(lease.cached_tokens(now), request.size)
    # and where it read less than the anchor holds, that is gone too, however little is missing
    found = lease.anchored > 0 and read >= lease.anchored - 1.0
    survives = found and now <= lease.until and not missed and not request.rewritten
    anchors = request.lifetime > lifetimes.short
    return replace(
        lease,
        lifetime=request.lifetime,
        saved=lease.saved + _savings_of_request(lease, lifetimes, request),
        sent=now,
        held=request.size,
        anchored=request.size if anchors else lease.anchored if survives else 0.0,
        until=now + lifetimes.long if anchors or survives else float("-inf"),
        whole=(lease.whole or lease.is_paused(now)) and survives,
        returns=lease.returns + (lease.sent is not None and lifetimes.short < now - lease.sent <= lifetimes.long),
    )


def _savings_of_request(lease: Lease, lifetimes: Lifetimes, request: Request) -> float:
    """What the request cost less than it would have with the host's own lifetime. What the short one lost counts as our doing."""
    theirs, ours = lifetimes.price(lifetimes.asked), lifetimes.price(request.lifetime)
    if lease.sent is None:
        return (theirs - ours) * request.written
    if request.rewritten and lease.alive(request.at):  # its price is in the account of the window
        return (theirs - ours) * min(request.new, request.written)
    held = lease.cached_tokens(request.at)
    if request.at - lease.sent <= lifetimes.asked:
        lost = min(max(0.0, request.written - request.new), lease.lost_at(request.at, lifetimes.asked))
        return (theirs - ours) * min(request.new, request.written) - (ours - lifetimes.read) * lost
    # without us nothing of it would be held any more, but for what others hold of its front
    held = max(0.0, min(held, request.size - request.written) - request.front)
    return (theirs - ours) * request.written + (theirs - lifetimes.read) * held


def lease_after_restart(lease: Lease) -> Lease:
    """The host began its window anew: nothing that was kept alive is in it."""
    return replace(lease, anchored=0.0, until=float("-inf"), whole=False, elsewhere=float("-inf"))


def lease_after_switch(lease: Lease, lifetimes: Lifetimes) -> Lease:
    """The client went to another model or front, whose cache is another one, and may come back. What was exposed is written off: a pause may
    take it, and no request would tell.
    """
    if lease.sent is None:
        return lease
    is_exposed = lease.lifetime <= lifetimes.short < lifetimes.asked
    exposed = lease.held - lease.anchored_tokens(lease.sent + lifetimes.short) if is_exposed else 0.0
    elsewhere = max(lease.elsewhere, lease.sent + lifetimes.asked)
    saved = lease.saved - lifetimes.lost_with(exposed, lease.held)
    return replace(lease_after_restart(lease), saved=saved, held=0.0, elsewhere=elsewhere)


def keeps(lease: Lease, lifetimes: Lifetimes, in_hand: float, answer: float = 0.0) -> bool:
    """Whether a keep-alive request is to be sent if none came until the short lifetime is nearly over. in_hand: as in `chosen`.

    answer: tokens of what the model said, which are written for an hour.
    """
    if lease.sent is None or lease.lifetime > lifetimes.short:
        return False
    if lifetimes.asked <= lifetimes.short and not lease.returns:
        return False  # nobody has come back to this session yet, and without us it would have been lost anyway
    price = lifetimes.keepalive_price(lease.held, answer)
    covered = lease.saved + in_hand
    exposed = lease.held - lease.anchored_tokens(lease.sent + lifetimes.short)
    is_worth_it = RETURNS * (lifetimes.write - lifetimes.read) * (exposed + answer) > price
    return price <= covered and (is_worth_it or not is_covered(lease, lifetimes, in_hand))


def is_covered(lease: Lease, lifetimes: Lifetimes, in_hand: float) -> bool:
    """Whether what is in hand pays for all that a pause would lose now and the host's own lifetime would not have. It does, but where the
    provider lost the anchor (`chosen`).
    """
    if lease.sent is None or max(lease.lifetime, lifetimes.short) >= lifetimes.asked:
        return True
    exposed = lease.held - lease.anchored_tokens(lease.sent + lifetimes.short)
    return lifetimes.lost_with(exposed, lease.held) <= lease.saved + in_hand


def lease_after_keepalive(lease: Lease, lifetimes: Lifetimes, now: float, cost: float) -> Lease:
    """The lease after a keep-alive request that went out now and cost so much."""
    return replace(lease, saved=lease.saved - cost, anchored=lease.held, until=now + lifetimes.long)
