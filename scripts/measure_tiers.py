"""Measure the cost of the tiered layout: the presets on generated sessions with pinned files, and on tiny instances with a
known optimum.

    python scripts/measure_tiers.py                    the tables of docs/layouts.md
    python scripts/measure_tiers.py --sessions 5       fewer sessions
    python scripts/measure_tiers.py --json             one JSON object

A session has files that are edited now and then, and a conversation that grows. Every request goes through the real
layout, the cache simulator and the price table. Costs are multiples of a lower bound that holds for every order of
files which are sent in full.
"""

import argparse
import itertools
import json
import random
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

from pagein.model.laid_prompts import HistoryMessage, LaidPrompt, LayoutFacts, PromptContents
from pagein.policy.layouts.tiered import TieredLayout
from pagein.policy.tiers.frozen_order import CacheTerms
from pagein.policy.tiers.tier_rules import PAGEIN, SEED, TierRules
from pagein.policy.tiers.tier_steps import TierFacts, step_tiers
from pagein.policy.tiers.tier_values import START, RequestItem, TierState
from pagein.providers.cache_simulator import Breakpoint, CacheRequest, CacheSimulator, Chains, bill
from pagein.providers.prices.price_lookup import prices

PRICES = "generic:r=.1,w=1.25,min=1024"
READ, WRITE = 0.1, 1.25
REQUESTS, GAP = 120, 60.0
AT_FIRST, HOT_FILES, HOT_LIFE, HOT_EDITS, OTHER_EDITS = 0.6, 3, 40, 0.22, 0.03
"""Files there from the start; hot files, requests for which they stay hot, and edits of each; edits of any other."""
THINNING = {".66": 1.0, ".33": 0.5, ".13": 0.2, ".03": 0.05}
"""Edits for each request of a session, and the share of the drawn edits that they are."""
SYSTEM_TOKENS = 6000
PUBLISHED = {
    "seed": {".66": 4.21, ".33": 4.35, ".13": 4.28, ".03": 4.06},
    "seed, history in tiers": {".66": 5.79, ".33": 5.42, ".13": 5.18, ".03": 5.37},
    "append a full copy": {".66": 1.68, ".33": 1.37, ".13": 1.16, ".03": 1.04},
    "append the diff": {".66": 0.97, ".33": 0.98, ".13": 0.99, ".03": 1.00},
}
"""Earlier figures of the same kinds of policies on the same kind of sessions, with 24 files."""


@dataclass(frozen=True)
class Turn:
    """A request: the version of each file that there is, and the sizes of the words before and in it."""

    versions: dict[str, int]
    asked: int
    answered: int


@dataclass(frozen=True)
class PinnedSession:
    """A generated session."""

    sizes: dict[str, int]
    turns: tuple[Turn, ...]


