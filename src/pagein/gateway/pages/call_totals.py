"""Totals of calls by day, agent, project and model. Pure.

Each call is in exactly one row of each table, so the rows of a table add up to the sum. Tokens of a prompt are read from the cache, written
into it, or fresh; the three exclude each other with every provider (`model.messages.Usage`).
"""

import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from typing import Final, TypedDict

from pagein.gateway.pages.journal_calls import JournalCall

_UNKNOWN: Final = "unknown"
_LEAST_LOSS: Final = 0.005  # dollars; less is shown as zero


class TotalView(TypedDict):
    """A sum of calls.

    name: the day (UTC), agent, folder or model.
    usd, cost: of the calls with a price; None without any.
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
    recalls: int


class LedgerView(TypedDict):
    """pagein's account over sessions, in BIT. The saving in all is `gained` minus `spent`.

    gained: what calls were cheaper by. spent: what calls were dearer by, such as those that open an epoch or follow a recall.
    recalls: number of recalls. losing: sessions that pagein made dearer so far. lost: by how much; already within `spent`.
    """

    gained: float
    spent: float
    recalls: int
    losing: int
    lost: float


class PeriodCost(TypedDict):
    """The cost of the calls of all stored sessions since a moment, at list prices.

    since: seconds since 1970. unpriced: calls without a known price; they count in no sum.
    saved: dollars that pagein saved by its own estimate; negative for a loss.
    dearer: sessions that pagein made dearer, with the dollars, the largest first.
    """

    since: float
    sessions: int
    calls: int
    usd: float
    saved: float
    unpriced: int
    dearer: dict[str, float]


class TotalsView(TypedDict):
    """The sum of all calls, the same by four properties, and pagein's account."""

    whole: TotalView
    ledger: LedgerView
    day: list[TotalView]
    agent: list[TotalView]
    project: list[TotalView]
    model: list[TotalView]


def totals_of(sessions: Sequence[tuple[str, str, Sequence[JournalCall]]]) -> TotalsView:
    """Return the totals of sessions, each given by agent, project and calls. Days come in their order, the rest by cost."""
    calls = [(agent, project, call) for agent, project, made in sessions for call in made]
    return TotalsView(
        whole=_sum("", [call for _, _, call in calls]),
        ledger=_ledger([made for _, _, made in sessions]),
        day=_by(calls, lambda one: _day(one[2].at), by_name=True),
        agent=_by(calls, lambda one: one[0] or _UNKNOWN),
        project=_by(calls, lambda one: one[1] or _UNKNOWN),
        model=_by(calls, lambda one: one[2].model or _UNKNOWN),
    )


def cost_since(since: float, sessions: Iterable[tuple[str, Sequence[JournalCall]]]) -> PeriodCost:
    """Return the cost of the calls since a moment, of sessions given by name and calls. The dearest by pagein's doing come first."""
    late = [(name, [call for call in calls if call.at is not None and call.at >= since]) for name, calls in sessions]
    made = [call for _, calls in late for call in calls]
    nets = {name: sum(map(_saved_usd, calls)) for name, calls in late}
    return PeriodCost(
        since=since,
        sessions=sum(bool(calls) for _, calls in late),
        calls=len(made),
        usd=sum(call.usd or 0.0 for call in made),
        saved=sum(nets.values()),
        unpriced=sum(call.usd is None for call in made),
        dearer={name: -net for name, net in sorted(nets.items(), key=lambda one: one[1]) if net <= -_LEAST_LOSS},
    )


def _saved_usd(call: JournalCall) -> float:
    """Return what pagein saved with a call, in dollars. A BIT costs the same in each part of one call."""
    return call.saved * call.usd / call.cost if call.usd is not None and call.cost else 0.0


def _ledger(sessions: Sequence[Sequence[JournalCall]]) -> LedgerView:
    """Return pagein's account over the calls of sessions."""
    changes = [[call.saved for call in calls] for calls in sessions]
    each = [one for session in changes for one in session]
    nets = [sum(session) for session in changes]
    return LedgerView(
        gained=sum(one for one in each if one > 0),
        spent=-sum(one for one in each if one < 0),
        recalls=sum(call.recalls for calls in sessions for call in calls),
        losing=sum(net < 0 for net in nets),
        lost=-sum(net for net in nets if net < 0),
    )


def _by(
    calls: Iterable[tuple[str, str, JournalCall]],
    key: Callable[[tuple[str, str, JournalCall]], str],
    *,
    by_name: bool = False,
) -> list[TotalView]:
    groups: dict[str, list[JournalCall]] = defaultdict(list)
    for one in calls:
        groups[key(one)].append(one[2])
    found = [_sum(name, group) for name, group in groups.items()]
    return sorted(found, key=lambda one: one["name"] if by_name else (-(one["cost"] or 0.0), one["name"]))


def _day(at: float | None) -> str:
    return _UNKNOWN if at is None else time.strftime("%Y-%m-%d", time.gmtime(at))


def _sum(name: str, calls: Sequence[JournalCall]) -> TotalView:
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
        recalls=sum(call.recalls for call in calls),
    )
