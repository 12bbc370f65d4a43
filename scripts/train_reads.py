"""Train the odds that an edit quotes a read of a file (`policy/eviction/quote_odds_figures.py`) on recorded sessions.

    python scripts/train_reads.py DIR|ARCHIVE... [--write] [--jobs N]

The counts come from the fold that the engine decides with: every read of a file is judged at each fourth idle call, as long as it stands
in the window, and as no other row of the preset `careful` lets it go: so the odds learn what the table does not know. A read counts as quoted if an edit, or a line of a patch, repeats later what no newer read and no other block shows. The fit is
a logistic regression by Newton's method with a ridge; its coefficients are rounded to thousandths. Nothing is drawn at random.

Printed are, fitted on all sources and for each source fitted on the others alone: the area under the curve; and for the rows of each preset
without and with the odds the share of carried token-calls that is spared if every read left at once, and the quotes that are lost then. The
file holds sums over all sessions, no text of any. `--write` writes it.
"""

import argparse
import json
import math
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from multiprocessing import Pool
from pathlib import Path
from typing import Final

from pagein.engine.log.state import START, Rules, State
from pagein.engine.log.state_fold import step
from pagein.model.entries import CompactionEntry, MessageEntry
from pagein.model.messages import Message, ToolCall, ToolResult
from pagein.policy.eviction import quote_odds_figures
from pagein.policy.eviction.presets import PRESETS
from pagein.policy.eviction.quote_odds import TERMS, QuoteOdds, ReadCounts, chance
from pagein.policy.eviction.residency import PRICED, Residency
from pagein.policy.eviction.residency_rules import USUAL, ResidencyRules, judged_reads
from pagein.ports import TokenCounter
from pagein.providers.tokens.counters import ratio_counter
from pagein.replay.prompt.model_calls import Block, RecordedCalls, gather
from pagein.replay.prompt.recorded_needs import needs_of
from pagein.replay.readers import Source, find, read_source

TARGET: Final = Path(quote_odds_figures.__file__)
RIDGE: Final = 20.0
TRAINED: Final = "careful"
"""The preset whose other rows leave the reads to the odds."""
YOUNG: Final = 5
"""Calls for which a result that is no read stays in any case."""
SMALL: Final = 700
"""Characters below which a result never leaves."""


@dataclass(slots=True)
class Read:
    """A read of a file. last: the last call whose window holds it. judged: call and terms of each judgement. leaves: by preset."""

    tokens: int
    born: int
    last: int
    judged: list[tuple[int, tuple[int, ...]]] = field(default_factory=list)
    leaves: dict[str, int] = field(default_factory=dict)
    quoted: int = -1


@dataclass(slots=True)
class Session:
    """The reads of a session by call id, and the quotes that reads alone show: the call, and the reads."""

    source: str
    reads: dict[str, Read]
    quotes: list[tuple[int, tuple[str, ...]]]


@dataclass(frozen=True, slots=True)
class Row:
    """A judgement. quoted: whether the read is quoted later."""

    source: str
    values: tuple[int, ...]
    quoted: bool


@dataclass(frozen=True, slots=True)
class _Recorder(QuoteOdds):
    """Odds that write down each judgement, and let nothing go."""

    seen: list[tuple[str, tuple[int, ...]]] = field(default_factory=list)

    def reasons_of_unlikely(self, reads: Iterable[ReadCounts], quotes: int) -> dict[str, str]:
        del quotes
        self.seen.extend((read.call_id, tuple(int(term.value(read)) for term in TERMS.values())) for read in reads)
        return {}


