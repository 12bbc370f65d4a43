"""Measure pagein against its bar: what each preset costs, loses and risks on recorded sessions, at several prices.

    python scripts/measure_bar.py DIR|ARCHIVE... [--quick] [--json] [--jobs N] [--prepare] [--arguments]

The tables of docs/reference/residency-results.md are what this prints. Ratios are costs against append-only with the lifetime that the host
used, recalls charged, stress recalls included; macro is the mean over the coding sources, each counting once. `pagein` is the preset
`careful`. A name that ends with `-quiet` sends no keep-alive requests; `...-without-arguments` masks no
arguments, as where no hook can stop a call. Rows about named sources stand only where sessions of these sources are given.
`--quick` measures at one price. `--prepare` measures the time of preparing a request as well, best on a machine that is otherwise
idle. `--new-store` measures every policy as in a store whose earlier sessions have saved nothing by cache lifetimes; without it, they
have saved all that a session may expose. `--arguments` measures `pagein` with the setting `arguments`: text of files leaves the arguments of old calls.
"""

import argparse
import json
import statistics
import sys
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from pagein import wiring  # noqa: E402 the benchmarks beside the sources must be found first
from pagein.model.bill import Bill, Figures, SessionBill  # noqa: E402
from pagein.policy.eviction.argument_masks import CAREFUL  # noqa: E402
from pagein.policy.eviction.presets import DEFAULT, Preset  # noqa: E402
from pagein.replay.policies.ablation import ablation, layers_missing  # noqa: E402
from pagein.replay.policies.pagein_policy import USUAL as USUAL_SETTINGS  # noqa: E402
from pagein.replay.run import ReplayRequest, replay  # noqa: E402

BASELINE = "append"
FULL, QUIET = "pagein", "pagein-quiet"
PRESETS: tuple[Preset, ...] = ("balanced", "thrifty")
POLICIES = (FULL, QUIET, *(f"{FULL}-{preset}{suffix}" for preset in PRESETS for suffix in ("", "-quiet")))
UNMASKED = tuple(f"{FULL}-{preset}-without-arguments" for preset in PRESETS)
OPTIMUM = "optimum"
RESULTS_ALONE = "optimum-results"
USUAL, CHEAP_READS, OPENAI_LIKE = "generic:r=.1,w=1.25", "generic:r=.05,w=1.25", "gpt-5.1"
PI_MONO = "pi-mono"
MANY_QUOTES = 200
CLAUDE_CODE = ("entireio-cli", "oh-my-posh", "context-evaluator")
CODEX, PI_LIKE = "nimbus", "agentv"
CONTROL = "tau-airline"
WORSE = 1.02


@dataclass(frozen=True, slots=True)
class Row:
    """A row of the bar, with a cell for each policy."""

    name: str
    cells: dict[str, str]


