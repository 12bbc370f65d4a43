"""The reasons for pagein's decisions, in a terminal: the worth of each kind of decision, then session by session."""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from rich.console import Console, RenderableType
from rich.table import Table
from rich.text import Text

from pagein.model.bill import DecisionRow, Why
from pagein.ui.choice import age
from pagein.ui.figures import ABSENT, amount, count, plural, short
from pagein.ui.frame import titled_table

# Maximum number of sessions, and of decisions per session, shown; the rest is only counted.
SESSIONS_SHOWN = 12
DECISIONS_SHOWN = 40
_LEFT = {"previews": "preview", "rereads": "reread"}
"""What left the window, by kind of decision; else a result."""
_MEANING = (
    "expected: the saving that the engine expected. realised: the saving by the end of the session, recalls included. "
    "in hand: the bankroll before the decision. All in BIT."
)


@dataclass(frozen=True, slots=True)
class _Sum:
    """The decisions with one reason. realised: None if not known for any decision."""

    reason: str
    decisions: int
    paged: int
    tokens: int
    expected: float
    realised: float | None


def show_why(console: Console, whys: Sequence[Why]) -> None:
    """Print the reasons for pagein's decisions in these sessions."""
    for part in _parts(whys):
        console.print()
        console.print(part)


def _parts(whys: Sequence[Why]) -> Iterator[RenderableType]:
    sums = by_reason(decided for why in whys for decided in why["decisions"])
    if len(whys) > 1 and sums:
        yield _summary(sums, whys)
    acted = sorted((why for why in whys if why["decisions"]), key=lambda why: -abs(why["saved"]))
    for why in acted[:SESSIONS_SHOWN]:
        yield _session(why)
    if len(acted) > SESSIONS_SHOWN:
        yield _more(len(acted) - SESSIONS_SHOWN)
    idle = [why for why in whys if not why["decisions"]]
    if idle:
        yield _idle(idle)


def by_reason(decisions: Iterable[DecisionRow]) -> list[_Sum]:
    """Return the decisions summed up by reason, the largest saving first."""
    rows: dict[str, list[DecisionRow]] = {}
    for one in decisions:
        rows.setdefault(one["reason"], []).append(one)
    sums = [
        _Sum(
            reason,
            len(some),
            sum(one["paged"] for one in some),
            sum(one["tokens"] for one in some),
            sum(one["expected"] for one in some),
            _sum_known(one["realised"] for one in some),
        )
        for reason, some in rows.items()
    ]
    return sorted(sums, key=lambda one: -(one.realised or 0.0))


def _sum_known(values: Iterable[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return sum(known) if known else None


def _summary(sums: Sequence[_Sum], whys: Sequence[Why]) -> Table:
    table = titled_table(
        f"Why: {plural(sum(one.decisions for one in sums), 'decision')} in {plural(len(whys), 'session')}"
    )
    _columns(table, ("reason", "decisions", "results", "tokens", "expected", "realised"))
    for one in sums:
        cells = (count(one.decisions), count(one.paged), amount(one.tokens), amount(one.expected), amount(one.realised))
        table.add_row(Text(one.reason), *cells)
    table.caption = Text(_MEANING)
    return table


def _session(why: Why) -> Table:
    by_lifetimes = f", {amount(why['lifetimes'])} of them by lifetimes" if why["lifetimes"] else ""
    saved = f"{amount(why['saved'])} BIT saved{by_lifetimes}"
    table = titled_table(f"Why: {_session_name(why)}, {plural(why['calls'], 'call')}, {saved}")
    _columns(table, ("call", "after", "what left", "tokens", "why", "expected", "realised", "in hand"))
    for one in why["decisions"][:DECISIONS_SHOWN]:
        what = plural(one["paged"], _LEFT.get(one["kind"], "result"))
        table.add_row(
            count(one["call"] + 1),
            age(one["at"]),
            what,
            amount(one["tokens"]),
            Text("\n".join((one["reason"], *hardly_quoted(one["unlikely"])))),
            amount(one["expected"]),
            amount(one["realised"]),
            amount(one["bankroll"]),
        )
    left = len(why["decisions"]) - DECISIONS_SHOWN
    more = f"and {count(left)} more; --json lists all. " if left > 0 else ""
    table.caption = Text(f"{more}In the end {why['idle']}.")
    return table


def hardly_quoted(reasons: Iterable[str]) -> list[str]:
    """Return a line for each reason why reads left that an edit would hardly quote, the commonest first."""
    return [
        f"{plural(times, 'read')} that an edit will hardly quote: {reason}"
        for reason, times in Counter(reasons).most_common()
    ]


def _idle(whys: Sequence[Why]) -> Table:
    table = titled_table(f"Why nothing left: {plural(len(whys), 'session')}")
    _columns(table, ("session", "calls", "why"))
    for why in sorted(whys, key=lambda why: -why["calls"])[:SESSIONS_SHOWN]:
        table.add_row(Text(_session_name(why)), count(why["calls"]), Text(why["idle"] or ABSENT))
    if len(whys) > SESSIONS_SHOWN:
        table.caption = _more(len(whys) - SESSIONS_SHOWN)
    return table


def _more(left: int) -> Text:
    return Text(f"and {plural(left, 'session')} more; --json lists all", style="dim")


def _session_name(why: Why) -> str:
    return f"{short(why['source'])}/{short(why['id'] or why['file'])}"


_WORDS = frozenset({"reason", "why", "session", "what left"})


def _columns(table: Table, titles: Iterable[str]) -> None:
    for title in titles:
        if title in _WORDS:
            table.add_column(title, overflow="fold")
        else:
            table.add_column(title, justify="right", no_wrap=True)
