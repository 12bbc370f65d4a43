"""The page docs/reference/benchmarks.md and the figures behind it."""

import statistics
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from benchmarks.peers.arms import Arm
from benchmarks.peers.comparing import Compared
from benchmarks.peers.ours import OURS
from benchmarks.peers.pricing import Bill

from pagein.providers.prices.price_lookup import Prices

COLUMNS = (
    "row",
    "whole bill",
    "breakpoint moved",
    "messages alone",
    "prompt tokens",
    "cache breaks",
    "quotes seen",
    "lost",
    "faults",
    "refused",
    "failed",
    "CPU ms, p50 / p95",
)
BRIEF = ("row", "whole bill", "breakpoint moved", "lost")
"""The columns of the tables behind the first."""
OURS_SAY = {
    "append": "nothing is evicted; the baseline of all percentages",
    "rolling": "results older than ten calls become stubs; decided at every call",
    "clear": "above 100,000 tokens, all results but the last three are cleared; decided at every call",
    "pagein-quiet": "the engine as in `pagein replay --without lifetimes`: with the host's cache TTLs, like all rows",
}


def page(compared: Compared, arms: Sequence[Arm], date: str) -> str:
    """The whole page."""
    parts = [_head(date), _sessions(compared), _rows(compared, arms)]
    for prices in compared.prices:
        parts += [_prices(compared, prices)]
        if prices is compared.prices[0]:
            parts += [_reading()]
    parts += [_caveats(compared, arms), _again()]
    return "\n".join(parts)


def figures(compared: Compared, date: str) -> dict[str, Any]:
    """Everything that was measured, as plain values."""
    return {
        "date": date,
        "pagein": compared.ours,
        "versions": compared.versions,
        "absent": compared.absent,
        "stopped": compared.stopped,
        "sessions": [
            {"id": one.head.id, "source": one.head.source, "agent": one.head.agent, "calls": len(one.calls.calls)}
            for one in compared.sessions
        ],
        "prices": {
            prices.name: {
                row: {
                    one.head.id: _plain(bill)
                    for one in compared.sessions
                    if (bill := compared.bills.get((prices.name, row, one.head.id))) is not None
                }
                for row in compared.rows
            }
            for prices in compared.prices
        },
    }


def _plain(bill: Bill) -> dict[str, Any]:
    tally = bill.tally
    return {
        "cost": round(tally.cost, 1),
        "recall_cost": round(tally.recall_cost, 1),
        "cost_mark_moved": None if bill.moved is None else round(bill.moved, 1),
        "messages_alone": round(bill.alone, 1),
        "read": round(tally.read),
        "written": round(tally.written),
        "fresh": round(tally.fresh),
        "output": round(tally.output),
        "calls": tally.calls,
        "busts": bill.busts,
        "faults": tally.faults,
        "rereads": tally.rereads,
        "quotes_total": tally.quotes_total,
        "quotes_visible": tally.quotes_visible,
        "quotes_lost": tally.quotes_lost,
        "refused": tally.refused,
        "failed": bill.failed,
        "unrecoverable_bytes": tally.unrecoverable_bytes,
        "altered": bill.altered,
        "cpu_p50": _quantile(bill.cpu, 50),
        "cpu_p95": _quantile(bill.cpu, 95),
        "seconds_p50": _quantile(bill.seconds, 50),
        "seconds_p95": _quantile(bill.seconds, 95),
    }


def _head(date: str) -> str:
    return f"""# Benchmarks: pagein and other programs on the same sessions

Written by `make bench-peers` on {date}; edits are lost at the next run.

Each program shortens the same recorded sessions, request by request. The same rules then compute its bill, and the texts that the agent
would have missed. No model takes part: a session continues as recorded, and nothing shows how a model would have gone on with less.
"""


def _sessions(compared: Compared) -> str:
    rows = []
    for one in compared.sessions:
        recording = compared.recording(one, compared.prices[0])
        largest = max((sized.prompt for sized in recording.sized), default=0.0)
        quotes = sum(len(needs.quotes) for needs in recording.needs)
        windows = sum(sized.opens_segment for sized in recording.sized)
        asked = "1 h" if recording.ttl > 300 else "5 min"  # noqa: PLR2004 -- seconds of the short lifetime
        cells = (one.name, one.head.agent, len(recording.sized), windows, f"{largest / 1000:,.0f}k", asked, quotes)
        rows.append(tuple(map(str, cells)))
    header = ("session", "agent", "calls", "windows", "largest prompt", "cache TTL", "edits' quotes")
    return "\n".join(["## Sessions", "", *_table(header, rows), ""])


def _rows(compared: Compared, arms: Sequence[Arm]) -> str:
    rows = [(f"`{name}`", compared.ours, OURS_SAY[name]) for name in OURS]
    for arm in arms:
        name = arm.peer.name
        version = compared.versions.get(name) or f"not installed: {compared.absent.get(name, 'not asked for')}"
        rows.append((f"`{arm.name}`", version, arm.does))
    return "\n".join(["## Programs", "", *_table(("row", "version", "use"), rows), ""])


