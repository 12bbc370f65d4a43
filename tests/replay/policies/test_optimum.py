"""The optimum against a search of everything, and the order of the references."""

import json
from itertools import combinations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pagein.model.messages import Usage
from pagein.providers.prices.price_lookup import Prices, prices
from pagein.replay.policies.baselines import APPEND, APPEND_1H, APPEND_5M
from pagein.replay.policies.ledger import Ledger
from pagein.replay.policies.optimum import bound, optimum
from pagein.replay.prompt.billable_session import BillableSession
from pagein.testing.story import Story

CHARGED = prices("generic:r=.1,w=1.25,min=1")
STUB = 40.0
steps = st.lists(st.tuples(st.integers(50, 20_000), st.sampled_from([10.0, 10.0, 10.0, 600.0])), min_size=1, max_size=9)


def _recorded(told: list[tuple[int, float]]) -> BillableSession:
    story = Story().asks("x" * 200)
    for size, wait in told:
        story.works(size, wait=wait)
    return story.says().recording()


def _searched(recording: BillableSession) -> float:
    """Try every set of edit times, with either lifetime; at an edit everything shown before is dead (these stories need nothing again)."""
    count = len(recording.sized)
    edits = [set(some) for n in range(count) for some in combinations(range(1, count), n)]
    return min(_price(recording, some, *lease) for some in edits for lease in ((300, 1.25), (3600, 2.0)))


def _price(recording: BillableSession, edits: set[int], ttl: float, write: float) -> float:
    whole, _ = recording.floor
    blocks: list[tuple[float, bool]] = [(whole, False)]
    sent: list[tuple[float, bool]] = []
    cost, before = 0.0, None
    for index, sized in enumerate(recording.sized):
        shown = list(blocks)
        new = [
            (tokens, recording.calls.blocks[ordinal].kind == "result" and tokens > 100)
            for ordinal, tokens in zip(range(*sized.call.blocks), sized.blocks, strict=True)
        ]
        if index in edits:
            shown = [(STUB, False) if removable else (tokens, removable) for tokens, removable in shown]
        blocks = shown + new
        cold = before is None or sized.call.at - before > ttl
        shared = 0.0
        for old, now in zip(sent, blocks, strict=False):
            if old != now:
                break
            shared += now[0]
        read = min(recording.cold_read if index else recording.first_read, shared) if cold else shared
        size = sum(tokens for tokens, _ in blocks)
        cost += 0.1 * read + write * (size - read) + 5 * sized.output
        sent, before = list(blocks), sized.call.at
    return cost


@settings(max_examples=60, deadline=None)
@given(steps)
def test_the_dynamic_program_finds_what_a_search_of_all_edit_times_finds(told: list[tuple[int, float]]) -> None:
    recording = _recorded(told)
    assert optimum(recording, CHARGED).cost == pytest.approx(_searched(recording))


KINDS_OF_PRICES = (
    "generic:r=.1,w=1.25,min=1",
    "generic:r=.1,w=1.25",  # short prompts are below the minimum
    "generic:cache=none",
    "generic:cache=openai,min=1",
    "claude-haiku-5-5",  # a price cliff
    "gpt-5.5",
    "gemini-2.5-pro",  # hits that are not promised
    "deepseek-v4-pro",  # peak hours
    "self-hosted",  # reads cost nothing
)


@pytest.mark.parametrize("spec", KINDS_OF_PRICES)
@settings(max_examples=30, deadline=None)
@given(told=steps)
def test_the_bound_is_below_the_optimum_and_the_optimum_below_appending(
    spec: str, told: list[tuple[int, float]]
) -> None:
    charges = prices(spec)
    recording = _recorded(told)
    best = optimum(recording, charges)
    assert bound(recording, charges).cost <= best.cost * (1 + 1e-9)
    for policy in (APPEND, APPEND_5M, APPEND_1H):
        ledger = Ledger(recording, policy, charges, stress=False, trace=False)
        ledger.run()
        assert best.cost <= ledger.tally.cost * (1 + 1e-9) + _rounded_down(charges, recording), policy.name


@pytest.mark.parametrize("spec", KINDS_OF_PRICES)
@settings(max_examples=40, deadline=None)
@given(prompts=st.lists(st.integers(2_000, 120_000), min_size=1, max_size=12))
def test_bound_and_optimum_are_ordered_for_prompts_with_hidden_changes(spec: str, prompts: list[int]) -> None:
    charges = prices(spec)
    story = Story().asks("x" * 200)
    for prompt in prompts:
        story.works(1500, usage=Usage(fresh=prompt, output=10))
    recording = story.says(usage=Usage(fresh=prompts[-1] + 500, output=10)).recording(charges)
    best = optimum(recording, charges)
    ledger = Ledger(recording, APPEND, charges, stress=False, trace=False)
    ledger.run()
    assert bound(recording, charges).cost <= best.cost * (1 + 1e-9)
    assert best.cost <= ledger.tally.cost * (1 + 1e-9) + _rounded_down(charges, recording)


def _rounded_down(charges: Prices, recording: BillableSession) -> float:
    """Some caches read whole steps of tokens only; the optimum does not know of them."""
    rules = charges.cache
    return float(len(recording.sized) * (rules.granularity + rules.recomputed)) if rules.model == "anywhere" else 0.0


def test_the_optimum_of_results_alone_keeps_arguments() -> None:
    """Four long files are written, and nothing in them is needed again."""
    story = Story().asks()
    for number in range(4):
        story.works(3000, args=json.dumps({"command": f"{number} " * 4000}))
    recording = story.says().recording(CHARGED)
    some, whole = optimum(recording, CHARGED, arguments=False), optimum(recording, CHARGED)
    ledger = Ledger(recording, APPEND, CHARGED, stress=False, trace=False)
    ledger.run()
    assert whole.cost < some.cost < ledger.tally.cost


def test_without_a_cache_the_optimum_sends_what_is_needed_and_pays_it_whole() -> None:
    best = optimum(_recorded([(5000, 10.0)] * 8), prices("generic:cache=none"))
    assert best.read == best.written == 0
    assert best.cost == pytest.approx(best.fresh + 5 * best.output)


def test_tokens_that_left_a_prompt_unseen_are_no_longer_billed() -> None:
    """A host that took back what it had inserted leaves a cheaper session than one that kept it."""
    kept, lost = (_with_prompts([50_000, 90_000, size, size + 200, size + 400]) for size in (90_200, 85_000))
    for find in (bound, optimum):
        assert find(lost, CHARGED).cost < find(kept, CHARGED).cost


def _with_prompts(sizes: list[int]) -> BillableSession:
    story = Story().asks()
    for size in sizes:
        story.works(100, usage=Usage(fresh=size, output=10))
    return story.says(usage=Usage(fresh=sizes[-1] + 200, output=10)).recording(CHARGED)


def test_tokens_add_up_to_the_cost(charged: Prices) -> None:
    tally = optimum(_recorded([(5000, 10.0)] * 8), charged)
    assert tally.cost == pytest.approx(0.1 * tally.read + 1.25 * tally.written + 5 * tally.output)
