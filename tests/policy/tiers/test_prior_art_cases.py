"""The published cases of the tracker: input and output, one row each."""

from collections.abc import Mapping
from dataclasses import replace

import pytest

from pagein.policy.tiers.first_tiers import TierSeed, seeded_tiers
from pagein.policy.tiers.graduation import graduated_history, oldest
from pagein.policy.tiers.stability_file import decode_stability, encode_stability
from pagein.policy.tiers.tier_rules import SEED, TierRules
from pagein.policy.tiers.tier_values import (
    START,
    RequestItem,
    Tier,
    TierItem,
    TierState,
    tier_for,
)
from pagein.policy.tiers.tracker import Move, TierOutcome, track, without_prefix

Place = tuple[Tier, int]
FREE = replace(SEED, cache_min_tokens=0)
GATED = replace(SEED, cache_min_tokens=1000, cache_buffer_multiplier=1.0)


def standing(places: Mapping[str, Place], *, active: str = "") -> TierState:
    items = {key: TierItem(f"hash of {key}", n, tier) for key, (tier, n) in places.items()}
    return TierState(items, tuple(active))


def step(
    state: TierState,
    active: str,
    rules: TierRules = FREE,
    *,
    modified: str = "",
    sizes: Mapping[str, float] | None = None,
) -> TierOutcome:
    items = [RequestItem(key, f"hash of {key}") for key in active]
    tokens = None if sizes is None else sizes.__getitem__
    return track(state, items, rules, modified=tuple(modified), tokens=tokens)


def places(state: TierState) -> dict[str, Place]:
    return {key: (one.tier, one.n) for key, one in state.items.items()}


def test_entering_items_increment_veterans() -> None:
    state = step(START, "abc").state
    state = step(state, "ac").state
    assert places(state)["b"] == ("L3", 3)
    state = step(state, "a").state
    assert (places(state)["c"], places(state)["b"]) == (("L3", 3), ("L3", 4))


def test_a_veteran_at_the_threshold_is_promoted() -> None:
    before = standing({"x": ("L3", 5), "y": ("L3", 4), "t": ("active", 3)}, active="t")
    done = step(before, "")
    assert places(done.state) == {"x": ("L2", 6), "y": ("L3", 5), "t": ("L3", 3)}
    assert done.moves == (Move("t", "active", "L3"), Move("x", "L3", "L2"))


def test_a_promotion_cascades_to_the_top() -> None:
    before = standing({"t": ("active", 3), "a": ("L3", 5), "b": ("L2", 8), "c": ("L1", 11)}, active="t")
    assert places(step(before, "").state) == {"t": ("L3", 3), "a": ("L2", 6), "b": ("L1", 9), "c": ("L0", 12)}


def test_veterans_below_the_target_anchor_the_tier() -> None:
    before = standing({"e": ("active", 3), "B": ("L3", 4), "A": ("L3", 5)}, active="e")
    after = step(before, "", GATED, sizes={"e": 400, "B": 400, "A": 500}).state
    assert places(after) == {"e": ("L3", 3), "B": ("L3", 4), "A": ("L3", 5)}


def test_anchoring_is_deterministic() -> None:
    before = standing({"E": ("active", 3), "A": ("L3", 4), "B": ("L3", 5), "C": ("L3", 5)}, active="E")
    after = step(before, "", GATED, sizes={"E": 200, "A": 400, "B": 500, "C": 300}).state
    assert places(after) == {"E": ("L3", 3), "A": ("L3", 4), "B": ("L3", 5), "C": ("L2", 6)}


def test_a_cascade_with_thresholds() -> None:
    before = standing(
        {"t": ("active", 3), "p": ("L3", 4), "q": ("L3", 5), "r": ("L2", 7), "s": ("L2", 8)},
        active="t",
    )
    after = step(before, "", GATED, sizes={"t": 200, "p": 900, "q": 100, "r": 900, "s": 100}).state
    assert places(after) == {"t": ("L3", 3), "p": ("L3", 4), "q": ("L2", 6), "r": ("L2", 7), "s": ("L1", 9)}


def test_without_sizes_nothing_anchors() -> None:
    before = standing({"t": ("active", 3), "A": ("L3", 5), "B": ("L3", 4)}, active="t")
    assert places(step(before, "", GATED).state) == {"t": ("L3", 3), "A": ("L2", 6), "B": ("L3", 5)}


def test_two_entrants_increment_once() -> None:
    before = standing({"a": ("active", 1), "b": ("active", 2), "v": ("L3", 3)}, active="ab")
    assert places(step(before, "").state) == {"a": ("L3", 3), "b": ("L3", 3), "v": ("L3", 4)}


@pytest.mark.parametrize("how", ["content", "hint"])
def test_a_change_demotes_from_any_tier(how: str) -> None:
    before = standing({"k": ("L0", 15)})
    done = track(before, [RequestItem("k", "other")], FREE) if how == "content" else step(before, "k", modified="k")
    assert places(done.state) == {"k": ("active", 0)}
    assert done.moves == (Move("k", "L0", "active"),)


def test_the_scenario_of_three_files() -> None:
    state = step(START, "ABC").state
    assert set(places(state).values()) == {("active", 0)}
    state = step(state, "A").state
    assert places(state) == {"A": ("active", 1), "B": ("L3", 3), "C": ("L3", 3)}
    state = track(state, [RequestItem("A", "hash of A"), RequestItem("B", "edited")], FREE).state
    assert places(state) == {"A": ("active", 2), "B": ("active", 0), "C": ("L3", 3)}


