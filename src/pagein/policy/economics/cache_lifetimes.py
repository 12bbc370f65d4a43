"""Choice of the cache TTL for each request: the client's, the short one, or the long one as an anchor.

The two TTLs, anchors and keep-alive requests are explained in `policy.economics.cache_keepalive`. A TTL costs no request
of pagein's own.

Which requests are anchored
---------------------------
Without an anchor a pause beyond the short TTL loses the window. What this costs on average, per request, is the share of
requests that such a pause follows (`CacheLease.pause_rate`: the session's own, with a prior) times the price of writing the
exposed tokens again. These sums add up since the last anchor (`CacheLease.feared`). A request is anchored when they reach the
price of the anchor, which is the long price for the request's own news: so anchors stand at requests with little news,
and more often, the more a pause would lose (`_pays_to_anchor`).

An anchor is cheapest in front of most of a request's news: after the model's last answer (`exposable`). Then only the
client's own message is exposed until the next request.

A rewrite has the client's TTL, or the short one where what it leaves in hand covers the whole window (`ShortRewrite`).

The rule, and its worst case
----------------------------
Where the client asks for the long TTL, the tokens behind the anchor are *exposed*: a pause loses them if a keep-alive
request came too late, was answered with an error, or stood after an answer that the client changed. So the short TTL
is asked for only while the savings in hand would pay for writing everything exposed again (`chosen`), and a keep-alive
request is sent only if the savings in hand pay for it, the answer written at the long price included
(`cache_keepalive.keeps`). In hand
are the savings so far and two thirds of the bankroll's share of the bill, because sizes are estimates. So the worst
pause takes the savings and that part of the share of the bill; never more.

Where the client asks for the short TTL, nothing is exposed that it would not have lost itself. Anchors and keep-alive
requests are the only possible losses: an anchor is paid from the sum in hand, not before the session has shown that
somebody lets it wait (`STOP`), and not by a request that may have lost its cache.

A session by itself saves nothing before it exposes something. So it may also expose a part of what other sessions of
its store saved (`policy.economics.savings_reserve`): the caller adds this to the sum in hand of `chosen` and `exposable`,
and to nothing else.

A provider that is neither documented nor known to keep an anchor behind a five-minute prefix
(`policy.economics.cache_trust`) could lose the whole window with its oldest short entry. So there the client's hour stays,
and a session of five minutes buys one anchor. Not with a request whose window would have expired if reads did not renew it:
that request would write the whole window at the long price (`CacheLease.is_surely_held`).

Money is in BIT, sizes in tokens, times in seconds. Pure: the caller passes the time.
"""

from dataclasses import dataclass, replace
from typing import Final

from pagein.policy.economics.cache_keepalive import CacheLease, Lifetimes, feared_with
from pagein.policy.economics.rewrite_cost import CAUTION

LOSSES: Final = 0.008
"""Share of requests whose cache entries the provider had lost before their time, in recorded sessions."""


@dataclass(frozen=True, slots=True)
class UpcomingRequest:
    """A request before it is sent.

    at: time of sending. size: tokens.
    new: tokens certain to be written.
    rewritten: as in `Request`.
    again: tokens in front of the news that a rewrite writes again.
    said: tokens of the news up to the end of the model's answer, if a cache breakpoint may stand there; else 0.
    is_found: False if the price of the news is unknown: the last entry is too many blocks away for the look-back (A3), or
        they have an image or a document, whose tokens no estimate can tell.
    """

    at: float
    size: float
    new: float
    rewritten: bool = False
    again: float = 0.0
    said: float = 0.0
    is_found: bool = True


def chosen(lease: CacheLease, lifetimes: Lifetimes, request: UpcomingRequest, in_hand: float) -> float:
    """Return the cache TTL to ask for with a request.

    in_hand: BIT saved besides TTLs, plus the share of the bill that may be risked.
    """
    if request.at <= lease.elsewhere or lease.unknown:
        return lifetimes.asked
    anchors = _pays_to_anchor(lease, lifetimes, request, request.new + request.again)
    if lifetimes.asked <= lifetimes.short:
        may_anchor = anchors and _may_buy(lease, lifetimes, request, request.new, in_hand)
        return lifetimes.long if may_anchor else lifetimes.asked
    if anchors or not lifetimes.is_proven:
        return lifetimes.asked
    anchored = 0.0 if request.rewritten else lease.anchored_tokens(request.at)
    # tokens lost in a pause are paid with this request, and cannot be lost again with the next one
    lost = min(lease.lost_at(request.at, lifetimes.asked), request.size)
    new = min(request.new, max(0.0, request.size - lost)) if lost else request.new
    spared = (lifetimes.write_long - lifetimes.write) * new - (lifetimes.write - lifetimes.read) * lost
    covered = lease.saved + in_hand + (spared if spared > 0.0 else lifetimes.steep(request.size) * spared)
    exposed = max(request.size - anchored, request.new)
    return lifetimes.short if lifetimes.lost_with(exposed, request.size) <= covered else lifetimes.asked


