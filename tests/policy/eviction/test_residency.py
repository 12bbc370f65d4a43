"""The results that may be evicted, and the evictions without prices."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pagein.errors import BadSetting
from pagein.model.messages import Image, ToolResult
from pagein.policy.economics.rewrite_cost import Account, Moment
from pagein.policy.eviction.residency import EMPTY, Epoch, Residency, Resident, ResidentSet, is_removable, plan
from pagein.testing.eager_residency import eager

SETTINGS = eager(keep_calls=3)


def standing(*groups: tuple[int, ...], settings: Residency = SETTINGS, call: int | None = None) -> ResidentSet:
    """Group by group the sizes of its results; group n is first seen by call n. The next call is number `call`."""
    found = EMPTY
    for born, sizes in enumerate(groups):
        for block, tokens in enumerate(sizes):
            found = found.with_resident(Resident(f"call-{born}-{block}", 2 * born, block, tokens, born), settings.rules)
    return found.at_call(len(groups) if call is None else call, settings.rules)


def decide(found: ResidentSet, settings: Residency = SETTINGS) -> Epoch | None:
    return plan(found, settings, Moment(None, None, 100_000, 0), Account()).epoch


def paged(epoch: Epoch | None) -> list[str]:
    return [] if epoch is None else [one.call_id for one in epoch.page_out]


def test_without_prices_a_result_is_evicted_as_soon_as_it_is_old_enough() -> None:
    assert decide(standing((), (5000,), (5000,), (5000,), call=3)) is None
    assert paged(decide(standing((), (5000,), (5000,), (5000,), call=4))) == ["call-1-0"]


def test_a_group_is_evicted_as_a_whole() -> None:
    assert paged(decide(standing((900, 50, 50), (100,), (), ()))) == [
        "call-0-0",
        "call-0-1",
        "call-0-2",
        "call-1-0",
    ]


def test_results_of_the_latest_assistant_message_stay_whatever_the_settings() -> None:
    at_once = eager(keep_calls=0)
    found = standing((500,), (500,), settings=at_once, call=1)
    assert paged(decide(found, at_once)) == ["call-0-0"]


def test_the_frontier_is_the_first_message_that_changes() -> None:
    epoch = decide(standing((), (), (600,), (600,), (), (), ()))
    assert epoch is not None
    assert epoch.frontier == 4


def test_a_read_with_a_receipt_stays_because_a_later_answer_may_rest_on_it() -> None:
    text = "value = 1\n" * 400
    assert is_removable(ToolResult("c", text), 1000, SETTINGS)
    assert not is_removable(ToolResult("c", f"{text}\n[known=0123456789]"), 1000, SETTINGS)
    assert is_removable(ToolResult("c", f"[known=0123456789]\n{text}"), 1000, SETTINGS)


def test_an_evicted_result_is_not_considered_again() -> None:
    before = standing((1000,), (1000,), (), (), ())
    epoch = decide(before)
    assert epoch is not None
    after = before.without([one.place for one in epoch.page_out])
    assert decide(after) is None
    assert list(after.all()) == []


@pytest.mark.parametrize(
    ("result", "tokens", "may"),
    [
        (ToolResult("a", "x" * 1000), 200, True),
        (ToolResult("a", "x" * 1000), 199, False),
        (ToolResult("a", "x" * 1000, is_error=True), 200, False),
        (ToolResult("a", "x" * 1000, images=(Image("image/png", 5),)), 200, False),
        (ToolResult("a", "short"), 200, False),
    ],
)
def test_errors_images_and_small_results_stay(result: ToolResult, tokens: int, *, may: bool) -> None:
    assert is_removable(result, tokens, SETTINGS) is may


@pytest.mark.parametrize("change", [{"keep_calls": -1}, {"keep_reads": -1}, {"min_tokens": -1}])
def test_a_setting_outside_its_range_is_refused_by_name(change: dict[str, Any]) -> None:
    with pytest.raises(BadSetting, match=next(iter(change))):
        eager(**change)


GROUPS = st.lists(st.lists(st.integers(1, 700), max_size=3).map(tuple), max_size=30)


@given(GROUPS, st.integers(0, 3))
def test_moving_on_call_by_call_is_moving_on_at_once(groups: list[tuple[int, ...]], cheap: int) -> None:
    settings = eager(keep_calls=3, keep_calls_free=cheap)
    slow = EMPTY
    for born, sizes in enumerate(groups):
        for block, tokens in enumerate(sizes):
            slow = slow.with_resident(Resident(f"call-{born}-{block}", 2 * born, block, tokens, born), settings.rules)
        slow = slow.at_call(born + 1, settings.rules)
    fast = standing(*groups, settings=settings)
    assert list(slow.old()) == list(fast.old())
    assert list(slow.ripe()) == list(fast.ripe())
    assert list(slow.all()) == list(fast.all())
    assert slow.old_tokens == fast.old_tokens == sum(one.tokens for one in fast.old())
    assert slow.ripe_gain == fast.ripe_gain == sum(one.gain for one in fast.ripe())


@given(GROUPS)
def test_without_prices_exactly_what_is_old_enough_is_evicted(groups: list[tuple[int, ...]]) -> None:
    found = standing(*groups)
    old = [one for one in found.all() if one.born <= len(groups) - 3]
    assert paged(decide(found)) == [one.call_id for one in old]
