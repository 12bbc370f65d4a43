"""For how long the cache is asked to keep a request, and what it holds of a branch: `policy.keepalive` on a session.

What the cache holds is journaled behind each answered request, so another process goes on with it. Only for Messages, where a
client's marks say for how long, and only where the caller can keep a session alive (`Traffic.prepare`, `lasting`).
"""

from dataclasses import dataclass, replace
from typing import Final

import msgspec

from pagein.engine.folds import Fold
from pagein.engine.journal import Journal
from pagein.engine.passes import moment_of
from pagein.engine.pricing import prices_for
from pagein.engine.state import State
from pagein.model.entries import Body, EntryId, Noted
from pagein.model.messages import Usage
from pagein.policy import keepalive
from pagein.policy.economics import Economics, Moment
from pagein.policy.keepalive import MARGIN, Lease, Lifetimes, Request
from pagein.providers.billing import Prices, cost

KIND: Final = "request.lease"
_CACHED: Final = 0.9  # what is read and written of a window that is marked to its end, at least


@dataclass(frozen=True, slots=True)
class Held:
    """What the cache holds of a branch. kept, spent: keep-alive requests on it so far, and what they cost in BIT."""

    lease: Lease
    kept: int = 0
    spent: float = 0.0


@dataclass(frozen=True, slots=True)
class Means:
    """What there is for a keep-alive request, BIT. spare: what was saved beside lifetimes. may_cost: the most that one may cost."""

    spare: float
    may_cost: float


@dataclass(frozen=True, slots=True)
class Asking:
    """What a request asks: which model, whether for the long lifetime; and what a keep-alive request behind it may cost, BIT.

    was_short: whether we had the request before it ask for the short one.
    """

    model: str
    long: bool
    may_cost: float
    was_short: bool = False


@dataclass(frozen=True, slots=True)
class Terms:
    """What was chosen for a request. before: what was held until then. asking: the lifetime that is asked for, seconds."""

    lifetimes: Lifetimes
    before: Held
    asking: float
    at: float
    fresh: bool = False

    @property
    def shortens(self) -> bool:
        """Whether the client's marks ask for more."""
        return self.asking <= self.lifetimes.short < self.lifetimes.asked

    @property
    def is_behind_a_pause(self) -> bool:
        """Whether nothing but the entry of a keep-alive request is held."""
        return not self.fresh and self.before.lease.anchored > 0 and self.before.lease.paused(self.at)


@dataclass(frozen=True, slots=True)
class Due:
    """A keep-alive request is to be sent at this time, seconds since 1970, if nothing came until then. price: about what it costs, BIT.

    kept, spent: as in `Held`.
    """

    at: float
    price: float
    kept: int
    spent: float


class _Record(msgspec.Struct, frozen=True, omit_defaults=True):
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


def encoded(held: Held) -> str:
    """As it is journaled."""
    one = held.lease
    until = one.until if one.until > float("-inf") else None
    record = _Record(
        one.lifetime, one.saved, one.sent, one.held, one.anchored, until, one.whole, one.returns, held.kept, held.spent
    )
    return msgspec.json.encode(record).decode()


def step(held: Held | None, body: Body) -> Held | None:
    """What is held after one more entry; None before anything is known."""
    if not isinstance(body, Noted) or body.kind != KIND:
        return held
    try:
        one = msgspec.json.decode(body.data, type=_Record)
    except msgspec.MsgspecError:  # a record of another version
        return held
    until = float("-inf") if one.until is None else one.until
    lease = Lease(one.lifetime, one.saved, one.sent, one.held, one.anchored, until, one.whole, one.returns)
    return Held(lease, one.kept, one.spent)


def lifetimes_of(prices: Prices, *, long: bool) -> Lifetimes | None:
    """The lifetimes of a model's cache; None where nobody is asked for one. long: what the client asks for."""
    rules = prices.cache
    if rules.model != "breakpoints":
        return None
    asked = rules.long_ttl if long else rules.ttl
    return Lifetimes(asked, prices.read, prices.write_5m, prices.write_1h, rules.ttl, rules.long_ttl)


