"""Laws of the simulator, and its agreement with a slow reference that is written from the rules alone."""

import random
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.providers.caches.prompts import Block, Conversation, blocks

from pagein.providers.cache_simulator import (
    KINDS,
    LONG,
    SHORT,
    Breakpoint,
    CacheRequest,
    CacheRules,
    CacheSimulator,
    bill,
    simulate,
)
from pagein.providers.prices.price_lookup import prices

MINIMUM = 100.0
RULES = [replace(rules, min_prefix=int(MINIMUM)) for rules in KINDS.values()]
SIZES = (0.0, 10.0, 40.0, 64.0, 500.0)


@dataclass(frozen=True)
class Call:
    """One request, before its blocks are named."""

    at: float
    prompt: tuple[Block, ...]
    marks: tuple[Breakpoint, ...]
    answered_after: float
    cap: float | None
    warm: float


def calls() -> st.SearchStrategy[list[Call]]:
    """A few conversations that grow, fork, are edited and come back, in the order of their start."""
    # seeds, because strategies of this size are drawn too small to meet in one cache
    return st.integers(0, 2**32).map(lambda seed: story(random.Random(seed)))  # noqa: S311


def story(draw: random.Random) -> list[Call]:
    prompts: list[tuple[Block, ...]] = [()]
    made: list[Call] = []
    at = 0.0
    for serial in range(draw.randint(1, 16)):
        old = prompts[-1 - draw.choice((0, 0, 0, 1, 2)) % len(prompts)]
        kept = draw.choice((len(old), len(old), len(old), draw.randint(0, len(old))))
        tag = draw.choice(("same", serial))
        # a size follows from its key, as one text always has one size
        start = kept if tag == "same" else 0
        new = [
            ((tag, i), SIZES[(i * 7 + serial * (tag == serial)) % len(SIZES)])
            for i in range(start, start + draw.choice((0, 1, 2, 5, 12, 18, 19, 20)))
        ]
        prompt = (*old[:kept], *new)
        prompts.append(prompt)
        at += draw.choice((0.0, 1.0, 1.0, 100.0, 290.0, 310.0, 3500.0))
        answered = draw.choice((0.0, 0.0, 0.0, 5.0, 150.0))
        cap = draw.choice((None, None, None, None, None, None, 0.0, 130.0, 700.0))
        made.append(Call(at, prompt, marks_on(len(prompt), draw), answered, cap, draw.choice((0.0, 0.0, 0.0, 300.0))))
    return made


def marks_on(length: int, draw: random.Random) -> tuple[Breakpoint, ...]:
    if not length:
        return ()
    if draw.random() < 0.4:
        return (Breakpoint(length),)
    positions = {length} | {draw.randint(1, length) for _ in range(draw.randint(0, 3))}
    long = draw.choice((0, 0, 0, 1, 2, 4))
    return tuple(Breakpoint(p, LONG if i < long else SHORT) for i, p in enumerate(sorted(positions)))


def named(made: Sequence[Call]) -> list[CacheRequest]:
    talk = Conversation(KINDS["none"])
    return [
        replace(
            talk.request(call.at, call.prompt, call.marks, warm=call.warm, answered_at=call.at + call.answered_after),
            read_cap=call.cap,
        )
        for call in made
    ]


@settings(deadline=None)
@given(calls(), st.sampled_from(RULES))
def test_every_prompt_token_is_read_written_or_fresh(made: list[Call], rules: CacheRules) -> None:
    for request, served in zip(named(made), simulate(named(made), rules), strict=True):
        assert served.prompt == pytest.approx(request.prompt)
        assert min(served.read, served.written_5m, served.written_1h, served.fresh) >= 0
        assert 0 <= served.hit <= len(request.chain)


@settings(deadline=None)
@given(calls(), st.sampled_from(RULES))
def test_caching_never_costs_more_than_writing_everything(made: list[Call], rules: CacheRules) -> None:
    generic = prices("generic:r=.1,w=1.25,w1h=2")
    for served in simulate(named(made), rules):
        assert bill(served, generic) <= 2 * served.prompt + 1e-6


@settings(deadline=None)
@given(calls(), st.integers(0, 14), st.sampled_from(RULES))
def test_a_fold_may_stop_and_go_on_anywhere(made: list[Call], cut: int, rules: CacheRules) -> None:
    requests = named(made)
    simulator = CacheSimulator(rules)
    parts = simulate(requests[:cut], rules, simulator) + simulate(requests[cut:], rules, simulator)
    assert parts == simulate(requests, rules)