def main(arguments: Sequence[str] | None = None) -> int:
    """Train, print and return the exit status: 2 where no read could be used."""
    asked = _parser().parse_args(arguments)
    sources = [one for one in find(asked.paths) if isinstance(one, Source)]
    with Pool(asked.jobs) as pool:
        sessions = [one for some in pool.imap_unordered(_sessions_of, sources, chunksize=4) for one in some]
    sessions.sort(key=lambda one: (one.source, sorted(one.reads)))
    rows = [row for session in sessions for row in _rows(session)]
    if not any(row.quoted for row in rows):
        print("no read of these sessions is quoted", file=sys.stderr)
        return 2
    names = sorted({row.source for row in rows})
    odds = fitted(rows)
    print(f"{sum(len(one.reads) for one in sessions):,} reads, {len(rows):,} judgements, {len(names)} sources\n")
    others = {name: fitted([row for row in rows if row.source != name]) for name in names if _is_fit(rows, name)}
    _print_terms(odds)
    _print_areas(rows, odds, others)
    _print_frontier(sessions, lambda _: odds, "fitted on all sources", asked.limits)
    if others:
        _print_frontier(sessions, lambda name: others.get(name, odds), "each source fitted on the others", asked.limits)
    if asked.write:
        TARGET.write_text(_text(odds, names), encoding="utf-8")
        print(f"\nwritten: {TARGET.name}")
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description="Train the odds that an edit quotes a read.")
    parser.add_argument("paths", nargs="+", type=Path, help="sessions, folders or archives, as for pagein replay")
    parser.add_argument("--write", action="store_true", help="write the module with the figures")
    parser.add_argument(
        "--limits", nargs="*", type=int, default=(), help="further limits, in quotes per million tokens"
    )
    parser.add_argument("--jobs", type=int, default=2, help="processes at work")
    return parser


def _is_fit(rows: Iterable[Row], name: str) -> bool:
    return any(row.quoted for row in rows if row.source != name)


# ── what the sessions show ─────────────────────────────────────────────────


def _sessions_of(source: Source) -> list[Session]:
    found = []
    for session in read_source(source):
        calls = gather(session.entries)
        if calls.calls:
            found.append(_session(session.head.source, calls))
    return found


def _session(name: str, calls: RecordedCalls) -> Session:
    reads: dict[str, Read] = {}
    ends = {call.segment: call.index for call in calls.calls}
    seen: list[tuple[str, tuple[int, ...]]] = []
    everything = ResidencyRules(
        tuple(replace(row, after=replace(row.after, calls=4)) for row in judged_reads(_Recorder(0, (), (), seen)))
    )
    for call, state in _folded(calls, everything):
        for call_id, values in seen:
            reads[call_id].judged.append((call, values))
        seen.clear()
        for one in state.standing.waiting("file read"):
            reads.setdefault(one.call_id, Read(one.tokens, call, ends[calls.calls[call].segment]))
    for preset in PRESETS:
        rules = USUAL.at(preset).without_layer("odds")
        for call, state in _folded(calls, rules):
            for one in state.standing.old():
                if one.call_id in reads:
                    reads[one.call_id].leaves.setdefault(preset, call)
    quotes = list(_quotes(calls, reads))
    for call, holders in quotes:
        newest = reads[holders[-1]]
        newest.quoted = max(newest.quoted, call)
    return Session(name, reads, quotes)


def _folded(calls: RecordedCalls, rules: ResidencyRules) -> Iterator[tuple[int, State]]:
    """Yield the state before each call. Nothing leaves the window but by the host's own compactions."""
    counter = ratio_counter(next((call.model for call in calls.calls if call.model), ""))
    settings = Rules(Residency(rules, PRICED.min_tokens, economics=None, previews=None))
    state, fed, compactions = START, 0, list(calls.compactions)
    for call in calls.calls:
        for message in calls.messages[fed : call.messages_before]:
            while compactions and compactions[0].messages_before <= fed:
                state = step(state, CompactionEntry(compactions.pop(0).kept), settings)
            state = step(state, _weighed(replace(message, usage=None), counter), settings)
            fed += 1
        yield call.index, state


def _weighed(message: Message, counter: TokenCounter) -> MessageEntry:
    """The journal entry of a message, with tokens estimated for results alone: the rest decides nothing here."""
    tokens = [math.ceil(counter.count(one.text, "result")) for one in message.blocks if isinstance(one, ToolResult)]
    return MessageEntry(message, tuple(tokens), sum(tokens))


def _quotes(calls: RecordedCalls, reads: dict[str, Read]) -> Iterator[tuple[int, tuple[str, ...]]]:
    """Yield each text that an edit quotes and that reads alone show, with these reads."""
    for index, needs in enumerate(needs_of(calls, [call.opens_segment for call in calls.calls])):
        quoted = [one.holders or one.spans for one in needs.quotes]
        if not quoted and not needs.needs:
            continue
        made = [block for block in calls.calls[index].reply.blocks if isinstance(block, ToolCall)]
        if any("*** Begin Patch" in call.arguments for call in made):
            quoted += dict.fromkeys(tuple(h.ordinal for h in one.holders) for one in needs.needs if one.kind == "L")
        for holders in quoted:
            blocks = [calls.blocks[ordinal] for ordinal in holders]
            if blocks and not any(_stays(block, index, reads) for block in blocks):
                found = tuple(block.call_id for block in blocks if block.call_id in reads)
                if found:
                    yield index, found