def test_history_stays_active_while_it_is_listed_and_enters_l3_when_left_out() -> None:
    state = START
    for _ in range(4):
        state = track(state, [RequestItem("history:0", "h")], FREE).state
    assert places(state) == {"history:0": ("active", 3)}
    state = track(state, [], FREE).state
    assert places(state) == {"history:0": ("L3", 3)}
    state, gone = without_prefix(state, "history:")
    assert gone == ("history:0",)
    assert places(track(state, [RequestItem("history:0", "h")], FREE).state) == {"history:0": ("active", 0)}


def test_ten_files_are_seeded_by_references() -> None:
    counts = (20, 15, 10, 8, 6, 4, 3, 1, 0, 0)
    seeded = seeded_tiers([TierSeed(f"f{place}", count) for place, count in enumerate(counts)])
    found = [(one.tier, one.n) for one in seeded.values()]
    assert found == [("L1", 9)] * 2 + [("L2", 6)] * 3 + [("L3", 3)] * 5


def test_five_files_are_seeded_by_references() -> None:
    seeded = seeded_tiers([TierSeed(str(place), 5 - place) for place in range(5)])
    assert [one.tier for one in seeded.values()] == ["L1", "L2", "L3", "L3", "L3"]
    assert not {one.tier for one in seeded_tiers([TierSeed("a", 1), TierSeed("b", 0)]).values()} & {"L1", "L0"}


def test_seeding_with_a_target_fills_tiers_from_the_top() -> None:
    sizes = (600, 500, 400, 700, 200, 300, 100)
    items = [TierSeed(str(place), 10 - place, size) for place, size in enumerate(sizes)]
    assert [one.tier for one in seeded_tiers(items, 1000).values()] == ["L1", "L1", "L2", "L2", "L3", "L3", "L3"]


def test_the_target_comes_from_the_settings() -> None:
    assert SEED.target_tokens == 1536
    assert FREE.target_tokens == 0


@pytest.mark.parametrize(("n", "tier"), [(0, "active"), (3, "L3"), (6, "L2"), (9, "L1"), (12, "L0")])
def test_the_tier_of_an_n(n: int, tier: Tier) -> None:
    assert tier_for(n) == tier


@pytest.mark.parametrize(
    ("sizes", "keep", "gone"),
    [
        ((300,) * 4, 600, {0, 1}),
        ((200, 200), 1000, set()),
        ((500,) * 3, 500, {0, 1}),
        ((100, 800, 100, 200), 400, {0, 1}),
        ((), 400, set()),
        ((2000,), 500, {0}),
        ((300,) * 3, 0, {0, 1, 2}),
    ],
)
def test_the_oldest_messages_go(sizes: tuple[float, ...], keep: float, gone: set[int]) -> None:
    assert set(oldest(sizes, keep)) == gone


@pytest.mark.parametrize(
    ("target", "sizes", "new", "ripple", "gone"),
    [
        (500, (100,) * 6, 0, False, {0}),
        (500, (100,) * 2, 0, False, set()),
        (500, (100,) * 2, 0, True, {0, 1}),
        (500, (300,) * 10, 0, True, set(range(10))),
        (0, (300,) * 10, 0, True, set()),
        (500, (200,) * 4, 2, False, {0, 1}),
    ],
)
def test_the_flow_of_graduation(
    target: int,
    sizes: tuple[float, ...],
    new: int,
    ripple: bool,  # noqa: FBT001 -- a table
    gone: set[int],
) -> None:
    rules = replace(SEED, cache_min_tokens=target, cache_buffer_multiplier=1.0)
    all_sizes = (*sizes, *(200.0,) * new)
    history = [RequestItem(f"history:{place}", "h", size) for place, size in enumerate(all_sizes)]
    items = {one.key: TierItem("h", 3 if place < len(sizes) else 0) for place, one in enumerate(history)}
    found = graduated_history(TierState(items), history, rules, ripple=ripple)
    assert {int(key.removeprefix("history:")) for key in found} == gone


def test_removal_by_prefix() -> None:
    before = TierState({"history:0": TierItem("h"), "a": TierItem("x")}, ("history:0", "a"))
    after, gone = without_prefix(before, "history:")
    assert (gone, after.last_active, list(after.items)) == (("history:0",), ("a",), ["a"])
    assert decode_stability(encode_stability(after)).last_active == ("a",)
    assert without_prefix(START, "history:") == (START, ())
    assert without_prefix(after, "history:") == (after, ())


def test_the_file_of_the_seed_design_round_trips() -> None:
    state = step(step(START, "abc").state, "a").state
    text = encode_stability(state)
    again = decode_stability(text)
    assert (places(again), again.responses, again.last_active) == (places(state), 2, ("a",))
    assert [one.digest for one in again.items.values()] == [one.digest for one in state.items.values()]
    assert text.startswith(
        '{\n  "response_count": 2,\n  "last_active_items": [\n    "a"\n  ],\n  "items": {\n    "a": {'
    )
    assert '"content_hash": "hash of a",\n      "n_value": 1,\n      "tier": "active"' in text


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{",
        "[]",
        "[" * 100_000,
        '{"response_count": 1e999}',
        '{"items": 3}',
        '{"items": {"a": {"tier": "L9", "content_hash": ""}}}',
        '{"items": {"a": {"tier": "L3", "content_hash": "", "n_value": 1e999}}}',
    ],
)
def test_a_damaged_file_is_a_fresh_start(text: str) -> None:
    assert decode_stability(text) == START


def test_names_of_older_files_are_understood() -> None:
    old = '{"items": {"a": {"content_hash": "h", "stable_count": 7, "current_tier": "L2", "tier_entry_response": 4}}}'
    assert places(decode_stability(old)) == {"a": ("L2", 7)}
