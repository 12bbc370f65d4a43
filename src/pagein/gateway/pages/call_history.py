"""Call history of the gateway, as plain values for its pages. Contains no part of a body."""

import asyncio
import contextlib
from collections import OrderedDict, deque
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final, TypedDict

from pagein.model.messages import Usage
from pagein.providers.prices.price_lookup import newest_prices

SESSIONS: Final = 500
CALLS: Final = 100
NOTHING: Final = Usage()
_ERROR: Final = 400


@dataclass(frozen=True, slots=True)
class CallRecord:
    """An answered model call.

    at: arrival, in seconds since 1970
    session, source: name of its session, and where the name was found
    status: 0 if the client hung up first
    passed: reason for passthrough, "" if curated
    failure: the failure, "" for none
    epoch: reason of an epoch opened with the call
    foreign: changes by the client in its own prefix
    binds: whether the model's thinking is bound to a window changed by pagein
    added: seconds spent in the gateway
    took: seconds in total
    recalls: number of answered recall calls
    deferred: number of the client's tools that the model must search for
    replaced, crowded, saved_characters: as in `CuratedRequest`
    cost, saved, shortfall, explanation, cause, who: as in `UsageAccount`
    told: the provider's own reason for a cache miss, "" without a reason
    """

    at: float
    session: str
    source: str
    route: str
    model: str
    status: int
    passed: str = ""
    failure: str = ""
    epoch: str = ""
    foreign: str = ""
    replaced: int = 0
    binds: bool = False
    crowded: bool = False
    saved_characters: int = 0
    added: float = 0.0
    took: float = 0.0
    finished: bool = False
    recalls: int = 0
    deferred: int = 0
    usage: Usage | None = None
    cost: float | None = None
    saved: float | None = None
    shortfall: int = 0
    explanation: str = ""
    cause: str = ""
    who: str = ""
    told: str = ""


class CallView(TypedDict):
    """A call in the form of the pages."""

    at: float
    route: str
    model: str
    status: int
    passed: str
    failure: str
    epoch: str
    foreign: str
    replaced: int
    crowded: bool
    saved_characters: int
    added_ms: float
    took_ms: float
    finished: bool
    recalls: int
    read: int
    written: int
    fresh: int
    output: int
    cost: float | None
    usd: float | None
    saved: float | None
    shortfall: int
    explanation: str
    cause: str
    who: str
    told: str


class SessionView(TypedDict):
    """A session in the form of the pages. Fields after the first five are sums over its calls.

    passed: calls in passthrough
    failures: failures of pagein
    errors: statuses of 400 and more
    shortfall: as in `UsageAccount`
    unbilled: cost of passthrough calls at API prices, not included in `cost`, because a subscription bills no tokens
    keep_alives, keep_alive_cost: number of keep-alive requests, and their cost in BIT, included in `cost`
    usd, saved_usd: `cost` and `saved` in dollars, each call at the price of its model; None without a call of a priced model
    """

    name: str
    source: str
    model: str
    began: float
    last: float
    calls: int
    passed: int
    epochs: int
    recalls: int
    failures: int
    errors: int
    shortfall: int
    read: int
    written: int
    fresh: int
    output: int
    cost: float
    unbilled: float
    saved: float
    keep_alives: int
    keep_alive_cost: float
    usd: float | None
    saved_usd: float | None


class SetupView(TypedDict):
    """Setup advice for a client.

    lines: lines to set or write, in the place named by `where`
    """

    name: str
    where: str
    lines: list[str]
    notes: list[str]


class Overview(TypedDict):
    """The data of the dashboard's first page.

    off: reason for being switched off, "" while on
    store: why storing has stopped, with the remedy, "" while it works
    memory: why memory does not follow the store, with the remedy, "" while it does
    vendors: the vendors of the model calls so far
    """

    version: str
    now: float
    began: float
    off: str
    curating: bool
    upstreams: dict[str, str]
    notices: list[str]
    sessions: list[SessionView]
    setup: list[SetupView]
    store: str
    memory: str
    vendors: list[str]


