"""Measure the cost of a question about a large text by child models, and by reading the text into the root's window; and the
time of many questions.

    python scripts/measure_delegation.py [--sizes 100,1000,10000] [--targets 200]

Everything runs against the simulated provider over real sockets, with the newest prices. The children count records and add up, so
that the answer is known. Prints three tables for docs/delegation.md.

Rules of this file
------------------
1. The text is stored as objects of 50 KB, the most that one recall shows. The root reads one object a call, as it would with `peek`.
2. The root's conversation has `HEAD` tokens before it reads, and goes on for `LATER` calls behind its answer. Its breakpoints are at the
   previous end and at the end.
3. The cost of children includes what the root pays for their answers, which enter its window instead of the text.
"""

import argparse
import asyncio
import heapq
import json
import random
import re
import sys
import tempfile
from collections.abc import Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from aiohttp import ClientResponse, ClientSession

import pagein
from pagein.delegation.call_tree import CallTree
from pagein.delegation.delegation import Delegation
from pagein.engine.session import Session
from pagein.gateway.stream.upstream_models import UpstreamModels
from pagein.model.delegation_notes import DelegationKind
from pagein.model.read_caps import DEFAULT_CAPS
from pagein.policy.delegation.answer_texts import report_text
from pagein.policy.delegation.limits import DelegationLimits, DelegationSettings
from pagein.policy.delegation.reports import Question, Report
from pagein.providers.cache_simulator import Breakpoint, CacheRequest, CacheSimulator, Chains, bill
from pagein.providers.prices.price_lookup import prices
from pagein.providers.tokens.counters import counter_for
from pagein.simulator import ProviderCall, SimulatedProvider
from pagein.tools.calls import Call
from pagein.tools.child_tools import ChildToolset
from pagein.tools.ingest import INGEST

ROOT = "claude-sonnet-5-5"
CHILDREN = ("claude-sonnet-5-5", "claude-haiku-4-5")
HEAD = 20_000
LATER = 20
ERRORS = 0.02
OBJECT = 50_000
QUESTION = "How many records have the level ERROR?"
_STEP = 1_000  # tokens that each later call adds
_ANSWER = 300


@dataclass(frozen=True, slots=True)
class Measured:
    """A way to answer: dollars for the answer, dollars with the later calls, number of child calls, and whether the answer is right."""

    usd: float
    later: float
    calls: int
    is_right: bool


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sizes", default="100,1000,10000", help="sizes of the text in KB")
    parser.add_argument("--targets", type=int, default=200)
    asked = parser.parse_args(arguments)
    print(f"| text | way | the answer | with {LATER} later calls | child calls | right |\n|---|---|---|---|---|---|")
    for size in map(int, asked.sizes.split(",")):
        for way, measured in measure_ways(size * 1000):
            told = ("-", "-", "-", "-") if measured is None else _cells(measured)
            print(f"| {size:,} KB | {way} | {' | '.join(told)} |", flush=True)
    print()
    measure_further_questions()
    print()
    measure_schedule(asked.targets)
    return 0


def _cells(one: Measured) -> tuple[str, str, str, str]:
    return f"${one.usd:.3f}", f"${one.later:.3f}", str(one.calls), "yes" if one.is_right else "NO"


def measure_ways(size: int) -> "list[tuple[str, Measured | None]]":
    """Return the ways to answer a question about a text of this many characters."""
    texts, errors = _logs(size)
    found: list[tuple[str, Measured | None]] = [("read into the root's window", root_cost(texts))]
    found += [(f"`batch` with {model}", child_cost(texts, errors, "batch", model)) for model in CHILDREN]
    found.append(
        (f"`query` of one object with {CHILDREN[-1]}", child_cost(["".join(texts)], errors, "query", CHILDREN[-1]))
    )
    return found


def _logs(size: int) -> tuple[list[str], int]:
    drawn, texts, errors = random.Random(16), list[str](), 0  # noqa: S311 -- no secret
    lines: list[str] = []
    held = 0
    for number in range(1, size):
        is_error = drawn.random() < ERRORS
        errors += is_error
        level = "ERROR" if is_error else "INFO"
        lines.append(
            f"2026-11-23 10:00:00 {level} request {number} of {drawn.randrange(10**9)} took {number % 97} ms\n"
        )
        held += len(lines[-1])
        if held >= OBJECT or held + sum(map(len, texts)) >= size:
            texts.append("".join(lines))
            lines, held = [], 0
        if sum(map(len, texts)) >= size:
            break
    return texts, errors


