"""The page docs/benchmarks.md and the figures behind it."""

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
    "mark moved",
    "messages alone",
    "prompt tokens",
    "cache busts",
    "quotes seen",
    "lost",
    "faults",
    "refused",
    "failed",
    "CPU ms, p50 / p95",
)
OURS_SAY = {
    "append": "nothing leaves; what all others are compared with",
    "rolling": "results older than ten calls become stubs, decided anew at every call",
    "clear": "above 100,000 tokens all results but the last three are cleared, decided anew at every call",
    "pagein-quiet": "the engine as `pagein replay` runs it, at the lifetimes of the host, as all rows here",
}


def page(compared: Compared, arms: Sequence[Arm], date: str) -> str:
    """The whole page."""
    parts = [_head(date), _sessions(compared), _rows(compared, arms)]
    for prices in compared.prices:
        parts += [_prices(compared, prices)]
    parts += [_reading(), _caveats(compared, arms), _again()]
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
    return f"""# Benchmarks: others and pagein on the same sessions

Written by `make bench-peers` on {date}; edits are lost at the next run.

Recorded sessions are put through programs that shorten the context of agents. Each is handed every request of a session as
its agent sent it and says what it would send instead; what that costs, and what the agent would then have missed, is worked
out by the same rules for all. No model takes part: a session goes on as recorded, whatever was cut.
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
    header = ("session", "agent", "calls", "windows", "largest prompt", "cache lifetime", "edits' quotes")
    return "\n".join(["## Sessions", "", *_table(header, rows), ""])


def _rows(compared: Compared, arms: Sequence[Arm]) -> str:
    rows = [(f"`{name}`", compared.ours, OURS_SAY[name]) for name in OURS]
    for arm in arms:
        name = arm.peer.name
        version = compared.versions.get(name) or f"not installed: {compared.absent.get(name, 'not asked for')}"
        rows.append((f"`{arm.name}`", version, arm.does))
    return "\n".join(["## Rows", "", *_table(("row", "version", "what it does here"), rows), ""])


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

Percentages are changes against `append`, the agent as it was recorded with its provider's cache: negative is cheaper.

- **whole bill**: what [replay](replay.md) bills: system prompt and tool schemas, text, thinking and reminders that no log shows
  but whose size is recorded, output, pauses, recorded cache misses, and a recall for each fault. Marks stand where the agent
  would put them: behind the system prompt, at the end of the previous request, at the end. A provider looks for what it has a
  few blocks back from each mark, so a request that was changed further up is written anew from the system prompt on.
- **mark moved**: the same bill for a host that knows where its request was changed and puts a mark right there. Few do. pagein
  sets its marks itself, so it has no such figure.
- **messages alone**: no floor, no hidden text, no pauses, no output, no recalls, and any whole block in common with the request
  before is read. That is how comparisons of such tools are usually made; it shows them at their best, and it is no bill.
- **prompt tokens**: all that were sent. Fewer tokens are no saving by themselves.
- **cache busts**: requests that do not begin with all of the request before (a host's own compaction apart).
- **quotes**: old texts of exact edits. *Seen*: visible in the request that made the edit. *Lost*: visible as recorded and not
  here, looked for before the recall that would bring it back, with everything in view that was recalled earlier.
- **faults**: texts that a later step repeats, long lines or quotes or lines of patches, and that its request does not show. A digest that
  keeps the line is no fault. Each is charged as a recall: one more request, and the text joins the prompt: a slice of at most
  1,500 tokens with peers that can give part of what they stored, the whole original with the others. What a recall brought
  back is never shortened again. There are no random recalls here, for nobody.
- **refused**: requests that a provider would have turned down. **failed**: calls that raised. In both cases the request as
  recorded goes out instead, and is billed.
- **CPU ms**: processor time of one call, inside the peer's own process; for `pagein-quiet`, its whole step of the replay, checks
  included. Times by the clock are in `out/peers.json`; they depend on what else the machine does.
"""


def _caveats(compared: Compared, arms: Sequence[Arm]) -> str:
    peers = {arm.peer.name: arm.peer for arm in arms}
    lines = [f"- **{name}**: {peer.caveat}" for name, peer in peers.items()]
    lines += [f"- **{name}** could not be installed: {why}" for name, why in compared.absent.items()]
    lines += [f"- **{name}** did not finish: {why}" for name, why in compared.stopped.items()]
    lines += [
        "- A recording is fixed. How a model would have gone on with a shortened context, nobody can tell from it.",
        "- These are few sessions. Yours are others: `--sessions` takes them.",
    ]
    return "\n".join(["## Caveats", "", *lines, ""])


def _again() -> str:
    return """## Run it again

```
make bench-peers                                  # the demo session
make bench-peers SESSIONS="a.jsonl b.jsonl.gz"    # sessions of yours, in any form that pagein replay reads
```

The first run installs the peers below `out/peers/`, each in an environment of its own, at the versions and with the hashes of
`benchmarks/peers/locks/`; the largest takes a gigabyte. They run without the variables of your shell, and their Python code can
connect to nothing but loopback. Figures of each session are in `out/peers.json`.
"""
