from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pagein.errors import BadSetting
from pagein.model.messages import Image, ToolResult
from pagein.policy.eviction.residency import EMPTY, Epoch, Residency, Resident, ResidentSet, decide, removable

SETTINGS = Residency(batch_tokens=1000, keep_calls=3, low_water_tokens=200)


def standing(*groups: tuple[int, ...], settings: Residency = SETTINGS, call: int | None = None) -> ResidentSet:
    """Group by group the sizes of its results; group n is first seen by call n. The next call is number `call`."""
    found = EMPTY
    for born, sizes in enumerate(groups):
        for block, tokens in enumerate(sizes):
            found = found.born(Resident(f"call-{born}-{block}", 2 * born, block, tokens, born))
    return found.at_call(len(groups) if call is None else call, settings)


def paged(epoch: Epoch | None) -> list[str]:
    return [] if epoch is None else [one.call_id for one in epoch.page_out]


def test_nothing_goes_before_a_batch_has_come_together() -> None:
    assert decide(standing((999,), (), (), ()), SETTINGS) is None
    assert paged(decide(standing((1000,), (), (), ()), SETTINGS)) == ["call-0-0"]


def test_what_was_there_for_fewer_calls_does_not_count() -> None:
    assert decide(standing((), (5000,), (5000,), (5000,), call=3), SETTINGS) is None
    assert paged(decide(standing((), (5000,), (5000,), (5000,), call=4), SETTINGS)) == ["call-1-0"]


def test_the_oldest_go_first_down_to_the_low_water_mark() -> None:
    epoch = decide(standing((400,), (400,), (100,), (100,), (), (9999,), ()), SETTINGS)
    assert paged(epoch) == ["call-0-0", "call-1-0"]
    epoch = decide(standing((400,), (400,), (100,), (101,), (), (9999,), ()), SETTINGS)
    assert paged(epoch) == ["call-0-0", "call-1-0", "call-2-0"]


def test_a_group_goes_as_a_whole() -> None:
    epoch = decide(standing((900, 50, 50), (100,), (), (), ()), SETTINGS)
    assert paged(epoch) == ["call-0-0", "call-0-1", "call-0-2"]


def test_results_of_the_latest_assistant_message_stay_whatever_the_settings() -> None:
    eager = Residency(batch_tokens=1, keep_calls=0)
    found = standing((500,), (500,), settings=eager, call=1)
    assert paged(decide(found, eager)) == ["call-0-0"]


def test_the_frontier_is_the_first_message_that_changes() -> None:
    epoch = decide(standing((), (), (600,), (600,), (), (), ()), SETTINGS)
    assert epoch is not None
    assert epoch.frontier == 4


def test_what_was_paged_out_is_not_considered_again() -> None:
    before = standing((1000,), (1000,), (), (), ())
    epoch = decide(before, SETTINGS)
    assert epoch is not None
    after = before.without([(one.message, one.block) for one in epoch.page_out])
    assert decide(after, SETTINGS) is None
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
    assert removable(result, tokens, SETTINGS) is may


@pytest.mark.parametrize(
    "change",
    [{"batch_tokens": 0}, {"keep_calls": -1}, {"low_water_tokens": -1}, {"min_tokens": -1}, {"low_water_tokens": 1000}],
)
def test_a_setting_outside_its_range_is_refused_by_name(change: dict[str, Any]) -> None:
    with pytest.raises(BadSetting, match=next(iter(change))):
        replace(SETTINGS, **change)


GROUPS = st.lists(st.lists(st.integers(1, 700), max_size=3).map(tuple), max_size=30)


@given(GROUPS)
def test_moving_on_call_by_call_is_moving_on_at_once(groups: list[tuple[int, ...]]) -> None:
    slow = EMPTY
    for born, sizes in enumerate(groups):
        for block, tokens in enumerate(sizes):
            slow = slow.born(Resident(f"call-{born}-{block}", 2 * born, block, tokens, born))
        slow = slow.at_call(born + 1, SETTINGS)
    fast = standing(*groups)
    assert list(slow.old()) == list(fast.old())
    assert list(slow.all()) == list(fast.all())
    assert slow.old_tokens == fast.old_tokens == sum(one.tokens for one in fast.old())


@given(GROUPS)
def test_a_decision_is_a_prefix_of_whole_groups_of_what_may_go(groups: list[tuple[int, ...]]) -> None:
    found = standing(*groups)
    epoch = decide(found, SETTINGS)
    old = list(found.old())
    assert all(one.born <= len(groups) - SETTINGS.keep_calls for one in old)
    if epoch is None:
        assert found.old_tokens < SETTINGS.batch_tokens
        return
    gone = list(epoch.page_out)
    assert gone == old[: len(gone)]
    assert not {one.born for one in gone} & {one.born for one in old[len(gone) :]}
    assert sum(one.tokens for one in old[len(gone) :]) <= SETTINGS.low_water_tokens
    # One group less would have been too little.
    kept_longer = [one for one in old if one.born >= gone[-1].born]
    assert sum(one.tokens for one in kept_longer) > SETTINGS.low_water_tokens