def session(seed: int, files: int, thinning: float) -> PinnedSession:
    """Generate a session, the same for the same arguments. The edits of a thinned session are among those of a full one."""
    draw = random.Random(f"{seed}/{files}")  # noqa: S311 -- no secret
    names = [f"src/file_{number:03}.py" for number in range(files)]
    sizes = {name: int(min(max(draw.lognormvariate(7.313, 0.9), 150), 12_000)) for name in names}
    begins = {name: 0 if draw.random() < AT_FIRST else draw.randrange(REQUESTS) for name in names}
    hot = draw.sample(names, HOT_FILES)
    versions = dict.fromkeys(names, 0)
    turns = []
    for number in range(REQUESTS):
        if draw.random() < 1 / HOT_LIFE:
            hot = draw.sample(names, HOT_FILES)
        edited = [name for name in hot if draw.random() < HOT_EDITS]
        if draw.random() < OTHER_EDITS:
            edited.append(draw.choice(names))
        for name in edited:
            if draw.random() < thinning and begins[name] < number:
                versions[name] += 1
        words = max(60, int(draw.lognormvariate(5.704, 0.6)))
        present = {name: versions[name] for name in names if begins[name] <= number}
        turns.append(Turn(present, words // 4, words - words // 4))
    return PinnedSession(sizes, tuple(turns))


@lru_cache(1 << 16)
def count(text: str) -> float:
    """The size that generated texts name of themselves."""
    return float(sum(int(size) for size in re.findall(r"<(\d+)>", text)))


def contents(made: PinnedSession, number: int) -> PromptContents:
    """What a caller has at a request."""
    turn = made.turns[number]
    said = [
        said
        for place, one in enumerate(made.turns[:number])
        for said in (
            HistoryMessage("user", f"user {place} <{one.asked}>"),
            HistoryMessage("assistant", f"assistant {place} <{one.answered}>"),
        )
    ]
    return PromptContents(
        prompt=f"user {number} <{turn.asked}>",
        system=f"system <{SYSTEM_TOKENS}>",
        files={name: f"version {version} <{made.sizes[name]}>" for name, version in turn.versions.items()},
        history=tuple(said),
    )


def facts_of(given: PromptContents) -> TierFacts:
    """The items of a request."""
    return TierFacts(
        files=tuple(RequestItem(path, text, count(text)) for path, text in given.files.items()),
        selected=given.chosen,
        history=tuple(
            RequestItem(f"history:{place}", one.text, count(one.text)) for place, one in enumerate(given.history)
        ),
    )


def laid_prompts(made: PinnedSession, rules: TierRules) -> Iterator[LaidPrompt]:
    """The prompts of a session."""
    layout, state, covered = TieredLayout(rules), START, 0
    for number in range(len(made.turns)):
        given = contents(made, number)
        state = step_tiers(state, facts_of(given), rules, CacheTerms(READ, WRITE)).state
        prompt = layout.lay_out(state, LayoutFacts(given, count, 1024, covered))
        covered = prompt.covered
        yield prompt


def tiered_cost(made: PinnedSession, rules: TierRules) -> float:
    """The cost of a session in a tiered layout, in tokens of uncached input."""
    requests = (
        ([(str(block.role), block.text, block.tokens) for block in prompt.blocks], prompt.marks)
        for prompt in laid_prompts(made, rules)
    )
    return billed(requests)


def billed(requests: Iterator[tuple[list[tuple[str, str, float]], Sequence[int]]]) -> float:
    """The cost of requests, given as blocks and the places of their breakpoints."""
    chains, table = Chains(), prices(PRICES)
    simulator = CacheSimulator(table.cache)
    total = 0.0
    for number, (blocks, marks) in enumerate(requests):
        chain = list(itertools.accumulate(blocks, lambda at, one: chains.extend(at, one[:2]), initial=Chains.ROOT))[1:]
        sums = list(itertools.accumulate(size for _, _, size in blocks))
        asked = CacheRequest(number * GAP, chain, sums, tuple(Breakpoint(place + 1) for place in marks))
        total += bill(simulator.serve(asked), table)
    return total


def appended_cost(made: PinnedSession, share: float) -> float:
    """The cost of a log that only grows: a change appends a share of the file, 60 tokens at least."""

    def requests() -> Iterator[tuple[list[tuple[str, str, float]], Sequence[int]]]:
        log = [("system", "system", float(SYSTEM_TOKENS))]
        shown: dict[str, int] = {}
        end = 0
        for number, turn in enumerate(made.turns):
            for name, version in turn.versions.items():
                if shown.get(name) != version:
                    size = made.sizes[name]
                    part = size if name not in shown else max(60.0, share * size)
                    log.append(("user", f"{name} {version}", float(part)))
                    shown[name] = version
            log.append(("user", f"asked {number}", float(turn.asked)))
            yield list(log), sorted({0, end, len(log) - 1})
            end = len(log) - 1
            log.append(("assistant", f"answered {number}", float(turn.answered)))

    return billed(requests())


def lower_bound(made: PinnedSession) -> float:
    """What every order pays at least: each version of a file, and each message, is written once or never."""

    def at_least(size: float, times: int) -> float:
        return size * min(times, WRITE + (times - 1) * READ) if times > 1 else size

    total = at_least(SYSTEM_TOKENS, len(made.turns))
    runs: dict[tuple[str, int], int] = {}
    for turn in made.turns:
        for version in turn.versions.items():
            runs[version] = runs.get(version, 0) + 1
    total += sum(at_least(made.sizes[name], times) for (name, _), times in runs.items())
    for number, turn in enumerate(made.turns):
        left = len(made.turns) - number
        total += at_least(turn.asked, left) + (at_least(turn.answered, left - 1) if left > 1 else 0.0)
    return total


POLICIES: dict[str, Callable[[PinnedSession], float]] = {
    "seed": lambda made: tiered_cost(made, replace(SEED, cache_min_tokens=0)),
    "seed, history in tiers": lambda made: tiered_cost(made, SEED),
    "pagein": lambda made: tiered_cost(made, PAGEIN),
    "append a full copy": lambda made: appended_cost(made, 1.0),
    "append the diff": lambda made: appended_cost(made, 0.12),
}


def multiples(files: int, sessions: int, names: Sequence[str] = tuple(POLICIES)) -> dict[str, dict[str, float]]:
    """The cost of each policy as a multiple of the lower bound, by edits for each request."""
    found: dict[str, dict[str, float]] = {name: {} for name in names}
    for rate, thinning in THINNING.items():
        made = [session(seed, files, thinning) for seed in range(sessions)]
        bound = sum(lower_bound(one) for one in made)
        for name in names:
            found[name][rate] = sum(POLICIES[name](one) for one in made) / bound
    return found


# --- tiny instances with a known optimum ---

ITEMS, TINY_REQUESTS = 5, 14


@dataclass(frozen=True)
class TinyInstance:
    """Five items and the sets of those edited in each request, in a cache that remembers the last request alone."""

    sizes: tuple[int, ...]
    edits: tuple[frozenset[int], ...]


def tiny(seed: int) -> TinyInstance:
    """Generate a tiny instance."""
    draw = random.Random(f"tiny {seed}")  # noqa: S311 -- no secret
    sizes = tuple(draw.randint(200, 6000) for _ in range(ITEMS))
    odds = [draw.choice((0.02, 0.1, 0.4)) for _ in range(ITEMS)]
    edits = [frozenset(item for item in range(ITEMS) if draw.random() < odds[item]) for _ in range(TINY_REQUESTS - 1)]
    return TinyInstance(sizes, (frozenset(), *edits))


def step_cost(one: TinyInstance, before: Sequence[int], after: Sequence[int], edited: frozenset[int]) -> float:
    """The cost of one request behind another."""
    shared = 0
    for left, right in zip(before, after, strict=True):
        if left != right or left in edited:
            break
        shared += one.sizes[left]
    return READ * shared + WRITE * (sum(one.sizes) - shared)


def cost_of(one: TinyInstance, orders: Sequence[Sequence[int]]) -> float:
    """The cost of a sequence of orders."""
    rest = zip(itertools.pairwise(orders), one.edits[1:], strict=True)
    return WRITE * sum(one.sizes) + sum(step_cost(one, before, after, edited) for (before, after), edited in rest)


def optimum(one: TinyInstance) -> float:
    """The least cost over all sequences of orders.

    A step reads what two orders share at the front. So for each order, the best one before it is found among those with
    each of its beginnings.
    """
    every = list(itertools.permutations(range(ITEMS)))
    best = dict.fromkeys(every, WRITE * sum(one.sizes))
    for edited in one.edits[1:]:
        by_front: dict[tuple[int, ...], float] = {}
        for order, cost in best.items():
            for length in range(ITEMS + 1):
                front = order[:length]
                by_front[front] = min(cost, by_front.get(front, cost))
        best = {
            to: min(
                by_front[to[:length]] + step_cost(one, to[:length], to[:length], edited) for length in range(ITEMS + 1)
            )
            for to in every
        }
    return min(best.values())


def moved_to_end(one: TinyInstance) -> list[list[int]]:
    """Edited items go to the end."""
    orders = [list(range(ITEMS))]
    for edited in one.edits[1:]:
        last = orders[-1]
        orders.append([*(item for item in last if item not in edited), *(item for item in last if item in edited)])
    return orders


def foreseen(one: TinyInstance) -> list[list[int]]:
    """What stands behind the first edited item is sorted by the next edit, the farthest first."""

    def next_edit(item: int, number: int) -> int:
        later = (place for place in range(number + 1, TINY_REQUESTS) if item in one.edits[place])
        return next(later, TINY_REQUESTS)

    orders = [sorted(range(ITEMS), key=lambda item: -next_edit(item, 0))]
    for number in range(1, TINY_REQUESTS):
        last = orders[-1]
        first = next((place for place, item in enumerate(last) if item in one.edits[number]), ITEMS)
        rest = sorted(last[first:], key=lambda item: -next_edit(item, number))
        orders.append([*last[:first], *rest])
    return orders


def tiered_orders(one: TinyInstance) -> list[list[int]]:
    """The orders of the preset `pagein`: the cached items, then the others, those that enter next first."""
    state, orders, versions = START, [], [0] * ITEMS
    for edited in one.edits:
        versions = [version + (item in edited) for item, version in enumerate(versions)]
        files = tuple(RequestItem(str(item), str(version), one.sizes[item]) for item, version in enumerate(versions))
        given = TierFacts(files=files, selected=frozenset(file.key for file in files))
        state = step_tiers(state, given, PAGEIN, CacheTerms(READ, WRITE, anywhere=True)).state
        orders.append(whole_order(state))
    return orders


def whole_order(state: TierState) -> list[int]:
    """The items in the order of the prompt."""
    return [int(key) for key in (*state.order, *state.last_active)]


ORDERS: dict[str, Callable[[TinyInstance], list[list[int]]]] = {
    "fixed order": lambda one: [list(range(ITEMS))] * len(one.edits),
    "moved to the end when edited": moved_to_end,
    "pagein": tiered_orders,
    "by the next edit, foreseen": foreseen,
}


def ratios(instances: int) -> dict[str, tuple[float, float]]:
    """The mean and the worst ratio of each order to the optimum."""
    found: dict[str, list[float]] = {name: [] for name in ORDERS}
    for seed in range(instances):
        one = tiny(seed)
        best = optimum(one)
        for name, orders in ORDERS.items():
            found[name].append(cost_of(one, orders(one)) / best)
    return {name: (sum(values) / len(values), max(values)) for name, values in found.items()}


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--sessions", type=int, default=20, help="generated sessions for each figure")
    parser.add_argument("--instances", type=int, default=60, help="tiny instances")
    parser.add_argument("--json", action="store_true", help="one JSON object")
    asked = parser.parse_args()
    tables = {files: multiples(files, asked.sessions) for files in (24, 200)}
    exact = ratios(asked.instances)
    if asked.json:
        print(json.dumps({"multiples": tables, "ratios": exact}))
        return
    for files, table in tables.items():
        print(
            f"\n| {files} files; edits for each request | "
            + " | ".join(THINNING)
            + " |\n|---|"
            + "---|" * len(THINNING)
        )
        for name, row in table.items():
            earlier = PUBLISHED.get(name) if files == 24 else None  # noqa: PLR2004 -- theirs had 24
            told = [f"{row[rate]:.2f}" + (f" ({earlier[rate]:.2f})" if earlier else "") for rate in THINNING]
            print(f"| {name} | {' | '.join(told)} |")
        less = [f"{1 - table['pagein'][rate] / table['seed'][rate]:.0%}" for rate in THINNING]
        print(f"| *`pagein` below `seed`* | {' | '.join(less)} |")
    print("\n| order, ratio to the optimum | mean | worst |\n|---|---|---|")
    for name, (mean, worst) in exact.items():
        print(f"| {name} | {mean:.3f} | {worst:.3f} |")


if __name__ == "__main__":
    main()
