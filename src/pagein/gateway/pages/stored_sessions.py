"""Sessions in the store with their calls, for the page: also those before the gateway's start.

Journals are read in small portions, because the page asks again. What was read of a session is kept until its journal grows.
"""

import time
from collections import OrderedDict
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from datetime import datetime
from threading import Lock
from typing import Final, TypeAlias, TypedDict

from pagein.errors import BadInput, PageinError
from pagein.gateway.pages.call_totals import (
    PeriodCost,
    SessionCalls,
    TotalsView,
    TotalView,
    cost_since,
    periods,
    session_calls,
    sum_calls,
    totals_of,
)
from pagein.gateway.pages.journal_calls import JournalCall, JournalSummary, first_words, summary_of
from pagein.model.entries import EntryId
from pagein.ports import WholeStore
from pagein.tools.session_commands import sessions as known_sessions

MOST: Final = 500
"""Sessions that the page shows, the latest first."""
_PORTION: Final = 1.0  # seconds of reading per question
_OF_TITLES: Final = 0.5  # the same, for titles of sessions that are not read yet

OpenStore: TypeAlias = Callable[[], AbstractContextManager[WholeStore]]
"""Opens the store for one question. Raises BadInput if there is none yet, and StoreError."""


class StoredSessionView(TotalView):
    """A session of the store, with the sum of its calls.

    title: its first words, marked if it is a sub-agent's.
    last: time of its last write; None if unknown.
    project: its folder; "" if unknown.
    read_yet: whether its journal was read; the figures are zero before.
    unpriced: calls without a price.
    """

    title: str
    agent: str
    project: str
    models: list[str]
    last: float | None
    read_yet: bool
    unpriced: int
    epochs: int


class StoredCallView(TypedDict):
    """A call of a session in the store. Fields as in `JournalCall`."""

    at: float | None
    model: str
    read: int
    written: int
    fresh: int
    output: int
    cost: float | None
    usd: float | None
    saved: float
    saved_usd: float
    recalling: float
    keeping: float
    epoch: str
    evicted: int
    restored: int
    evicted_tokens: int
    recalls: int
    cause: str
    who: str
    explanation: str
    shortfall: int
    told: str


class StoredSessions(TypedDict):
    """The sessions of the store, the latest first.

    pending: sessions whose journals are not read yet. more: whether there are further sessions.
    today, week: what the calls cost since midnight here, and in seven days.
    """

    sessions: list[StoredSessionView]
    pending: int
    more: bool
    totals: TotalsView
    today: PeriodCost
    week: PeriodCost


@dataclass(frozen=True, slots=True)
class _SummaryAtLeaf:
    leaf: EntryId | None
    summary: JournalSummary