def _prices(compared: Compared, prices: Prices) -> str:
    base = _sums(compared.of(prices, "append"))
    rows = [_cells(row, compared, prices, base) for row in compared.rows]
    names = [one.name for one in compared.sessions]
    each = [
        (f"`{row}`", *(_change(compared, prices, row, one.head.id) for one in compared.sessions))
        for row in compared.rows
        if row != "append"
    ]
    title = f"## Prices: a token read costs {prices.read:g}, a token written {prices.write_5m:g} ({prices.write_1h:g} for an hour)"
    if prices is not compared.prices[0]:
        places = [COLUMNS.index(name) for name in BRIEF]
        return "\n".join([title, "", *_table(BRIEF, [[row[place] for place in places] for row in rows]), ""])
    return "\n".join(
        [
            *(title, "", "All sessions together:", "", *_table(COLUMNS, rows), ""),
            *("The whole bill of each session:", "", *_table(("row", *names), each), ""),
        ]
    )


def _cells(row: str, compared: Compared, prices: Prices, base: dict[str, float]) -> tuple[str, ...]:
    bills = compared.of(prices, row)
    if bills is None:
        peer = row.split(",", maxsplit=1)[0]
        why = compared.stopped.get(row) or compared.absent.get(peer) or "not measured"
        return (f"`{row}`", why, *("",) * (len(COLUMNS) - 2))
    sums = _sums(bills)
    moved = [bill.moved for bill in bills if bill.moved is not None]
    times = [second for bill in bills for second in bill.cpu]
    ours = row in OURS
    return (
        f"`{row}`",
        _percent(sums["cost"], base["cost"]),
        _percent(sum(moved), base["cost"]) if len(moved) == len(bills) else "",
        _percent(sums["alone"], base["alone"]),
        _percent(sums["prompt"], base["prompt"]),
        f"{sum(bill.busts for bill in bills)}",
        f"{sums['quotes_visible']:.0f} of {sums['quotes_total']:.0f}",
        f"{sums['quotes_lost']:.0f}",
        f"{sums['faults']:.0f}",
        f"{sums['refused']:.0f}" if row not in OURS[:3] else "",
        "" if ours else f"{sum(bill.failed for bill in bills)}",
        f"{1000 * _quantile(times, 50):.1f} / {1000 * _quantile(times, 95):.1f}" if times else "",
    )


def _sums(bills: Iterable[Bill] | None) -> dict[str, float]:
    bills = list(bills or ())
    tallies = [bill.tally for bill in bills]
    names = ("cost", "quotes_visible", "quotes_total", "quotes_lost", "faults", "refused")
    sums = {name: float(sum(getattr(tally, name) for tally in tallies)) for name in names}
    alone = sum(bill.alone for bill in bills)
    return {**sums, "alone": alone, "prompt": sum(tally.read + tally.written + tally.fresh for tally in tallies)}


def _change(compared: Compared, prices: Prices, row: str, session: str) -> str:
    bill = compared.bills.get((prices.name, row, session))
    return "" if bill is None else _percent(bill.tally.cost, compared.bills[prices.name, "append", session].tally.cost)


def _percent(value: float, base: float) -> str:
    return f"{100 * (value / base - 1):+.1f} %" if base else ""


def _quantile(times: Sequence[float], percent: int) -> float:
    if len(times) < 2:  # noqa: PLR2004 -- quantiles need two
        return times[0] if times else 0.0
    return statistics.quantiles(times, n=100, method="inclusive")[percent - 1]


def _table(header: Sequence[str], rows: Iterable[Sequence[str]]) -> Iterator[str]:
    yield f"| {' | '.join(header)} |"
    yield f"|{'---|' * len(header)}"
    for row in rows:
        yield f"| {' | '.join(cell.replace('|', '/') for cell in row)} |"


def _reading() -> str:
    return """## How to read the tables

Percentages are changes against `append`: the agent as recorded, with its provider's cache. Negative is cheaper.

- **whole bill**: as in a [replay](../replay.md#figures), with the agent's own cache breakpoints. A request with an earlier change is written
  again from the system prompt on.
- **breakpoint moved**: the same for a host that puts a breakpoint before each change. Few hosts do. pagein sets its own.
- **messages alone**: every block in common with the previous request counts as read, and nothing else is counted. Such tools are usually
  compared so. It is not a bill.
- **prompt tokens**: all tokens sent. Fewer tokens alone are no saving.
- **cache breaks**: requests that do not begin with the whole previous one, without those after a compaction.
- **quotes**, **lost**, **faults**: as in a replay. Each fault costs one more request with the recalled text: at most 1,500 tokens from
  programs that return a part, otherwise the whole.
- **refused**: by a provider. **failed**: the call raised an exception. Both times the recorded request is sent and billed.
- **CPU ms**: processor time of one call; for `pagein-quiet`, of its whole step of the replay.
"""


def _caveats(compared: Compared, arms: Sequence[Arm]) -> str:
    peers = {arm.peer.name: arm.peer for arm in arms}
    lines = [f"- **{name}**: {peer.caveat}" for name, peer in peers.items()]
    lines += [f"- **{name}** could not be installed: {why}" for name, why in compared.absent.items()]
    lines += [f"- **{name}** did not finish: {why}" for name, why in compared.stopped.items()]
    lines += [
        "- These are few sessions. Measure your own.",
    ]
    return "\n".join(["## Caveats", "", *lines, ""])


def _again() -> str:
    return """## Reproduction

```
make bench-peers                                  # the demo session
make bench-peers SESSIONS="a.jsonl b.jsonl.gz"    # your sessions, in any format that pagein replay reads
```

The first run installs the programs below `out/peers/`, by the hashes of `benchmarks/peers/locks/`; the largest takes a gigabyte. They run
without the variables of your shell, and their Python code connects only to loopback. `out/peers.json` has all figures of each session.
"""