class Board:
    """The most recent sessions with their most recent calls. Used by one event loop.

    ended: whether the gateway is ending, so that listeners may stop
    """

    def __init__(self) -> None:
        self._sessions: OrderedDict[str, _Session] = OrderedDict()
        self._listeners: set[asyncio.Event] = set()
        self.notices: list[str] = []
        self.ended = False

    @contextlib.contextmanager
    def listener(self) -> Iterator[asyncio.Event]:
        """Listen to changes: the event is set with each."""
        changed = asyncio.Event()
        self._listeners.add(changed)
        try:
            yield changed
        finally:
            self._listeners.discard(changed)

    def tell(self) -> None:
        """Tell the listeners of a change."""
        for one in self._listeners:
            one.set()

    def end(self) -> None:
        """Let the listeners go."""
        self.ended = True
        self.tell()

    def add(self, call: CallRecord) -> None:
        """Record an answered call."""
        found = self._sessions.pop(call.session, None)
        self._sessions[call.session] = found = found or _Session(call.session, call.source, call.at)
        found.add(call)
        while len(self._sessions) > SESSIONS:
            self._sessions.popitem(last=False)
        self.tell()

    def add_keepalive(self, session: str, cost: float) -> None:
        """Add a keep-alive request to its session's bill."""
        found = self._sessions.get(session)
        if found is not None:
            found.keep_alives += 1
            found.keep_alive_cost += cost
            found.cost += cost
            found.usd = _sum(found.usd, dollars(cost, found.model))
            self.tell()

    def notice(self, text: str) -> bool:
        """Record a notice for the page. Return whether the notice is new."""
        if text in self.notices:
            return False
        self.notices.append(text)
        self.tell()
        return True

    def bound(self) -> list[str]:
        """Return the sessions whose thinking is bound to windows changed by pagein."""
        return [one.name for one in self._sessions.values() if one.binds]

    def sessions(self) -> list[SessionView]:
        """Return every session, most recent first."""
        return [one.view() for one in reversed(self._sessions.values())]

    def calls(self, session: str) -> list[CallView]:
        """Return the last calls of a session, newest first; empty for an unknown session."""
        found = self._sessions.get(session)
        return [_view(call) for call in reversed(found.recent)] if found is not None else []


@dataclass(slots=True)
class _Session:
    name: str
    source: str
    began: float
    last: float = 0.0
    model: str = ""
    calls: int = 0
    passed: int = 0
    epochs: int = 0
    recalls: int = 0
    failures: int = 0
    errors: int = 0
    shortfall: int = 0
    used: Usage = NOTHING
    cost: float = 0.0
    unbilled: float = 0.0
    saved: float = 0.0
    keep_alives: int = 0
    keep_alive_cost: float = 0.0
    binds: bool = False
    usd: float | None = None
    saved_usd: float | None = None
    recent: deque[CallRecord] = field(default_factory=lambda: deque(maxlen=CALLS))

    def add(self, call: CallRecord) -> None:
        self.last = max(self.last, call.at)
        self.model = call.model or self.model
        self.calls += 1
        self.passed += bool(call.passed)
        self.epochs += bool(call.epoch)
        self.recalls += call.recalls
        self.failures += bool(call.failure)
        self.errors += call.status >= _ERROR
        self.shortfall += call.shortfall
        self.used += call.usage or NOTHING
        if call.passed:
            self.unbilled += call.cost or 0.0
        else:
            self.cost += call.cost or 0.0
            self.usd = _sum(self.usd, dollars(call.cost or 0.0, call.model or self.model))
        self.saved += call.saved or 0.0
        self.saved_usd = _sum(self.saved_usd, dollars(call.saved or 0.0, call.model or self.model))
        self.binds = self.binds or call.binds
        self.recent.append(call)

    def view(self) -> SessionView:
        return SessionView(
            name=self.name,
            source=self.source,
            model=self.model,
            began=self.began,
            last=self.last,
            calls=self.calls,
            passed=self.passed,
            epochs=self.epochs,
            recalls=self.recalls,
            failures=self.failures,
            errors=self.errors,
            shortfall=self.shortfall,
            read=self.used.read,
            written=self.used.written,
            fresh=self.used.fresh,
            output=self.used.output,
            cost=self.cost,
            unbilled=self.unbilled,
            saved=self.saved,
            keep_alives=self.keep_alives,
            keep_alive_cost=self.keep_alive_cost,
            usd=self.usd,
            saved_usd=self.saved_usd,
        )


def dollars(bit: float, model: str) -> float | None:
    """Return BIT in dollars at the newest price of a model; None without a price in dollars."""
    paid = newest_prices(model)
    return None if paid is None else paid.usd(bit)


def _sum(known: float | None, more: float | None) -> float | None:
    return known if more is None else (known or 0.0) + more


def _view(call: CallRecord) -> CallView:
    used = call.usage or NOTHING
    return CallView(
        at=call.at,
        route=call.route,
        model=call.model,
        status=call.status,
        passed=call.passed,
        failure=call.failure,
        epoch=call.epoch,
        foreign=call.foreign,
        replaced=call.replaced,
        crowded=call.crowded,
        saved_characters=call.saved_characters,
        added_ms=round(call.added * 1000, 3),
        took_ms=round(call.took * 1000, 1),
        finished=call.finished,
        recalls=call.recalls,
        read=used.read,
        written=used.written,
        fresh=used.fresh,
        output=used.output,
        cost=call.cost,
        usd=None if call.cost is None else dollars(call.cost, call.model),
        saved=call.saved,
        shortfall=call.shortfall,
        explanation=call.explanation,
        cause=call.cause,
        who=call.who,
        told=call.told,
    )