def _stays(block: Block, call: int, reads: dict[str, Read]) -> bool:
    if block.kind != "result":
        return True
    return block.call_id not in reads and (block.chars < SMALL or call - block.born <= YOUNG)


def _rows(session: Session) -> Iterator[Row]:
    for read in session.reads.values():
        by_hand = read.leaves.get(TRAINED, read.last + 1)
        yield from (Row(session.source, values, call <= read.quoted) for call, values in read.judged if call < by_hand)


# ── the fit ────────────────────────────────────────────────────────────────


def fitted(rows: Sequence[Row]) -> QuoteOdds:
    """The odds that fit these judgements best."""
    counted: dict[tuple[int, ...], list[int]] = {}
    for row in rows:
        sums = counted.setdefault(row.values, [0, 0])
        sums[row.quoted] += 1
    size, width = len(rows), len(TERMS)
    means = [sum(v[at] * sum(n) for v, n in counted.items()) / size for at in range(width)]
    spreads = [
        math.sqrt(sum((v[at] - means[at]) ** 2 * sum(n) for v, n in counted.items()) / size) or 1.0
        for at in range(width)
    ]
    cases = [
        ((*((v[at] - means[at]) / spreads[at] for at in range(width)), 1.0), no + yes, yes)
        for v, (no, yes) in sorted(counted.items())
    ]
    weights = _newton(cases, width)
    slopes = [weights[at] / spreads[at] for at in range(width)]
    intercept = weights[width] - sum(slope * mean for slope, mean in zip(slopes, means, strict=True))
    rounded = [round(1000 * slope) for slope in slopes]
    return QuoteOdds(round(1000 * intercept), tuple(zip(TERMS, rounded, strict=True)), tuple(map(round, means)))


def _newton(cases: Sequence[tuple[tuple[float, ...], int, int]], width: int) -> list[float]:
    share = sum(yes for *_, yes in cases) / sum(all_ for _, all_, _ in cases)
    weights = [0.0] * width + [math.log(share / (1 - share))]
    for _ in range(25):
        slope = [-RIDGE * weight for weight in weights[:width]] + [0.0]
        bend = [[RIDGE if at == to < width else 0.0 for to in range(width + 1)] for at in range(width + 1)]
        for values, every, yes in cases:
            p = 1 / (1 + math.exp(-min(max(sum(map(float.__mul__, weights, values)), -30.0), 30.0)))
            left, curve = yes - every * p, every * p * (1 - p)
            for at, value in enumerate(values):
                slope[at] += left * value
                row, by = bend[at], curve * value
                for to in range(at, width + 1):
                    row[to] += by * values[to]
        for at in range(width + 1):
            for to in range(at):
                bend[at][to] = bend[to][at]
        change = _solved(bend, slope)
        weights = [weight + one for weight, one in zip(weights, change, strict=True)]
        if max(map(abs, change)) < 1e-5:  # noqa: PLR2004 far under a thousandth
            break
    return weights


def _solved(matrix: list[list[float]], right: Sequence[float]) -> list[float]:
    """Solve a system of linear equations by elimination."""
    rows = [[*row, value] for row, value in zip(matrix, right, strict=True)]
    for at in range(len(rows)):
        best = max(range(at, len(rows)), key=lambda one: abs(rows[one][at]))
        rows[at], rows[best] = rows[best], rows[at]
        rows[at] = [value / rows[at][at] for value in rows[at]]
        for other in range(len(rows)):
            if other != at and rows[other][at]:
                by = rows[other][at]
                rows[other] = [value - by * own for value, own in zip(rows[other], rows[at], strict=True)]
    return [row[-1] for row in rows]


# ── what is printed ────────────────────────────────────────────────────────


def _logit(odds: QuoteOdds, values: Sequence[int]) -> int:
    return odds.intercept + sum(each * value for (_, each), value in zip(odds.coefficients, values, strict=True))


def _print_terms(odds: QuoteOdds) -> None:
    print(f"intercept {odds.intercept}")
    for (name, each), mean in zip(odds.coefficients, odds.means, strict=True):
        print(f"  {name:24} {each:6}  mean {mean}")