class SessionArchive:
    """The sessions of a store. Called from any thread."""

    def __init__(self, open_store: OpenStore) -> None:
        self._open = open_store
        self._lock = Lock()
        self._known: OrderedDict[str, _SummaryAtLeaf] = OrderedDict()
        self._titles: dict[str, str] = {}
        self._forgettings = 0

    def forgettings(self) -> int:
        """Return how often texts were erased from the store; 0 without a store."""
        try:
            with self._lock, self._open() as store:
                return store.forgettings()
        except (PageinError, OSError):  # the gateway serves also without a sound store (law 7)
            return 0

    def _drop_erased(self, store: WholeStore) -> None:
        """Forget what was read before texts were erased."""
        count = store.forgettings()
        if count != self._forgettings:
            self._known.clear()
            self._titles.clear()
            self._forgettings = count

    def sessions(self, now: datetime, words: str = "") -> StoredSessions:
        """Return the sessions, and the totals of those that were read; none before the first write creates the store.

        now: with the zone whose midnight begins today
        words: only sessions with all these words in their title, name, folder, agent or model

        Raises StoreError.
        """
        try:
            opened = self._open()
        except BadInput:
            today, week = (cost_since(since, ()) for since in periods(now))
            return StoredSessions(sessions=[], pending=0, more=False, totals=totals_of(()), today=today, week=week)
        with self._lock, opened as store:
            self._drop_erased(store)
            kept = sorted(
                (one for one in store.sessions() if one.leaf is not None and not one.is_own),
                key=lambda one: -(one.touched or 0.0),
            )
            titles = {one["session"]: one for one in known_sessions(store, sub_agents=True, limit=MOST)["sessions"]}
            until = time.monotonic() + _PORTION
            pending, views, made = 0, list[StoredSessionView](), list[SessionCalls]()
            for one in kept[:MOST]:
                known = self._known.get(one.name)
                if (known is None or known.leaf != one.leaf) and time.monotonic() < until:
                    known = self._known[one.name] = _SummaryAtLeaf(one.leaf, summary_of(store.entries(one.name)))
                is_read = known is not None and known.leaf == one.leaf
                pending += not is_read
                told = titles.get(one.name, {})
                summary = known.summary if known is not None else JournalSummary()
                if not (told.get("title") or summary.title) and time.monotonic() < until + _OF_TITLES:
                    summary = replace(summary, title=self._title(store, one.name))
                made.append(session_calls(one.name, summary, told))
                views.append(_view(made[-1], one.touched, is_read=is_read))
            while len(self._known) > 2 * MOST:
                self._known.popitem(last=False)
        wanted = words.casefold().split()
        found = [one for one in views if all(word in _words(one) for word in wanted)]
        today, week = (cost_since(since, made) for since in periods(now))
        totals = totals_of(made)
        return StoredSessions(
            sessions=found, pending=pending, more=len(kept) > MOST, totals=totals, today=today, week=week
        )

    def _title(self, store: WholeStore, name: str) -> str:
        if name not in self._titles:
            self._titles[name] = first_words(store.entries(name))
        if len(self._titles) > 2 * MOST:
            del self._titles[next(iter(self._titles))]
        return self._titles.get(name, "")

    def calls(self, name: str) -> list[StoredCallView]:
        """Return the calls of a session, oldest first; empty for an unknown one. Raises StoreError."""
        try:
            opened = self._open()
        except BadInput:
            return []
        with self._lock, opened as store:
            self._drop_erased(store)
            leaf = store.leaf(name)
            known = self._known.get(name)
            if known is None or known.leaf != leaf:
                known = self._known[name] = _SummaryAtLeaf(leaf, summary_of(store.entries(name)))
        return [_call_view(call) for call in known.summary.calls]


def _words(view: StoredSessionView) -> str:
    return " ".join((view["title"], view["name"], view["project"], view["agent"], *view["models"])).casefold()


def _view(session: SessionCalls, touched: float | None, *, is_read: bool) -> StoredSessionView:
    calls = session.calls
    return StoredSessionView(
        **sum_calls(session.name, calls),
        title=session.title,
        agent=session.agent,
        project=session.project,
        models=list(dict.fromkeys(call.model for call in calls if call.model)),
        last=touched,
        read_yet=is_read,
        unpriced=sum(call.cost is None for call in calls),
        epochs=sum(bool(call.epoch) for call in calls),
    )


def _call_view(call: JournalCall) -> StoredCallView:
    return StoredCallView(
        at=call.at,
        model=call.model,
        read=call.usage.read,
        written=call.usage.written,
        fresh=call.usage.fresh,
        output=call.usage.output,
        cost=call.cost,
        usd=call.usd,
        saved=call.saved,
        saved_usd=call.saved_usd,
        recalling=call.recalling,
        keeping=call.keeping,
        epoch=call.epoch,
        evicted=call.evicted,
        restored=call.restored,
        evicted_tokens=call.evicted_tokens,
        recalls=call.recalls,
        cause=call.cause,
        who=call.who,
        explanation=call.explanation,
        shortfall=call.shortfall,
        told=call.told,
    )