# --- the root ---


def root_cost(texts: Sequence[str]) -> Measured | None:
    """Return the cost of reading texts into the window, one a call; None if they do not fit."""
    found, count = prices(ROOT), counter_for(ROOT).count
    sizes = [int(count(text)) for text in texts]
    if HEAD + sum(sizes) + LATER * _STEP > found.window:
        return None
    usd, later = _conversation([*sizes, *[_STEP] * LATER], len(sizes))
    return Measured(usd, later, 0, is_right=True)


def _conversation(sizes: Sequence[int], reads: int) -> tuple[float, float]:
    """Return what a conversation costs up to the answer behind its reads, and in the whole, in dollars."""
    found = prices(ROOT)
    simulator, chains = CacheSimulator(found.cache), Chains()
    chain = [chains.extend(Chains.ROOT, "head")]
    total = [float(HEAD)]
    # the head is in the cache already: the question comes in the middle of a session
    simulator.serve(CacheRequest(0.0, tuple(chain), tuple(total), (Breakpoint(1),)))
    bit, answered = 0.0, 0.0
    for place, size in enumerate(sizes):
        chain.append(chains.extend(chain[-1], place))
        total.append(total[-1] + size)
        marks = (Breakpoint(len(chain) - 1), Breakpoint(len(chain)))
        output = _ANSWER if place == reads - 1 else 100
        served = simulator.serve(CacheRequest(20.0 * (place + 1), tuple(chain), tuple(total), marks, output))
        bit += bill(served, found)
        if place == reads - 1:
            answered = bit
    return found.usd(answered) or 0.0, found.usd(bit) or 0.0


# --- the children ---


def child_cost(texts: Sequence[str], errors: int, kind: DelegationKind, model: str) -> Measured:
    """Return the cost of asking children about texts, with what the root pays for their answers."""
    limits = DelegationLimits(calls=10_000, concurrency=8, usd=10_000, confirm_above=10_000)
    with tempfile.TemporaryDirectory() as folder, SimulatedProvider(_count_errors) as provider:
        report, shown = _ask(Path(folder), provider, texts, Question(kind, QUESTION, ()), model, limits)
        paid = provider.bill().usd or 0.0
    told = sum(int(one.answer) for one in report.results)
    size = int(counter_for(ROOT).count(shown))
    usd, later = _conversation([size, *[_STEP] * LATER], 1)
    return Measured(paid + usd, paid + later, report.calls, told == errors and report.partial is None)


def _ask(
    folder: Path,
    provider: SimulatedProvider,
    texts: Sequence[str],
    question: Question,
    model: str,
    limits: DelegationLimits,
) -> tuple[Report, str]:
    with pagein.open(folder / "store.db", workspace=folder) as engine:
        session = engine.session("main", workspace=folder)
        ids = [
            one
            for begin in range(0, len(texts), 100)
            for one in _ingested(session, folder, texts[begin : begin + 100], begin)
        ]
        asked = Delegation(
            session.recalls.children,
            lambda: _Upstream(provider, model),
            ChildToolset(session),
            DelegationSettings(limits),
            tree=CallTree(),
        )
        named = Question(question.kind, question.instructions, tuple(ids))
        report = asyncio.run(asked.ask(named))
        return report, report_text(report, DEFAULT_CAPS)


def _ingested(session: Session, folder: Path, texts: Sequence[str], begin: int) -> list[str]:
    names = [f"part{begin + place:05}.log" for place in range(len(texts))]
    for name, text in zip(names, texts, strict=True):
        (folder / name).write_text(text, encoding="utf-8")
    details: Any = INGEST.answer(session, Call({"paths": names})).details
    by_path = {str(one["path"]): str(one["id"]) for one in details["files"]}
    return [by_path[name] for name in names]


class _Upstream(UpstreamModels):
    """Children over a thin client, whose own time hardly counts."""

    def __init__(self, provider: SimulatedProvider, model: str) -> None:
        self._http = ClientSession()

        def send(body: bytes, _: str) -> AbstractAsyncContextManager[ClientResponse]:
            headers = {"content-type": "application/json", "x-api-key": "key"}
            return self._http.post(provider.url + "/v1/messages", data=body, headers=headers)

        super().__init__(send, "anthropic", model)

    async def close(self) -> None:
        await self._http.close()


