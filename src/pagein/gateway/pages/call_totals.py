"""Totals of calls by day, agent, project and model. Pure.

Each call is in exactly one row of each table, so the rows of a table add up to the sum. Tokens of a prompt are read from the cache, written
into it, or fresh; the three exclude each other with every provider (`model.messages.Usage`).
"""

import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Final, Literal, TypeAlias, TypedDict

from pagein.gateway.pages.journal_calls import JournalCall, JournalSummary

By: TypeAlias = Literal["session", "agent", "project", "model", "day"]

_UNKNOWN: Final = "unknown"
_WEEK: Final = 7 * 86_400.0
_LEAST_LOSS: Final = 0.005  # dollars; less is shown as zero


class TotalView(TypedDict):
    """A sum of calls.

    name: the day (UTC), agent, folder or model.
    usd, cost: of the calls with a price; None without any.
    saved, saved_usd: the saving in BIT and in dollars; a model without a price in dollars counts in the first only.
    """

    name: str
    calls: int
    read: int
    written: int
    fresh: int
    output: int
    cost: float | None
    usd: float | None
    saved: float
    saved_usd: float
    recalls: int


class LedgerView(TypedDict):
    """pagein's account over sessions, in one unit. The saving in all is `gained` minus `spent`, minus `recalling`.

    gained: the sum over cheaper calls. spent: the sum over dearer calls, such as those that open an epoch. recalling: the price
    of continuing answers after recalls. recalls: their number. losing: number of sessions that pagein made dearer so far. lost:
    their extra cost, already part of `spent` and `recalling`.
    """

    gained: float
    spent: float
    recalling: float
    recalls: int
    losing: int
    lost: float


class MissCount(TypedDict):
    """The cache misses of one cause.

    cause, who: as in `providers.caches.cache_doctor`. calls: calls that missed. tokens: expected cache reads that did not
    happen, in tokens.
    """

    cause: str
    who: str
    calls: int
    tokens: int


class PeriodCost(TypedDict):
    """The cost of the calls of all stored sessions since a moment, at list prices.

    since: seconds since 1970. unpriced: calls without a known price; they count in no sum.
    saved: dollars that pagein saved by its own estimate; negative for a loss.
    dearer: sessions that pagein made dearer, with the dollars, the largest first.
    misses: misses of the provider's cache by cause, the most tokens first.
    """

    since: float
    sessions: int
    calls: int
    usd: float
    saved: float
    unpriced: int
    dearer: dict[str, float]
    misses: list[MissCount]


class TotalsView(TypedDict):
    """The sum of all calls, the same by four properties, and pagein's account in BIT and in dollars."""

    whole: TotalView
    ledger: LedgerView
    ledger_usd: LedgerView
    day: list[TotalView]
    agent: list[TotalView]
    project: list[TotalView]
    model: list[TotalView]


@dataclass(frozen=True, slots=True)
class SessionCalls:
    """A session with its calls. title: its first words."""

    name: str
    title: str
    agent: str
    project: str
    calls: Sequence[JournalCall]


def session_calls(name: str, summary: JournalSummary, told: Mapping[str, object]) -> SessionCalls:
    """Return a session with its calls.

    told: its row in the list of sessions; empty without one.
    """
    title = ("(sub-agent) " if told.get("parent") else "") + str(told.get("title") or summary.title)
    agent, project = str(told.get("agent") or summary.client), str(told.get("cwd") or "")
    return SessionCalls(name, title, agent, project, summary.calls)


_KEYS: Final[Mapping[By, Callable[[SessionCalls, JournalCall], str]]] = {
    "session": lambda one, _: one.name,
    "agent": lambda one, _: one.agent,
    "project": lambda one, _: one.project,
    "model": lambda _, call: call.model,
    "day": lambda _, call: _day(call.at),
}


def totals_of(sessions: Sequence[SessionCalls]) -> TotalsView:
    """Return the totals of sessions. Days come in their order, the rest by cost."""
    return TotalsView(
        whole=sum_calls("", [call for one in sessions for call in one.calls]),
        ledger=_ledger([[(call.saved, call.recalling, call.recalls) for call in one.calls] for one in sessions]),
        ledger_usd=_ledger(
            [[(call.saved_usd, call.recalling_usd, call.recalls) for call in one.calls] for one in sessions]
        ),
        day=_rows("day", sessions),
        agent=_rows("agent", sessions),
        project=_rows("project", sessions),
        model=_rows("model", sessions),
    )


class SessionTotal(TotalView):
    """A sum of the calls of one session, or of a day, agent, project or model, whose `title` is ""."""

    title: str