def exposable(lease: CacheLease, lifetimes: Lifetimes, request: UpcomingRequest, in_hand: float) -> float:
    """Return the tokens at the end of a request to write for the short TTL, while the rest of its news gets the long one.

    The breakpoint in front of them anchors the whole window for the long price of a small part of the news, at best of
    the model's last answer. Only what follows it is exposed until the next request. 0: one TTL for the whole request.

    in_hand: as in `chosen`.
    """
    if (
        request.at <= lease.elsewhere
        or lease.unknown
        or request.rewritten
        or not 0 < request.said <= request.new
        or not _is_warm(lease, request)
    ):
        return 0.0
    behind = request.new - request.said
    if lifetimes.asked <= lifetimes.short:
        is_worth_it = _pays_to_anchor(lease, lifetimes, request, request.said)
        may_buy = is_worth_it and _may_buy(lease, lifetimes, request, request.said, in_hand)
        return behind if may_buy else 0.0
    if not lifetimes.is_proven:
        return 0.0
    is_exposed = chosen(lease, lifetimes, request, in_hand) <= lifetimes.short
    if is_exposed and not _pays_to_anchor(lease, lifetimes, request, request.said, LOSSES * request.size):
        return 0.0
    premium = lifetimes.write_long - lifetimes.write
    return min(behind, max(0.0, lease.saved + in_hand) / (lifetimes.lost_with(1.0, request.size) - premium))


def _is_warm(lease: CacheLease, request: UpcomingRequest) -> bool:
    """Return whether the cache is sure to hold the last request.

    A prompt that began anew, shrank, waited or grew too much is written again, at a price that the news do not tell.
    """
    is_warm = request.is_found and lease.alive(request.at) and not lease.is_paused(request.at)
    return is_warm and 0 < lease.held <= request.size


def _may_buy(lease: CacheLease, lifetimes: Lifetimes, request: UpcomingRequest, tokens: float, in_hand: float) -> bool:
    """Return whether a session whose client asks for the short TTL may pay for an anchor that is `tokens` long."""
    premium = lifetimes.steep(request.size) * (lifetimes.write_long - lifetimes.write) * tokens
    is_sure = lifetimes.is_proven or lease.is_surely_held(request.at, lifetimes)
    return _is_warm(lease, request) and is_sure and lease.stops > 0 and premium <= lease.saved + in_hand


def _pays_to_anchor(
    lease: CacheLease, lifetimes: Lifetimes, request: UpcomingRequest, tokens: float, lost: float = 0.0
) -> bool:
    """Return whether pauses since the last anchor would have cost as much as an anchor that is `tokens` long.

    lost: further tokens that are written for the long TTL on average, because the provider lost them.
    """
    if not lifetimes.is_proven and lease.anchored > 0:
        return False  # the first one is not tested yet
    if lease.held <= 0 and lifetimes.asked > lifetimes.short:
        return False  # how much of the window this request writes is unknown, so the price of the anchor is too
    feared = feared_with(lease, lifetimes, request.at, request.size, request.new, rewritten=request.rewritten)
    return feared >= (lifetimes.write_long - lifetimes.write) * (tokens + lost)


@dataclass(frozen=True, slots=True)
class ShortRewrite:
    """A rewrite of the window for the short TTL, where the client asks for the long one.

    It costs less, so it pays sooner. A rewrite loses the anchor, so a pause before the next request loses the whole window.

    lease, lifetimes, request, in_hand: as in `chosen`, before the rewrite.
    """

    lease: CacheLease
    lifetimes: Lifetimes
    request: UpcomingRequest
    in_hand: float

    @property
    def write(self) -> float:
        """Price of a token that the rewrite writes."""
        return self.lifetimes.write

    def is_covered(self, cost: float, gain: float) -> bool:
        """Return whether the savings left after a rewrite pay for the whole loss of a pause after it.

        cost: what the rewrite may cost, in BIT. gain: tokens that leave.
        """
        again = cost / (self.lifetimes.write - self.lifetimes.read)
        size, new = max(0.0, self.request.size - gain), max(0.0, self.request.new - gain)
        request = replace(self.request, size=size, new=new, rewritten=True, again=again)
        left = self.in_hand - CAUTION * cost
        return chosen(self.lease, self.lifetimes, request, left) < self.lifetimes.asked


def short_rewrite(
    lease: CacheLease, lifetimes: Lifetimes, request: UpcomingRequest, in_hand: float
) -> ShortRewrite | None:
    """Return the rewrite for the short TTL; None where the client asks for that TTL itself.

    A rewrite for the long TTL would then pay the anchor's price for every token that it writes again.
    """
    if lifetimes.asked <= lifetimes.short or lease.sent is None:
        return None
    return ShortRewrite(lease, lifetimes, request, in_hand)