def _print_areas(rows: Sequence[Row], odds: QuoteOdds, others: dict[str, QuoteOdds]) -> None:
    print(f"\narea under the curve: {_area(rows, lambda _: odds):.3f} fitted, ", end="")
    print(f"{_area(rows, lambda name: others.get(name, odds)):.3f} each source fitted on the others")
    for name in sorted({row.source for row in rows}):
        own = [row for row in rows if row.source == name]
        if any(row.quoted for row in own):
            both = _area(own, lambda _: odds), _area(own, lambda name: others.get(name, odds))
            print(f"  {name:20} {both[0]:.3f}  {both[1]:.3f}")


def _area(rows: Iterable[Row], odds_of: Callable[[str], QuoteOdds]) -> float:
    ranked = sorted((_logit(odds_of(row.source), row.values), row.quoted) for row in rows)
    below, area, positive = 0.0, 0.0, 0
    at = 0
    while at < len(ranked):
        end = at
        while end < len(ranked) and ranked[end][0] == ranked[at][0]:
            end += 1
        yes = sum(quoted for _, quoted in ranked[at:end])
        no = end - at - yes
        area += yes * (below + no / 2)
        below, positive, at = below + no, positive + yes, end
    return area / (positive * below) if positive and below else float("nan")


def _print_frontier(
    sessions: Sequence[Session], odds_of: Callable[[str], QuoteOdds], how: str, limits: Sequence[int]
) -> None:
    names = sorted({one.source for one in sessions if one.reads})
    print(f"\nreads alone, each leaving at once, {how}: share spared / quotes lost")
    for preset in PRESETS:
        own = next((row.limit.quotes for row in USUAL.at(preset).rows if row.limit is not None), 0)
        for limit in dict.fromkeys((0, *limits, own)):
            cells = [
                _outcome([one for one in sessions if one.source == name], preset, limit, odds_of) for name in names
            ]
            whole = sum(cell[0] for cell in cells) / max(1, sum(cell[1] for cell in cells))
            macro = sum(cell[0] / max(1, cell[1]) for cell in cells) / len(cells)
            told = " ".join(
                f"{name[:8]} {cell[0] / max(1, cell[1]):.2f}/{cell[2]}" for name, cell in zip(names, cells, strict=True)
            )
            print(f"  {preset:9} {limit:3}  {whole:.3f}, macro {macro:.3f}, lost {sum(c[2] for c in cells):4}  {told}")


def _outcome(
    sessions: Iterable[Session], preset: str, limit: int, odds_of: Callable[[str], QuoteOdds]
) -> tuple[int, int, int]:
    spared = carried = lost = 0
    for session in sessions:
        odds = odds_of(session.source)
        gone = {name: _leaves(read, preset, limit, odds) for name, read in session.reads.items()}
        for name, read in session.reads.items():
            carried += read.tokens * (read.last - read.born + 1)
            spared += read.tokens * max(0, read.last - gone[name] + 1)
        lost += sum(all(gone[name] <= call for name in holders) for call, holders in session.quotes)
    return spared, carried, lost


def _leaves(read: Read, preset: str, limit: int, odds: QuoteOdds) -> int:
    by_hand = read.leaves.get(preset, read.last + 1)
    for call, values in read.judged:
        if call >= by_hand:
            break
        if limit and chance(_logit(odds, values)) < limit * read.tokens:
            return call
    return by_hand


def _text(odds: QuoteOdds, sources: Sequence[str]) -> str:
    """Return the module of the figures, in the project's style."""
    rows = zip(odds.coefficients, odds.means, strict=True)
    lines = (
        '"""The figures of the odds of a quote: coefficients in thousandths of a logit, and the usual value of each term.',
        "",
        "Written by `scripts/train_reads.py`. Sums over sessions: no text of any.",
        '"""',
        "",
        "from collections.abc import Mapping",
        "from typing import Any, Final",
        "",
        "FIGURES: Final[Mapping[str, Any]] = {",
        '    "sources": [',
        *(f"        {json.dumps(name)}," for name in sources),
        "    ],",
        f'    "intercept": {odds.intercept},',
        '    "terms": {',
        *(f'        {json.dumps(name)}: {{"coefficient": {each}, "mean": {mean}}},' for (name, each), mean in rows),
        "    },",
        "}",
    )
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    sys.exit(main())