def totals_since(since: float, by: By, sessions: Sequence[SessionCalls]) -> list[SessionTotal]:
    """Return the sums of the calls since a moment: days (UTC) in their order, the rest by cost."""
    titles = {one.name: one.title for one in sessions} if by == "session" else {}
    groups = _grouped(by, [_late(one, since) for one in sessions])
    found = [SessionTotal(**sum_calls(name, calls), title=titles.get(name, "")) for name, calls in groups.items()]
    return sorted(found, key=lambda one: (0.0 if by == "day" else -(one["usd"] or 0.0), one["name"]))


def cost_since(since: float, sessions: Iterable[SessionCalls]) -> PeriodCost:
    """Return the cost of the calls since a moment. The sessions that are the dearest by pagein's doing come first."""
    late = [_late(one, since) for one in sessions]
    made = [call for one in late for call in one.calls]
    nets = {one.name: sum(call.saved_usd for call in one.calls) for one in late}
    return PeriodCost(
        since=since,
        sessions=sum(bool(one.calls) for one in late),
        calls=len(made),
        usd=sum(call.usd or 0.0 for call in made),
        saved=sum(nets.values()),
        unpriced=sum(call.usd is None for call in made),
        dearer={name: -net for name, net in sorted(nets.items(), key=lambda one: one[1]) if net <= -_LEAST_LOSS},
        misses=_misses(made),
    )


def _late(session: SessionCalls, since: float) -> SessionCalls:
    """Return a session with its calls since a moment."""
    return replace(session, calls=[call for call in session.calls if call.at is not None and call.at >= since])


def _misses(calls: Iterable[JournalCall]) -> list[MissCount]:
    groups: dict[tuple[str, str], list[int]] = defaultdict(list)
    for one in calls:
        if one.shortfall:
            groups[one.cause, one.who].append(one.shortfall)
    found = [
        MissCount(cause=cause, who=who, calls=len(short), tokens=sum(short)) for (cause, who), short in groups.items()
    ]
    return sorted(found, key=lambda one: (-one["tokens"], one["cause"], one["who"]))


def periods(now: datetime) -> tuple[float, float]:
    """Return the beginnings of today, at midnight of this zone, and of the last seven days, in seconds since 1970."""
    return now.replace(hour=0, minute=0, second=0, microsecond=0).timestamp(), now.timestamp() - _WEEK


def _ledger(sessions: Sequence[Sequence[tuple[float, float, int]]]) -> LedgerView:
    """Return pagein's account over sessions, of each call given by its saving, the price of its recalls, and their number."""
    each = [saved + recalling for session in sessions for saved, recalling, _ in session]
    nets = [sum(saved for saved, _, _ in session) for session in sessions]
    return LedgerView(
        gained=sum(one for one in each if one > 0),
        spent=-sum(one for one in each if one < 0),
        recalling=sum(recalling for session in sessions for _, recalling, _ in session),
        recalls=sum(recalls for session in sessions for _, _, recalls in session),
        losing=sum(net < 0 for net in nets),
        lost=-sum(net for net in nets if net < 0),
    )


def _rows(by: By, sessions: Iterable[SessionCalls]) -> list[TotalView]:
    found = [sum_calls(name, calls) for name, calls in _grouped(by, sessions).items()]
    return sorted(found, key=lambda one: (0.0 if by == "day" else -(one["cost"] or 0.0), one["name"]))


def _grouped(by: By, sessions: Iterable[SessionCalls]) -> dict[str, list[JournalCall]]:
    groups: dict[str, list[JournalCall]] = defaultdict(list)
    for one in sessions:
        for call in one.calls:
            groups[_KEYS[by](one, call) or _UNKNOWN].append(call)
    return groups


def _day(at: float | None) -> str:
    return _UNKNOWN if at is None else time.strftime("%Y-%m-%d", time.gmtime(at))


def sum_calls(name: str, calls: Sequence[JournalCall]) -> TotalView:
    """Return the sum of calls under a name."""
    costs = [call.cost for call in calls if call.cost is not None]
    dollars = [call.usd for call in calls if call.usd is not None]
    return TotalView(
        name=name,
        calls=len(calls),
        read=sum(call.usage.read for call in calls),
        written=sum(call.usage.written for call in calls),
        fresh=sum(call.usage.fresh for call in calls),
        output=sum(call.usage.output for call in calls),
        cost=sum(costs) if costs else None,
        usd=sum(dollars) if dollars else None,
        saved=sum(call.saved for call in calls),
        saved_usd=sum(call.saved_usd for call in calls),
        recalls=sum(call.recalls for call in calls),
    )