@settings(deadline=None)
@given(st.lists(st.tuples(st.integers(1, 19), st.integers(0, 300)), min_size=1, max_size=12), st.integers(1, 30))
def test_appending_within_the_lifetime_reads_exactly_the_previous_prompt(
    turns: list[tuple[int, int]], first: int
) -> None:
    talk = Conversation(KINDS["anthropic"].least(1000))
    length, at = first, 0
    talk.ask(at, blocks(length), [length])
    for more, pause in turns:
        previous, length = length, length + more
        at += pause
        assert talk.ask(at, blocks(length), [length]).read == previous * 1000


@settings(deadline=None)
@given(calls(), st.floats(0, 1000))
def test_never_more_is_read_than_a_recording_allows(made: list[Call], cap: float) -> None:
    for rules in RULES:
        served = simulate([replace(request, read_cap=cap) for request in named(made)], rules)
        assert all(one.read <= cap for one in served)


# --- the reference ---------------------------------------------------------------------------------------------


Prefix = tuple[object, ...]


@dataclass(eq=False)
class Stored:
    used: float
    ttl: float
    usable_from: float
    above: list["Stored"]
    lost: bool = False

    def alive(self, at: float) -> bool:
        return not self.lost and at - self.used <= self.ttl


@dataclass
class Reference:
    """Rules A1-A7 and the billing rule over whole prefixes as dictionary keys: slow, and sharing nothing with the simulator."""

    entries: dict[Prefix, Stored] = field(default_factory=dict)

    def serve(self, call: Call) -> tuple[float, float, float, float]:
        keys = [key for key, _ in call.prompt]
        prefix: list[Prefix] = [tuple(keys[:i]) for i in range(len(keys) + 1)]
        size = [sum(s for _, s in call.prompt[:i]) for i in range(len(keys) + 1)]
        marks = [m for m in call.marks if size[m.position] >= MINIMUM]
        if not marks:
            return 0, 0, 0, size[-1]
        hit = self.found(prefix, marks, call.at)
        last = size[marks[-1].position]
        read = max(size[hit], min(call.warm, last))
        read = read if call.cap is None else min(read, call.cap)
        self.use(prefix, hit, marks, call.at, [i for i in range(1, len(keys) + 1) if size[i] > read < size[hit]])
        for mark in marks:
            if mark.position > hit or size[mark.position] > read:
                self.write(call, prefix, mark)
        long = max((size[m.position] for m in marks if m.ttl == LONG), default=0)
        split = min(max(long, read), last)
        return read, last - split, split - read, size[-1] - last

    def found(self, prefix: list[Prefix], marks: list[Breakpoint], at: float) -> int:
        for mark in reversed(marks):
            for position in range(mark.position, max(mark.position - 20, 0), -1):
                entry = self.entries.get(prefix[position])
                if entry and entry.alive(at) and entry.usable_from <= at:
                    return position
        return 0

    def use(self, prefix: list[Prefix], hit: int, marks: list[Breakpoint], at: float, lost: list[int]) -> None:
        reached = [self.entries[prefix[hit]]] if hit else []
        for position in lost:
            if entry := self.entries.pop(prefix[position], None):
                entry.lost = True
        reached += [
            self.entries[prefix[m.position]] for m in marks if m.position < hit and prefix[m.position] in self.entries
        ]
        for entry in reached:
            self.touch(entry, at, hits=entry is reached[0])

    @staticmethod
    def touch(entry: Stored, at: float, *, hits: bool) -> None:
        if hits or entry.alive(at):
            for one in [entry, *entry.above]:
                if one.alive(at):
                    one.used = at

    def write(self, call: Call, prefix: list[Prefix], mark: Breakpoint) -> None:
        key = prefix[mark.position]
        ttl = 300.0 if mark.ttl == SHORT else 3600.0
        usable = call.at + call.answered_after
        old = self.entries.get(key)
        if old and old.alive(call.at):
            usable = min(usable, old.usable_from)
            if old.ttl == ttl:
                old.usable_from = usable
                self.touch(old, call.at, hits=True)
                return
        nearest = next((e for i in range(mark.position - 1, 0, -1) if (e := self.entries.get(prefix[i]))), None)
        self.entries[key] = Stored(call.at, ttl, usable, [nearest, *nearest.above] if nearest else [])


@settings(max_examples=300, deadline=None)
@given(calls())
def test_the_simulator_agrees_with_the_slow_reference(made: list[Call]) -> None:
    reference = Reference()
    fast = simulate(named(made), KINDS["anthropic"].least(int(MINIMUM)))
    for call, served in zip(made, fast, strict=True):
        assert reference.serve(call) == pytest.approx((served.read, served.written_5m, served.written_1h, served.fresh))