def _count_errors(asked: ProviderCall) -> list[dict[str, Any]]:
    shown = "".join(block["text"] for block in asked.body["messages"][0]["content"])
    lines = [line for line in shown.splitlines() if line.startswith('{"parts"')]
    if lines:
        counted = sum(int(json.loads(line)["answer"]) for line in lines)
    else:
        counted = len(re.findall(r"^2026\S* \S* ERROR", _own(shown), re.MULTILINE))
    evidence = re.findall(r"^2026.* ERROR .*$", shown, re.MULTILINE)[:2]
    return [{"text": json.dumps({"answer": str(counted), "confidence": "high", "evidence": evidence})}]


def _own(shown: str) -> str:
    """Return the part itself, without the context around it."""
    label = re.search(r"^\[([0-9a-f]+) part \d+ of \d+ .*\]$", shown, re.MULTILINE)
    if label is None:
        return shown
    return re.split(rf"^\[{label[1]} ", shown[label.end() :], maxsplit=1, flags=re.MULTILINE)[0]


# --- further questions ---


def measure_further_questions(model: str = CHILDREN[-1]) -> None:
    """Print what several questions about one object of 50 KB cost, one after the other, against the same calls without a cache."""
    (text, *_), _ = _logs(OBJECT)
    print("| questions | without a cache | as asked | saved |\n|---|---|---|---|")
    limits = DelegationLimits(usd=100)
    for count in (1, 2, 3, 5, 10, 20):
        with (
            tempfile.TemporaryDirectory() as folder,
            SimulatedProvider(_count_errors) as provider,
            pagein.open(Path(folder) / "store.db", workspace=folder) as engine,
        ):
            session = engine.session("main", workspace=folder)
            # a text of its own for each row, because the process remembers what was asked about
            ids = _ingested(session, Path(folder), [f"{count} questions\n{text}"], 0)
            asked = Delegation(
                session.recalls.children,
                lambda provider=provider: _Upstream(provider, model),  # type: ignore[misc]
                ChildToolset(session),
                DelegationSettings(limits),
                tree=CallTree(),
            )
            reports = [
                asyncio.run(asked.ask(Question("query", f"{number}: {QUESTION}", tuple(ids))))
                for number in range(count)
            ]
            paid = provider.bill().usd or 0.0
        table = prices(model)
        full = sum(table.usd(one.actual.prompt + table.output * one.actual.output) or 0.0 for one in reports)
        print(f"| {count} | ${full:.3f} | ${paid:.3f} | {1 - paid / full:.0%} |")


# --- time ---


def measure_schedule(targets: int, at_once: int = 16) -> None:
    """Print how long many targets take, with 5 % of calls refused, 2 % broken off and a tenth of the children slow."""
    busy, broken = range(targets // 20), range(targets // 20, targets // 20 + targets // 50)
    limits = DelegationLimits(calls=targets, concurrency=at_once, usd=1000, confirm_above=targets)

    def answer(asked: ProviderCall) -> list[dict[str, Any]]:
        number = int((re.search(r"record (\d+)", json.dumps(asked.body["messages"])) or ["", "0"])[1])
        turn: list[dict[str, Any]] = [{"wait": _seconds(number)}, {"text": json.dumps({"answer": str(number)})}]
        if number in busy:
            turn.append({"error": 429, "retry_after": 1})
        return [*turn, {"break": None}] if number in broken else turn

    texts = [f"record {number}\n" for number in range(targets)]
    with tempfile.TemporaryDirectory() as folder, SimulatedProvider(answer) as provider:
        report, _ = _ask(Path(folder), provider, texts, Question("batch", "Which number?", ()), CHILDREN[-1], limits)
        calls = len(provider.requests)
    ideal = _schedule(targets, at_once)
    right = sum(one.answer == str(number) for number, one in enumerate(report.results))
    print("| targets | answered | model calls | wall time | ideal schedule | ratio |\n|---|---|---|---|---|---|")
    ratio = report.seconds / ideal
    print(f"| {targets} | {right} | {calls} | {report.seconds:.1f} s | {ideal:.1f} s | {ratio:.2f} |")


def _schedule(targets: int, at_once: int) -> float:
    """Return how long a schedule without failures and overhead takes that begins the targets in their order."""
    ends = [0.0] * at_once
    for number in range(targets):
        heapq.heapreplace(ends, ends[0] + _seconds(number))
    return max(ends)


def _seconds(number: int) -> float:
    drawn = random.Random(number).random()  # noqa: S311 -- no secret
    return 6.0 if drawn < 0.1 else 1.0 + drawn  # noqa: PLR2004 -- one in ten is slow


if __name__ == "__main__":
    sys.exit(main())
