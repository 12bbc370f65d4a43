"""For how long the provider's cache is asked to keep what is sent, and whether it is kept alive through a pause.

An entry with the long lifetime costs more to write at every call; one with the short lifetime is lost in a pause. A third way is
cheaper than both: write for the short lifetime and, when a pause has almost outlasted it, send one *keep-alive request*. It reads
the window, asks for one token, and carries the answer that is known by then under a mark of the long lifetime: so only that answer
is written at the long price, and the entry behind it holds the whole window for an hour (rules A3, A5, A6 and the formula of
mixed lifetimes, V3, in the notes on provider rules).

Law 5 binds here too. Where the host asks for the long lifetime itself, the short one is chosen only when what was saved so far pays
for the keep-alive request that it may take; and none is sent that is not paid for. Where a lookup might miss an entry because it
stands too far in front of the marks, a mark must be spent on it at the first request behind a pause (A3).

Money is in BIT, sizes in tokens, times in seconds. Pure: what time it is, is told.
"""

from dataclasses import dataclass, replace
from typing import Final

MARGIN: Final = 20.0
"""A keep-alive request is sent so long before the short lifetime ends."""
BESIDE: Final = 400.0
"""What it costs beside reading the window: the answer at the long price instead of the short one, and a token of output."""
RETURNS: Final = 0.7
"""Share of pauses beyond the short lifetime that end within the long one; the others end the session, or last for hours."""

MISSED: Final = 0.7
"""A request that read less than this share of what was there met a loss at the provider."""


@dataclass(frozen=True, slots=True)
class Lifetimes:
    """The two lifetimes of a cache and their prices. asked: which one the host asks for itself."""

    asked: float
    read: float = 0.1
    write: float = 1.25
    write_long: float = 2.0
    short: float = 300.0
    long: float = 3600.0

    def price(self, lifetime: float) -> float:
        """What a token written for this lifetime costs."""
        return self.write_long if lifetime > self.short else self.write

    def kept_for(self, tokens: float) -> float:
        """The price of one keep-alive request for a window of this size."""
        return self.read * tokens + BESIDE


@dataclass(frozen=True, slots=True)
class Lease:
    """What the cache holds of a session, and until when. Made by steps from the first one; each is O(1).

    saved: by short lifetimes, less keep-alive requests and what was lost in pauses. lifetime: of the last request; sent: when that was.
    anchored: tokens in front of the entry that a keep-alive request left, 0 for none, and until when it lives.
    whole: only that entry outlived a pause, so nothing in front of a change is read any more. returns: pauses beyond the short
    lifetime, but not the long one, that have ended.
    """

    lifetime: float
    saved: float = 0.0
    sent: float | None = None
    held: float = 0.0
    anchored: float = 0.0
    until: float = float("-inf")
    whole: bool = False
    returns: int = 0

    def alive(self, now: float) -> bool:
        """Whether anything of the last request is held."""
        return self.sent is not None and (now - self.sent <= self.lifetime or now <= self.until)

    def paused(self, now: float) -> bool:
        """Whether the last request's own entries are gone by now, and one that was kept alive is not."""
        return self.sent is not None and now - self.sent > self.lifetime and now <= self.until

    def expires(self) -> float | None:
        """When nothing is held any more; None before the first request."""
        return None if self.sent is None else max(self.sent + self.lifetime, self.until)


@dataclass(frozen=True, slots=True)
class Request:
    """A request that went out: when, for which lifetime, of what size. new: tokens behind what the last one held; written: by the
    provider, as it says. rewritten: whether we changed what stands in front of these.
    """

    at: float
    lifetime: float
    size: float
    new: float
    written: float
    rewritten: bool = False


def chosen(lease: Lease, lifetimes: Lifetimes, size: float, new: float, spare: float) -> float:
    """The lifetime to ask for with a request of this size, of which `new` tokens are written. spare: what else was saved so far."""
    if lifetimes.asked <= lifetimes.short:
        return lifetimes.asked
    saved = lease.saved + spare + (lifetimes.write_long - lifetimes.write) * new
    return lifetimes.short if saved >= lifetimes.kept_for(size) else lifetimes.asked


def sent(lease: Lease, lifetimes: Lifetimes, request: Request) -> Lease:
    """The lease after a request."""
    now = request.at
    read = request.size - request.written
    # less was read than was there: the provider lost it, and with it what was kept alive
    missed = not request.rewritten and lease.alive(now) and read < MISSED * min(lease.held, request.size)
    survives = lease.anchored > 0 and now <= lease.until and not missed and not request.rewritten
    return replace(
        lease,
        lifetime=request.lifetime,
        saved=lease.saved + _spared(lease, lifetimes, request),
        sent=now,
        held=request.size,
        anchored=lease.anchored if survives else 0.0,
        until=now + lifetimes.long if survives else float("-inf"),
        whole=(lease.whole or lease.paused(now)) and survives,
        returns=lease.returns + (lease.sent is not None and lifetimes.short < now - lease.sent <= lifetimes.long),
    )


def _spared(lease: Lease, lifetimes: Lifetimes, request: Request) -> float:
    """What the request cost less than it would have with the host's own lifetime. What the short one lost counts as our doing."""
    theirs, ours = lifetimes.price(lifetimes.asked), lifetimes.price(request.lifetime)
    if lease.sent is None:
        return (theirs - ours) * request.written
    if request.rewritten:  # its price is in the account of the window
        return (theirs - ours) * min(request.new, request.written)
    if request.at - lease.sent <= lifetimes.asked:
        lost = 0.0 if lease.alive(request.at) else max(0.0, request.written - request.new)
        return (theirs - ours) * min(request.new, request.written) - (ours - lifetimes.read) * lost
    held = min(lease.held, max(0.0, request.size - request.written)) if lease.alive(request.at) else 0.0
    return (theirs - ours) * request.written + (theirs - lifetimes.read) * held


def begun_anew(lease: Lease) -> Lease:
    """The host began its window anew: nothing that was kept alive is in it."""
    return replace(lease, anchored=0.0, until=float("-inf"), whole=False)


def keeps(lease: Lease, lifetimes: Lifetimes, spare: float) -> bool:
    """Whether a keep-alive request is to be sent if none came until the short lifetime is nearly over. spare: what else was saved so far."""
    if lease.sent is None or lease.lifetime > lifetimes.short:
        return False
    if lifetimes.asked <= lifetimes.short and not lease.returns:
        return False  # nobody has come back to this session yet, and without us it would have been lost anyway
    price = lifetimes.kept_for(lease.held)
    lost = lease.held - (lease.anchored if lease.until > lease.sent + lease.lifetime else 0.0)
    if RETURNS * (lifetimes.write - lifetimes.read) * lost <= price:
        return False
    return price <= lease.saved + spare


def kept(lease: Lease, lifetimes: Lifetimes, now: float, cost: float) -> Lease:
    """The lease after a keep-alive request that went out now and cost so much."""
    return replace(lease, saved=lease.saved - cost, anchored=lease.held, until=now + lifetimes.long)
