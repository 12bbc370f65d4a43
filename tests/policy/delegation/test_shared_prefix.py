"""Whether children share a prefix, and what the cache simulator says of the plan."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pagein.policy.delegation.shared_prefix import PrefixPlan, SharedPrefix, plan_prefix
from pagein.providers.cache_simulator import Breakpoint, CacheRequest, CacheSimulator, Chains, bill
from pagein.providers.prices.price_lookup import prices

CLAUDE = "claude-sonnet-5-5"
LARGE = SharedPrefix(20_000, 500)


def cost_of(model: str, prefix: SharedPrefix, children: int, concurrency: int, plan: PrefixPlan) -> float:
    """What all prompts cost by the simulated cache, if each answer takes a second."""
    found = prices(model)
    simulator, chains, total = CacheSimulator(found.cache), Chains(), 0.0
    shared = chains.extend(Chains.ROOT, "shared")
    for child in range(children):
        step = (child + concurrency - 1) // concurrency if plan.warms else child // concurrency
        marks = (Breakpoint(1),) if plan.is_marked else ()
        served = simulator.serve(
            CacheRequest(
                float(step), (shared, chains.extend(shared, child)), (prefix.tokens, prefix.tokens + prefix.own), marks,
                answered_at=step + 0.9,
            )
        )  # fmt: skip
        total += bill(served, found)
    return total


@pytest.mark.parametrize("model", [CLAUDE, "gpt-5.2", "claude-haiku-4-5"])
def test_the_first_child_goes_ahead_and_the_simulated_cache_confirms_the_saving(model: str) -> None:
    plan = plan_prefix(model, LARGE, 20, 4)
    assert plan.warms
    plain = 20 * (LARGE.tokens + LARGE.own)
    assert cost_of(model, LARGE, 20, 4, plan) / plain == pytest.approx(1 - plan.saved, abs=0.01)
    assert cost_of(model, LARGE, 20, 4, plan) < cost_of(model, LARGE, 20, 4, PrefixPlan(plan.is_marked))


def test_providers_with_breakpoints_get_a_mark_where_the_shared_part_ends() -> None:
    assert plan_prefix(CLAUDE, LARGE, 20, 4).is_marked
    assert not plan_prefix("gpt-5.2", LARGE, 20, 4).is_marked


@pytest.mark.parametrize(
    ("model", "prefix", "children", "says"),
    [
        (CLAUDE, SharedPrefix(300, 9_000), 20, "below the minimum"),
        (CLAUDE, LARGE, 1, "one child"),
        ("nobody-knows", LARGE, 20, "nothing is known"),
    ],
)
def test_what_is_not_cached_is_told(model: str, prefix: SharedPrefix, children: int, says: str) -> None:
    plan = plan_prefix(model, prefix, children, 4)
    assert (plan.is_marked, plan.warms) == (False, False)
    assert says in plan.says


def test_children_do_not_wait_for_a_small_saving() -> None:
    plan = plan_prefix(CLAUDE, SharedPrefix(5_000, 100_000), 200, 4)
    assert plan.is_marked
    assert not plan.warms


@given(st.integers(0, 60_000), st.integers(0, 60_000), st.integers(1, 60), st.integers(1, 16))
def test_a_plan_never_costs_more_than_prompts_without_a_cache(
    tokens: int, own: int, children: int, concurrency: int
) -> None:
    prefix = SharedPrefix(tokens, own)
    plan = plan_prefix(CLAUDE, prefix, children, concurrency)
    assert cost_of(CLAUDE, prefix, children, concurrency, plan) <= children * (tokens + own) + 1e-6