@dataclass(frozen=True, slots=True)
class Measured:
    """The bills of the same sessions at each of the prices; None for a price that was not asked for."""

    usual: Bill
    cheap_reads: Bill | None = None
    openai_like: Bill | None = None


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure, print, and return the exit status: 2 where no session could be used."""
    asked = _parser().parse_args(arguments)
    usual = _replayed(asked, USUAL, (*POLICIES, OPTIMUM, RESULTS_ALONE))
    for preset in PRESETS:
        more = _replayed(asked, USUAL, (BASELINE,), ("arguments",), preset)
        usual = _joined(usual, more, f"{FULL}-{preset}-without-arguments")
    measured = Measured(usual)
    if not asked.quick:
        measured = Measured(usual, _replayed(asked, CHEAP_READS, POLICIES), _replayed(asked, OPENAI_LIKE, POLICIES))
    if not usual["sessions"]:
        print("no session could be used", file=sys.stderr)
        return 2
    rows = [*_costs(measured), *_harm(measured), *_gaps(usual)]
    if asked.prepare:
        rows.append(_prepare())
    if asked.json:
        print(
            json.dumps(
                {"sessions": usual["sessions"], "rows": [{"row": row.name, **row.cells} for row in rows]}, indent=1
            )
        )
    else:
        print(f"{usual['sessions']} sessions, {_sum(usual, BASELINE)['calls']:,.0f} model calls\n")
        print(table(rows))
    return 0


def _joined(bill: Bill, more: Bill, name: str) -> Bill:
    """The bill with one more policy, measured on the same sessions."""
    for mine, theirs in zip(bill["per_session"], more["per_session"], strict=True):
        mine["policies"][name] = theirs["policies"][name]
    for source, group in bill["groups"].items():
        group["policies"][name] = more["groups"][source]["policies"][name]
    if name in more["macro"]:
        bill["macro"][name] = more["macro"][name]
    if name in more["policies"]:
        bill["policies"][name] = more["policies"][name]
    return bill


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description="Measure pagein against its bar.")
    parser.add_argument("paths", nargs="+", type=Path, help="sessions, folders or archives, as for pagein replay")
    parser.add_argument("--json", action="store_true", help="one JSON object instead of the table")
    parser.add_argument("--jobs", type=int, default=0, help="processes at work; 0 is one per core")
    parser.add_argument("--arguments", action="store_true", help="mask arguments of old calls, as the setting does")
    parser.add_argument("--new-store", action="store_true", help="measure without savings of earlier sessions")
    parser.add_argument("--quick", action="store_true", help="measure at a read price of .1 only")
    parser.add_argument("--prepare", action="store_true", help="measure the time of preparing a request, too")
    return parser


def _replayed(
    asked: argparse.Namespace,
    prices: str,
    policies: tuple[str, ...],
    without: tuple[str, ...] = (),
    preset: Preset = "careful",
) -> Bill:
    settings = USUAL_SETTINGS
    if asked.arguments:
        settings = replace(settings, residency=replace(settings.residency, arguments=CAREFUL))
    names = {name: name for name in policies}
    if without:
        names[f"{FULL}-{preset}-without-{'+'.join(without)}"] = ablation(without, preset)
    if asked.new_store:
        names = {name: _in_new_store(name) for name in names}
    order = ReplayRequest(
        tuple(asked.paths), prices=prices, policies=tuple(names.values()), jobs=asked.jobs, usual=settings
    )
    return _renamed(replay(order, wiring.open_for_replay).bill, {replayed: name for name, replayed in names.items()})


def _in_new_store(policy: str) -> str:
    """The policy without what it may expose of the savings of others; another policy unchanged."""
    missing = layers_missing(policy)
    if missing is None:
        return policy
    preset = next((one for one in PRESETS if policy.startswith(f"{FULL}-{one}")), DEFAULT)
    quiet = ("keep-alive",) if policy.endswith("-quiet") else ()
    return ablation((*missing, *quiet, "reserve"), preset)


def _renamed(bill: Bill, names: dict[str, str]) -> Bill:
    """The bill with other names of policies."""
    for one in (bill, *bill["per_session"], *bill["groups"].values()):
        one["policies"] = {names.get(name, name): figures for name, figures in one["policies"].items()}
    bill["macro"] = {names.get(name, name): ratio for name, ratio in bill["macro"].items()}
    return bill


def table(rows: Iterable[Row]) -> str:
    """The rows as a table of Markdown."""
    columns = (*POLICIES, *UNMASKED)
    lines = [["row", *(f"`{name}`" for name in columns)], ["---"] * (1 + len(columns))]
    lines += [[row.name, *(row.cells.get(name, "") for name in columns)] for row in rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


# ── what it costs ──────────────────────────────────────────────────────────


def _costs(measured: Measured) -> Iterable[Row]:
    usual, gpt = measured.usual, measured.openai_like
    yield _row("cost, macro, read price .1", usual, _macro)
    yield _row(
        "the same without pi-mono", usual, lambda bill, name: _of_sources(bill, name, _coding(bill, but=PI_MONO))
    )
    for source in _coding(usual):
        yield _row(source, usual, partial(_of_sources, sources=(source,)))
    yield _row("the median session, all", usual, lambda bill, name: _median(bill, name, _coding(bill)))
    yield _row("the median session, Claude Code", usual, lambda bill, name: _median(bill, name, CLAUDE_CODE))
    yield _row("three Claude Code sources", usual, lambda bill, name: _of_sources(bill, name, CLAUDE_CODE))
    yield _row("the same, main sessions alone", usual, _main_sessions)
    if measured.cheap_reads is not None:
        yield _row("cost, macro, read price .05", measured.cheap_reads, _macro)
    if gpt is not None:
        yield _row(f"prices of `{OPENAI_LIKE}`: {CODEX}", gpt, lambda bill, name: _of_sources(bill, name, (CODEX,)))
        yield _row(f"prices of `{OPENAI_LIKE}`: {PI_LIKE}", gpt, lambda bill, name: _of_sources(bill, name, (PI_LIKE,)))
        yield _row(f"prices of `{OPENAI_LIKE}`: macro", gpt, _macro)
    yield _row("control group (tau-airline)", usual, lambda bill, name: _of_sources(bill, name, (CONTROL,)))


def _row(name: str, bill: Bill, cell: Callable[[Bill, str], str]) -> Row:
    shown = (policy for policy in bill["policies"] if policy not in (BASELINE, OPTIMUM, RESULTS_ALONE))
    return Row(name, {policy: cell(bill, policy) for policy in shown})


def _coding(bill: Bill, but: str = "") -> tuple[str, ...]:
    """The sources of coding sessions, without one."""
    return tuple(one for one in bill["groups"] if one not in (CONTROL, but))


def _median(bill: Bill, policy: str, sources: Sequence[str]) -> str:
    found = [
        one["policies"][policy]["cost"] / one["policies"][BASELINE]["cost"]
        for one in bill["per_session"]
        if one["source"] in sources and one["policies"][BASELINE]["cost"]
    ]
    return _ratio(statistics.median(found)) if found else ""


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
    prices = (("", usual), (", read price .05", measured.cheap_reads), (f", `{OPENAI_LIKE}`", measured.openai_like))
    bills = [(at, bill) for at, bill in prices if bill is not None]
    yield _row("recalls per 100 calls, textual", usual, _faults)
    total = _sum(usual, BASELINE)["quotes_total"] or 0
    for at, bill in bills:
        yield _row(f"quotes lost against append-only, of {total:,.0f}{at}", bill, _lost)
    yield _row(f"largest share of quotes lost, sources with {MANY_QUOTES} and more", usual, _lost_at_most)
    for at, bill in bills:
        yield _row(f"sessions over 2 % dearer by our own doing{at}; the worst", bill, _dearer)
    yield _row("requests refused; bytes lost", usual, _broken)


def _gaps(bill: Bill) -> Iterable[Row]:
    """The share of the way from append-only to the optimum, and to that of results alone, by agent and kind of session."""
    sessions = [one for one in bill["per_session"] if one["source"] in _coding(bill)]
    kinds = {
        **{
            f"agent {agent}": [one for one in sessions if one["agent"] == agent]
            for agent in {one["agent"] for one in sessions}
        },
        "sessions with edits that quote": [one for one in sessions if one["policies"][BASELINE]["quotes_total"]],
        "sessions without": [one for one in sessions if not one["policies"][BASELINE]["quotes_total"]],
    }
    for limit, told in ((OPTIMUM, "optimum"), (RESULTS_ALONE, "optimum of results alone")):
        for name, some in sorted(kinds.items()):
            yield _row(f"share of the gap to the {told}: {name}, {len(some)}", bill, partial(_closed, some, limit))


def _closed(sessions: Sequence[SessionBill], limit: str, _: Bill, policy: str) -> str:
    base, ours, best = (sum(one["policies"][name]["cost"] for one in sessions) for name in (BASELINE, policy, limit))
    return _ratio((base - ours) / (base - best)) if base > best else ""


def _sum(bill: Bill, policy: str) -> Figures:
    return bill["policies"][policy]


def _faults(bill: Bill, policy: str) -> str:
    figures = _sum(bill, policy)
    return f"{100 * (figures['faults'] or 0) / max(1, figures['calls'] or 0):.2f}"


def _lost(bill: Bill, policy: str) -> str:
    return f"{_sum(bill, policy)['quotes_lost'] or 0:.0f}"


def _lost_at_most(bill: Bill, policy: str) -> str:
    """The largest share of quotes lost in a source with many quotes."""
    rows = [group["policies"][policy] for group in bill["groups"].values()]
    counts = [(one["quotes_lost"] or 0, one["quotes_total"] or 0) for one in rows]
    shares = [lost / total for lost, total in counts if total >= MANY_QUOTES]
    return f"{100 * max(shares):.1f} %" if shares else ""


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
    return Row("`prepare`, 1 MB of messages, median beyond parsing", {QUIET: f"{took:.1f} ms"})


if __name__ == "__main__":
    sys.exit(main())
