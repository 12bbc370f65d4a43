"""Measure pagein against its bar: what it costs, loses and risks on recorded sessions, by each policy and at several prices.

    python scripts/measure_bar.py DIR|ARCHIVE... [--json] [--jobs N] [--prepare] [--arguments]

The table of docs/residency-results.md is what this prints. Ratios are costs against append-only with the lifetime that the host used, recalls
charged, stress recalls included; macro is the mean over the coding sources, each counting once. Rows about named sources stand only
where sessions of these sources are given. `--prepare` measures the time of preparing a request as well, best on a machine that is
otherwise idle. `--arguments` measures with the setting `arguments`: text of files leaves the arguments of old calls under all settings.
"""

import argparse
import json
import sys
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from pagein import wiring  # noqa: E402 the benchmarks beside the sources must be found first
from pagein.model.bill import Bill, Figures, SessionBill  # noqa: E402
from pagein.policy.eviction.argument_masks import CAREFUL  # noqa: E402
from pagein.replay.policies.pagein_policy import USUAL as USUAL_SETTINGS  # noqa: E402
from pagein.replay.run import ReplayRequest, replay  # noqa: E402

BASELINE = "append"
FULL, QUIET, THRIFTY = "pagein", "pagein-quiet", "pagein-thrifty"
POLICIES = (FULL, QUIET, THRIFTY)
USER_TURNS, UNBOUND = "without-tool-loops", "without-bankroll"
USUAL, CHEAP_READS, OPENAI_LIKE = "generic:r=.1,w=1.25", "generic:r=.05,w=1.25", "gpt-5.1"
CLAUDE_CODE = ("entireio-cli", "oh-my-posh", "context-evaluator")
CODEX, PI_LIKE = "nimbus", "agentv"
CONTROL = "tau-airline"
WORSE = 1.02


@dataclass(frozen=True, slots=True)
class Row:
    """A row of the bar. required: as it stands there, empty where it stands in no bar."""

    name: str
    required: str
    cells: dict[str, str]