def terms(held: Held | None, lifetimes: Lifetimes, moment: Moment, means: Means, *, anew: bool) -> Terms | None:
    """What to ask for with the request of this moment. anew: nothing of the last one is in it."""
    if moment.now is None:
        return None
    before = held if held is not None else Held(Lease(lifetimes.asked))
    if anew:
        before = replace(before, lease=keepalive.begun_anew(before.lease))
    size = moment.floor + moment.scale * moment.size
    new = moment.scale * moment.new if before.lease.alive(moment.now) else size
    asking = lifetimes.asked
    if lifetimes.kept_for(size) <= means.may_cost:  # what cannot be kept alive must not rest on it
        asking = keepalive.chosen(before.lease, lifetimes, size, new, means.spare)
    return Terms(lifetimes, before, asking, moment.now, anew)


def economics(usual: Economics, terms: Terms) -> Economics:
    """The prices of this call: when the cache is cold, what a change would void, and what was saved beside the window."""
    lease, lifetimes = terms.before.lease, terms.lifetimes
    expires = lease.expires()
    write = lifetimes.price(terms.asking)
    if expires is None or lease.sent is None:
        return replace(usual, write=write)
    whole = lease.whole or lease.paused(terms.at)
    return replace(
        usual,
        write=write,
        lifetime=expires - lease.sent,
        keeps_front=usual.keeps_front and not whole,
        aside=lease.saved,
    )


def answered(terms: Terms, usage: Usage, *, rewritten: bool) -> Held:
    """What is held once a request was answered. rewritten: whether we changed what stands in front of its end."""
    before = terms.before.lease
    size = float(usage.prompt)
    goes_on = before.sent is not None and not terms.fresh
    new = max(0.0, size - before.held) if goes_on else size
    request = Request(terms.at, terms.asking, size, new, float(usage.written), rewritten)
    return replace(terms.before, lease=keepalive.sent(before, terms.lifetimes, request))


def due(held: Held, terms: Terms, usage: Usage, spare: float) -> Due | None:
    """When the window is to be kept alive; None where it is not worth it, or the cache does not hold it."""
    lease = held.lease
    is_cached = usage.read + usage.written >= _CACHED * usage.prompt > 0
    if lease.sent is None or not is_cached or not keepalive.keeps(lease, terms.lifetimes, spare):
        return None
    price = terms.lifetimes.kept_for(lease.held)
    return Due(lease.sent + terms.lifetimes.short - MARGIN, price, held.kept, held.spent)


def kept(held: Held, lifetimes: Lifetimes, at: float, cost: float) -> Held:
    """What is held once a keep-alive request was answered."""
    return Held(keepalive.kept(held.lease, lifetimes, at, cost), held.kept + 1, held.spent + cost)


def _up_to_date(held: Held | None, lasted: float, sent_at: float | None) -> Held | None:
    """What is held where a later request went out of which nothing was told: it may be all of that, for as long as was asked (`lasted`)."""
    if held is None or sent_at is None or held.lease.sent is None or sent_at <= held.lease.sent:
        return held
    lease = keepalive.begun_anew(held.lease)
    return replace(held, lease=replace(lease, lifetime=lasted, sent=sent_at, held=0.0))


class Leases:
    """What the cache holds of the branches of one session. Called by one thread at a time."""

    def __init__(self, journal: Journal[State]) -> None:
        self._journal = journal
        self._held: Fold[Held | None] = Fold(journal, None, step)

    def terms(
        self, parent: EntryId | None, here: EntryId | None, asking: Asking, at: float | None, *, anew: bool
    ) -> Terms | None:
        """What to ask for with a request that stands here, behind the one at `parent`; None where nobody is asked for anything."""
        price = prices_for(asking.model, at)
        lifetimes = None if price is None else lifetimes_of(price, long=asking.long)
        if lifetimes is None:
            return None
        state = self._journal.state_at(here)
        lasted = lifetimes.short if asking.was_short else lifetimes.asked
        held = _up_to_date(self._held.at(parent), lasted, self._journal.state_at(parent).sent_at)
        means = Means(state.account.saved, asking.may_cost)
        return terms(held, lifetimes, moment_of(state, at), means, anew=anew)

    def due(self, held: Held, of: Terms, usage: Usage, entry: EntryId) -> Due | None:
        """When the window of a request that was answered is to be kept alive, None: never."""
        state = self._journal.state_at(entry)
        return None if state.hand.off else due(held, of, usage, state.account.saved)

    def kept(self, behind: EntryId | None, of: Terms, model: str, usage: Usage, at: float) -> tuple[Held, float] | None:
        """What is held behind a request that was kept alive, and what that cost; None where that is not known."""
        held, price = self._held.at(behind), prices_for(model, at)
        if held is None or price is None:
            return None
        spent = cost(usage, price, at)
        return kept(held, of.lifetimes, at, spent), spent
