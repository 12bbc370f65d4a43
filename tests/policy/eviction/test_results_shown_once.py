"""Which outputs at the end of a request are shown once, at which prices and risks."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pagein.policy.economics.rewrite_cost import CAUTION, Account, Economics, Moment
from pagein.policy.eviction.residents import STUB_TOKENS, Resident
from pagein.policy.eviction.results_shown_once import (
    HORIZON,
    LEAST_IN_FRONT,
    ResultsShownOnce,
    TailBlock,
    results_shown_once,
)
from pagein.providers.prices.token_prices import Cliff

MARKED = Economics(at_marks=True)
MOMENT = Moment(now=10.0, last=0.0, size=60_000, new=3_000)
RICH = Account(bill=200_000.0, saved=50_000.0)


def shot(tokens: int, call: str = "c1", before: int = 50_000) -> TailBlock:
    return TailBlock(tokens, Resident(call, 9, 0, tokens, 7, before=before))


def calls(found: ResultsShownOnce | None) -> tuple[str, ...]:
    return () if found is None else found.calls


def test_a_big_output_at_the_end_is_shown_once_and_spares_its_write() -> None:
    found = results_shown_once([shot(2_000)], MOMENT, MARKED, Account())
    assert calls(found) == ("c1",)
    # a quarter of the gain is not paid for the write; the stub is written later, not read
    assert found is not None
    assert found.saved == pytest.approx(0.25 * (2_000 - STUB_TOKENS) - 0.9 * STUB_TOKENS)


def test_what_stays_behind_it_may_cost_more_than_it_spares() -> None:
    assert results_shown_once([shot(1_000), TailBlock(2_000)], MOMENT, MARKED, RICH) is None
    assert calls(results_shown_once([shot(3_000), TailBlock(2_000)], MOMENT, MARKED, RICH)) == ("c1",)
    # what stands in front of it is written as ever
    assert calls(results_shown_once([TailBlock(2_000), shot(1_000)], MOMENT, MARKED, RICH)) == ("c1",)


def test_the_breakpoint_stands_where_it_spares_most() -> None:
    tail = [shot(600, "a"), TailBlock(4_000), shot(2_000, "b"), shot(1_500, "c")]
    assert calls(results_shown_once(tail, MOMENT, MARKED, RICH)) == ("b", "c")


def test_a_short_prompt_in_front_is_not_risked() -> None:
    assert results_shown_once([shot(2_000, before=LEAST_IN_FRONT - 1)], MOMENT, MARKED, RICH) is None
    assert results_shown_once([shot(2_000, before=LEAST_IN_FRONT)], MOMENT, MARKED, RICH) is not None
    assert results_shown_once([shot(2_000, before=LEAST_IN_FRONT)], MOMENT, replace(MARKED, least=4_096), RICH) is None
    assert results_shown_once([shot(2_000, before=1_000)], replace(MOMENT, floor=20_000.0), MARKED, RICH) is not None


def test_a_loss_after_the_next_call_must_be_in_hand() -> None:
    tail = [shot(5_000), TailBlock(4_000)]  # pays in time, but the first calls cost more
    assert results_shown_once(tail, MOMENT, MARKED, Account()) is None
    found = results_shown_once(tail, MOMENT, MARKED, RICH)
    assert found is not None
    assert found.saved < 0


@pytest.mark.parametrize(
    "economics",
    [
        replace(MARKED, at_marks=False),
        replace(MARKED, uncached=0.0),
        replace(MARKED, void=True),
        replace(MARKED, entrance=500.0),
    ],
)
def test_nothing_is_shown_once_where_the_tail_is_cached_or_written_anyway(economics: Economics) -> None:
    assert results_shown_once([shot(5_000)], MOMENT, economics, RICH) is None


@given(
    st.lists(
        st.builds(
            lambda tokens, goes: shot(tokens) if goes else TailBlock(tokens), st.integers(0, 9_000), st.booleans()
        ),
        max_size=6,
    ),
    st.floats(0, 60_000),
    st.floats(0.5, 2.0),
)
def test_the_choice_pays_in_the_end_and_never_costs_more_than_is_in_hand(
    tail: list[TailBlock], saved: float, scale: float
) -> None:
    account = Account(bill=100_000.0, saved=saved)
    found = results_shown_once(tail, replace(MOMENT, scale=scale), MARKED, account)
    if found is None:
        return
    start = next(place for place, one in enumerate(tail) if one.resident is found.residents[0])
    gain = sum(one.resident.gain for one in tail[start:] if one.resident is not None)
    rest = sum(one.tokens for one in tail[start:] if one.resident is None)
    assert found.residents == tuple(one.resident for one in tail[start:] if one.resident is not None)
    assert gain * (0.25 + 0.1 * HORIZON) > 0.9 * rest * max(1.0, scale)
    assert -found.saved <= saved + 0.02 * account.bill


def test_above_a_price_cliff_a_tail_written_later_costs_more_of_the_sum_in_hand() -> None:
    level = Economics(at_marks=True)
    steep = replace(level, cliff=Cliff(above=60_000, input=5.0, output=5.0))
    moment = Moment(now=10.0, last=5.0, size=70_000, new=7000)
    tail = [TailBlock(5000, Resident("a", 1, 0, 5000, 1, before=63_000, stays=50)), TailBlock(2000)]
    one = results_shown_once(tail, moment, level, Account(saved=1e6))
    assert one is not None
    assert one.saved < 0
    due = CAUTION * -one.saved
    assert results_shown_once(tail, moment, level, Account(saved=due + 1)) is not None
    assert results_shown_once(tail, moment, steep, Account(saved=5 * due - 1)) is None
    assert results_shown_once(tail, moment, steep, Account(saved=5 * due + 1)) is not None