@dataclass(frozen=True, slots=True)
class Measured:
    """The bills of the same sessions at each of the prices."""

    usual: Bill
    cheap_reads: Bill
    openai_like: Bill


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure, print, and return the exit status: 2 where no session could be used."""
    asked = _parser().parse_args(arguments)
    measured = Measured(
        _replayed(asked, USUAL, POLICIES, ("tool-loops", "bankroll")),
        _replayed(asked, CHEAP_READS, POLICIES),
        _replayed(asked, OPENAI_LIKE, (FULL, THRIFTY)),
    )
    if not measured.usual["sessions"]:
        print("no session could be used", file=sys.stderr)
        return 2
    rows = [*_costs(measured), *_harm(measured)]
    if asked.prepare:
        rows.append(_prepare())
    if asked.json:
        told = [{"row": row.name, "required": row.required, **row.cells} for row in rows]
        print(json.dumps({"sessions": measured.usual["sessions"], "rows": told}, indent=1))
    else:
        print(f"{measured.usual['sessions']} sessions, {_sum(measured.usual, BASELINE)['calls']:,.0f} model calls\n")
        print(table(rows))
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description="Measure pagein against its bar.")
    parser.add_argument("paths", nargs="+", type=Path, help="sessions, folders or archives, as for pagein replay")
    parser.add_argument("--json", action="store_true", help="one JSON object instead of the table")
    parser.add_argument("--jobs", type=int, default=0, help="processes at work; 0 is one per core")
    parser.add_argument("--arguments", action="store_true", help="mask arguments of old calls, as the setting does")
    parser.add_argument("--prepare", action="store_true", help="measure the time of preparing a request, too")
    return parser


def _replayed(asked: argparse.Namespace, prices: str, policies: tuple[str, ...], without: tuple[str, ...] = ()) -> Bill:
    settings = USUAL_SETTINGS
    if asked.arguments:
        settings = replace(settings, residency=replace(settings.residency, arguments=CAREFUL))
    order = ReplayRequest(
        tuple(asked.paths), prices=prices, policies=policies, without=without, jobs=asked.jobs, usual=settings
    )
    return replay(order, wiring.open_for_replay).bill


def table(rows: Iterable[Row]) -> str:
    """The rows as a table of Markdown."""
    columns = (*POLICIES, USER_TURNS, UNBOUND)
    lines = [["row", "required", *(f"`{name}`" for name in columns)], ["---"] * (2 + len(columns))]
    lines += [[row.name, row.required, *(row.cells.get(name, "") for name in columns)] for row in rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


# ── what it costs ──────────────────────────────────────────────────────────


def _costs(measured: Measured) -> Iterable[Row]:
    usual, gpt = measured.usual, measured.openai_like
    yield _row("cost, macro, read price .1 (edits at fresh user turns alone: .78)", ".74", usual, _macro)
    yield _row("cost, macro, read price .05", ".75", measured.cheap_reads, _macro)
    yield _row("three Claude Code sources, .1", ".78", usual, lambda bill, name: _of_sources(bill, name, CLAUDE_CODE))
    yield _row("the same, main sessions alone", "", usual, _main_sessions)
    yield _row(f"prices of `{OPENAI_LIKE}`: {CODEX}", ".84", gpt, lambda bill, name: _of_sources(bill, name, (CODEX,)))
    yield _row(
        f"prices of `{OPENAI_LIKE}`: {PI_LIKE}", ".68", gpt, lambda bill, name: _of_sources(bill, name, (PI_LIKE,))
    )
    yield _row(f"prices of `{OPENAI_LIKE}`: macro", "", gpt, _macro)
    yield _row("control group (tau-airline)", "1", usual, lambda bill, name: _of_sources(bill, name, (CONTROL,)))


def _row(name: str, required: str, bill: Bill, cell: Callable[[Bill, str], str]) -> Row:
    return Row(name, required, {policy: cell(bill, policy) for policy in bill["policies"] if policy != BASELINE})


def _macro(bill: Bill, policy: str) -> str:
    return _ratio(bill["macro"][policy]["ratio"]) if policy in bill["macro"] else ""


def _of_sources(bill: Bill, policy: str, sources: Sequence[str]) -> str:
    """The mean ratio of these sources, empty where none of them was given."""
    found = [bill["groups"][one]["policies"] for one in sources if one in bill["groups"]]
    return _ratio(sum(rows[policy]["cost"] / rows[BASELINE]["cost"] for rows in found) / len(found)) if found else ""


def _main_sessions(bill: Bill, policy: str) -> str:
    """As the row above, without sub-agents."""
    ratios = []
    for source in CLAUDE_CODE:
        rows = [one["policies"] for one in bill["per_session"] if one["source"] == source and one["parent"] is None]
        if rows:
            ratios.append(sum(one[policy]["cost"] for one in rows) / sum(one[BASELINE]["cost"] for one in rows))
    return _ratio(sum(ratios) / len(ratios)) if ratios else ""


def _ratio(value: float) -> str:
    return f"{value:.3f}".removeprefix("0")


# ── what it loses and risks ────────────────────────────────────────────────


def _harm(measured: Measured) -> Iterable[Row]:
    usual = measured.usual
    hundredth = round((_sum(usual, BASELINE)["quotes_total"] or 0) / 100)
    all_prices = (("", usual), (", read price .05", measured.cheap_reads), (f", `{OPENAI_LIKE}`", measured.openai_like))
    yield _row("recalls per 100 calls, textual", "2.5", usual, _faults)
    for at, bill in all_prices:
        yield _row(f"quotes lost against append-only{at}", str(hundredth), bill, _lost)
    for at, bill in all_prices:
        yield _row(f"sessions over 2 % dearer by our own doing{at}; the worst", "0", bill, _dearer)
    yield _row("requests refused; bytes lost", "0; 0", usual, _broken)


def _sum(bill: Bill, policy: str) -> Figures:
    return bill["policies"][policy]


def _faults(bill: Bill, policy: str) -> str:
    figures = _sum(bill, policy)
    return f"{100 * (figures['faults'] or 0) / max(1, figures['calls'] or 0):.2f}"


def _lost(bill: Bill, policy: str) -> str:
    return f"{_sum(bill, policy)['quotes_lost'] or 0:.0f}"


def _broken(bill: Bill, policy: str) -> str:
    figures = _sum(bill, policy)
    return f"{figures['refused'] or 0:.0f}; {figures['unrecoverable_bytes'] or 0:.0f}"


def own_doing(row: SessionBill, policy: str) -> float:
    """What a session cost without what recalls cost, against append-only."""
    figures, base = row["policies"][policy], row["policies"][BASELINE]["cost"]
    return (figures["cost"] - (figures["recall_cost"] or 0)) / base if base else 1.0


def _dearer(bill: Bill, policy: str) -> str:
    ratios = [own_doing(row, policy) for row in bill["per_session"]]
    return f"{sum(one > WORSE for one in ratios)}; {100 * (max(ratios, default=1.0) - 1):+.1f} %"


def _prepare() -> Row:
    from benchmarks.bench_prepare import measure

    took = measure()["1 MB: beyond parsing, ms at the median"]
    return Row("`prepare`, 1 MB of messages, median beyond parsing", "5 ms", {QUIET: f"{took:.1f} ms"})


if __name__ == "__main__":
    sys.exit(main())
