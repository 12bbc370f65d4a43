"""The optimum against a search of everything, and the order of the references."""

from itertools import combinations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pagein.providers.prices import Prices, prices
from pagein.replay.ledger import Ledger
from pagein.replay.oracle import bound, optimum
from pagein.replay.policies import APPEND_5M
from pagein.replay.recording import Recording
from pagein.testing.story import Story

CHARGED = prices("generic:r=.1,w=1.25,min=1")
STUB = 40.0
steps = st.lists(st.tuples(st.integers(50, 20_000), st.sampled_from([10.0, 10.0, 10.0, 600.0])), min_size=1, max_size=9)


def _recorded(told: list[tuple[int, float]]) -> Recording:
    story = Story().asks("x" * 200)
    for size, wait in told:
        story.works(size, wait=wait)
    return story.says().recording()


def _searched(recording: Recording) -> float:
    """Try every set of edit times; at an edit everything shown before is dead (these stories need nothing again)."""
    count = len(recording.sized)
    return min(_price(recording, set(edits)) for n in range(count) for edits in combinations(range(1, count), n))


def _price(recording: Recording, edits: set[int]) -> float:
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
        cold = before is None or sized.call.at - before >= 300
        shared = 0.0
        for old, now in zip(sent, blocks, strict=False):
            if old != now:
                break
            shared += now[0]
        read = min(recording.cold_read if index else recording.first_read, shared) if cold else shared
        size = sum(tokens for tokens, _ in blocks)
        cost += 0.1 * read + 1.25 * (size - read) + 5 * sized.output
        sent, before = list(blocks), sized.call.at
    return cost


@settings(max_examples=60, deadline=None)
@given(steps)
def test_the_dynamic_program_finds_what_a_search_of_all_edit_times_finds(told: list[tuple[int, float]]) -> None:
    recording = _recorded(told)
    assert optimum(recording, CHARGED).cost == pytest.approx(_searched(recording))


@settings(max_examples=60, deadline=None)
@given(steps)
def test_the_bound_is_below_the_optimum_and_the_optimum_below_appending(told: list[tuple[int, float]]) -> None:
    recording = _recorded(told)
    ledger = Ledger(recording, APPEND_5M, CHARGED, stress=False, trace=False)
    ledger.run()
    assert bound(recording, CHARGED).cost <= optimum(recording, CHARGED).cost + 1e-6
    assert optimum(recording, CHARGED).cost <= ledger.tally.cost + 1e-6


def test_tokens_add_up_to_the_cost(charged: Prices) -> None:
    tally = optimum(_recorded([(5000, 10.0)] * 8), charged)
    assert tally.cost == pytest.approx(0.1 * tally.read + 1.25 * tally.written + 5 * tally.output)
