"""What stays because something recent rests on it, and whether the rest is still worth a rewrite."""

from pagein.policy.economics.rewrite_cost import Account, Economics, Moment
from pagein.policy.eviction.dependencies import plan_without
from pagein.policy.eviction.residency import EMPTY, EpochPlan, Residency, Resident, ResidentSet, plan
from pagein.testing.eager_residency import eager

BY_SIZE = eager(batch_tokens=1000, keep_calls=2)
PRICED = eager(keep_calls=2, economics=Economics())
COLD = Moment(now=10_000.0, last=0.0, size=20_000, new=10)
WARM = Moment(now=10.0, last=9.0, size=20_000, new=10)
RICH = Account(bill=1e6, saved=1e6)


def standing(*tokens: int, settings: Residency, call: int = 9) -> ResidentSet:
    made, before = EMPTY, 0
    for place, count in enumerate(tokens):
        made = made.with_resident(Resident(f"c{place}", place, 0, count, place, before=before), settings.rules)
        before += count
    return made.at_call(call, settings.rules)


def calls(found: EpochPlan) -> list[str]:
    return [] if found.epoch is None else [one.call_id for one in found.epoch.page_out]


def test_a_plan_that_touches_nothing_held_is_left_as_it_is() -> None:
    residents = standing(600, 600, settings=BY_SIZE)
    planned = plan(residents, BY_SIZE, WARM, RICH)
    assert calls(planned) == ["c0", "c1"]
    assert plan_without(planned, frozenset({"other"}), residents, BY_SIZE, WARM) is planned


def test_the_rest_leaves_where_it_comes_to_a_batch_and_the_frontier_moves() -> None:
    residents = standing(600, 1200, 100, settings=BY_SIZE)
    planned = plan(residents, BY_SIZE, WARM, RICH)
    spared = plan_without(planned, frozenset({"c0"}), residents, BY_SIZE, WARM)
    assert calls(spared) == ["c1", "c2"]
    assert spared.epoch is not None
    assert spared.epoch.frontier == 1


def test_nothing_leaves_where_the_rest_is_too_little_or_nothing() -> None:
    residents = standing(600, 600, settings=BY_SIZE)
    planned = plan(residents, BY_SIZE, WARM, RICH)
    for held in ({"c0"}, {"c0", "c1"}):
        spared = plan_without(planned, frozenset(held), residents, BY_SIZE, WARM)
        assert (spared.epoch, spared.account) == (None, planned.alone)


def test_where_the_cache_is_cold_the_rest_leaves_whatever_its_size() -> None:
    residents = standing(5000, 400, settings=PRICED)
    planned = plan(residents, PRICED, COLD, RICH)
    spared = plan_without(planned, frozenset({"c0"}), residents, PRICED, COLD)
    assert calls(spared) == ["c1"]
    assert spared.account != planned.account


def test_where_the_rest_has_not_paid_for_its_rewrite_nothing_leaves() -> None:
    residents = standing(9000, 300, settings=PRICED, call=400)
    for call in range(401, 460):
        residents = residents.at_call(call, PRICED.rules)
    planned = plan(residents, PRICED, WARM, RICH)
    assert calls(planned) == ["c0", "c1"]
    assert plan_without(planned, frozenset({"c0"}), residents, PRICED, WARM).epoch is None
