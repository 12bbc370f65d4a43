"""Law 5 over the sessions of a store: together they cost no more than 2 % above append-only, at any moment.

One session costs at most what it borrowed beyond 2 % of its own bill.
"""

from dataclasses import replace

from hypothesis import example, given, settings
from hypothesis import strategies as st
from tests.laws.savings_world import SHARE, SavingsStore, Step

from pagein.engine.cache.cache_evidence import CacheEvidence
from pagein.policy.economics.savings_reserve import SHARE_AT_RISK

ROUNDING = 50.0
"""BIT by which whole tokens and sizes differ."""

PAUSES = st.sampled_from((0.0, 1.0, 20.0, 299.0, 310.0, 400.0, 1500.0, 3590.0, 3700.0))
STEPS = st.builds(
    Step,
    session=st.integers(0, 7),
    gap=PAUSES,
    said=st.sampled_from((0, 50, 400, 5000)),
    told=st.sampled_from((10, 300, 3000, 20_000, 90_000)),
    wastes=st.sampled_from((0.0, 0.0, 0.0, 0.5, 1.0)),
    rewrites=st.sampled_from((0.0, 0.0, 0.05, 0.2, 1.0)),
    is_silent=st.sampled_from((False,) * 9 + (True,)),
)
GROWING = [Step(0, 20.0, 400, 20_000)] * 40
"""A session that saves: the others may borrow of it."""
CROWD = [Step(number, 0.0, 0, 45_000) for number in range(1, 13)]
"""Twelve sessions that begin at the same time."""
LATE = [Step(number, 1.0 if number > 1 else 400.0, 50, 300) for number in range(1, 13)]
"""All of them wait until what they wrote for five minutes is lost."""


def check(steps: list[Step]) -> SavingsStore:
    evidence = CacheEvidence()
    store = SavingsStore(lambda: evidence)
    for step in steps:
        session = store.run(step)
        assert store.excess <= ROUNDING, step
        beyond = session.ours - (1 + SHARE) * session.theirs
        assert beyond <= max(0.0, session.most_lent) + ROUNDING, step
    return store


@given(st.lists(STEPS, min_size=1, max_size=40))
@settings(max_examples=60, deadline=None)
@example([*CROWD, *LATE])
@example([*CROWD, Step(0, 400.0, 50, 300), *LATE])
@example([*CROWD, Step(0, 0.0, 50, 300, wastes=1.0), *LATE])
@example([Step(0, 1.0, 50, 300, wastes=1.0), *CROWD, *LATE])
@example([Step(0, 310.0, 0, 10, is_silent=True), Step(0, 0.0, 0, 10, wastes=1.0)])
@example([*CROWD, *(replace(one, is_silent=True) for one in CROWD), *LATE])
def test_sessions_of_a_store_together_cost_at_most_two_percent_more(steps: list[Step]) -> None:
    check([*GROWING, *steps])


def test_a_rewrite_for_five_minutes_leaves_enough_in_hand_for_a_pause_right_behind_it() -> None:
    check([*GROWING[:8], Step(0, 20.0, 50, 300, rewrites=0.1), Step(0, 400.0, 50, 300)])


def test_a_crowd_borrows_a_fifth_together_and_the_rest_ask_for_the_hour_of_the_client() -> None:
    store = check([*GROWING, *CROWD])
    crowd = [store.sessions[number] for number in range(1, 13)]
    cheaper = [one for one in crowd if one.ours < one.theirs]
    saved = store.sessions[0].theirs - store.sessions[0].ours
    assert cheaper
    lent = sum(1.9 * one.size - (one.theirs - one.ours) for one in cheaper)
    assert lent <= SHARE_AT_RISK * (saved + sum(one.theirs - one.ours for one in cheaper))
    assert all(one.ours == one.theirs for one in crowd if one not in cheaper)
