"""Steps of the tiers: against the naive words of the specification, and each correction beside the seed's behaviour."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.policy.tiers.naive_tiers import NaiveTiers

from pagein.errors import BadSetting
from pagein.policy.tiers.first_tiers import TierSeed, seeded_tiers
from pagein.policy.tiers.frozen_order import CacheTerms
from pagein.policy.tiers.stability_file import decode_stability, encode_stability
from pagein.policy.tiers.tier_rules import CHOICES, NAMES, PAGEIN, PRESETS, SEED, TierRules, preset
from pagein.policy.tiers.tier_steps import TierFacts, TierStep, step_tiers
from pagein.policy.tiers.tier_values import START, RequestItem, TierState
from pagein.policy.tiers.transitions import TRANSITIONS

PATHS = ("a.py", "b.py", "c.py", "d.py", "e.py")
SIZES = {"a.py": 900.0, "b.py": 400.0, "c.py": 100.0, "d.py": 2000.0, "e.py": 50.0, "0.py": 100.0}
TURN = st.fixed_dictionaries(
    {
        "selected": st.frozensets(st.sampled_from(PATHS)),
        "edited": st.frozensets(st.sampled_from(PATHS), max_size=2),
        "modified": st.frozensets(st.sampled_from(PATHS), max_size=1),
        "said": st.integers(0, 2),
    }
)


def facts_of(
    versions: dict[str, int],
    selected: frozenset[str] = frozenset(PATHS),
    *,
    said: int = 0,
    modified: frozenset[str] = frozenset(),
) -> TierFacts:
    return TierFacts(
        files=tuple(RequestItem(path, f"{path} {versions[path]}", SIZES[path]) for path in versions),
        selected=selected,
        symbols=tuple(
            RequestItem(f"symbol:{path}", f"of {path} {versions[path]}", SIZES[path] / 10) for path in versions
        ),
        history=tuple(RequestItem(f"history:{number}", f"said {number}", 300.0) for number in range(said)),
        modified=modified,
    )


@given(st.lists(TURN, max_size=18), st.sampled_from([0, 400, 1024]))
def test_tiers_and_n_are_those_of_the_naive_words(turns: list[dict[str, object]], minimum: int) -> None:
    rules = replace(SEED, cache_min_tokens=minimum)
    naive, state = NaiveTiers(rules.target_tokens), START
    versions, said = dict.fromkeys(PATHS, 0), 0
    for turn in turns:
        for path in turn["edited"]:  # type: ignore[attr-defined]
            versions[path] += 1
        said += turn["said"]  # type: ignore[operator]
        facts = facts_of(versions, turn["selected"], said=said, modified=turn["modified"])  # type: ignore[arg-type]
        state = step_tiers(state, facts, rules).state
        naive.request(
            {one.key: (str(one.digest), one.tokens) for one in facts.files},
            facts.selected,
            {one.key.removeprefix("symbol:"): (str(one.digest), one.tokens) for one in facts.symbols},
            [(str(one.digest), one.tokens) for one in facts.history],
            facts.modified,
        )
        assert {key: (one.tier, one.n) for key, one in state.items.items()} == {
            key: (naive.tier[key], naive.n[key]) for key in naive.tier
        }


def run(rules: TierRules, *turns: TierFacts, start: TierState = START) -> TierStep:
    done = TierStep(None)  # type: ignore[arg-type]
    for facts in turns:
        done = step_tiers(start, facts, rules)
        start = done.state
    return done


STILL = dict.fromkeys(PATHS, 0)


def test_a_stable_file_and_its_symbol_entry_graduate_each_for_itself() -> None:
    one = frozenset({"a.py"})
    done = run(SEED, *[facts_of(STILL, one)] * 5)
    assert {key: (item.tier, item.n) for key, item in done.state.items.items()} == {
        "a.py": ("L3", 3),
        "symbol:a.py": ("L3", 3),
    }
    edited = run(SEED, facts_of(STILL, one, modified=one), start=done.state)
    assert {item.tier for item in edited.state.items.values()} == {"active"}
    assert edited.ripple


def test_the_first_request_after_a_restart_is_a_ripple() -> None:
    before = run(SEED, *[facts_of(STILL)] * 2).state
    assert not run(SEED, facts_of(STILL), start=before).ripple
    assert run(SEED, replace(facts_of(STILL), restarted=True), start=before).ripple
    assert run(SEED, facts_of(STILL), start=decode_stability(encode_stability(before))).ripple
    known = run(PAGEIN, facts_of(STILL)).state
    assert not run(PAGEIN, facts_of(STILL), start=known).ripple
    assert run(PAGEIN, replace(facts_of(STILL), restarted=True), start=known).ripple


def test_without_a_minimum_nothing_is_gated_and_history_stays() -> None:
    free = replace(SEED, cache_min_tokens=0)
    done = run(free, *[facts_of(STILL, said=4)] * 5, facts_of({**STILL, "a.py": 1}, said=4))
    assert {done.state.tier(f"history:{number}") for number in range(4)} == {"active"}
    gated = run(SEED, *[facts_of(STILL, said=4)] * 5, facts_of({**STILL, "a.py": 1}, said=4))
    assert {gated.state.tier(f"history:{number}") for number in range(4)} == {"L3"}


def test_history_is_registered_before_it_can_graduate() -> None:
    """A message that appears in the very request of a ripple stays, and is tracked from then on."""
    done = run(SEED, *[facts_of(STILL)] * 5, facts_of({**STILL, "a.py": 1}, said=2))
    assert done.ripple
    assert [done.state.items[f"history:{number}"].tier for number in range(2)] == ["active", "active"]


REFERENCES = {"a.py": 9, "b.py": 4, "c.py": 2, "d.py": 1, "e.py": 0}


def referenced(rules: TierRules, selected: frozenset[str]) -> TierState:
    return run(rules, replace(facts_of(STILL, selected), references=REFERENCES)).state


def test_active_files_are_left_out_of_the_initialisation_and_l0_is_earned() -> None:
    state = referenced(replace(SEED, cache_min_tokens=0), frozenset({"a.py"}))
    assert "symbol:a.py" in state.last_active
    assert {key: state.tier(key) for key in state.items if key not in state.last_active} == {
        "symbol:b.py": "L2",
        "symbol:c.py": "L2",
        "symbol:d.py": "L3",
        "symbol:e.py": "L3",
    }
    again = step_tiers(state, replace(facts_of(STILL), references={"e.py": 100}), SEED)
    assert again.state.tier("symbol:e.py") != "L1"  # a tracker that holds data is not initialised again


@pytest.mark.parametrize(("placeholder", "tier"), [("differs", "active"), ("matches", "L2")])
def test_a_placeholder_is_a_change_in_the_seed_design_alone(placeholder: str, tier: str) -> None:
    rules = replace(SEED, cache_min_tokens=0, placeholder=placeholder)  # type: ignore[arg-type]
    state = referenced(rules, frozenset({"a.py"}))
    selected = facts_of(STILL, frozenset({"a.py", "b.py"}))
    assert step_tiers(state, selected, rules).state.tier("symbol:b.py") == tier


@pytest.mark.parametrize(("leaving", "known"), [("any", True), ("aged", False)])
def test_a_file_selected_once_is_cached_in_the_seed_design_alone(leaving: str, known: bool) -> None:  # noqa: FBT001
    rules = replace(SEED, leaving=leaving)  # type: ignore[arg-type]
    state = run(rules, facts_of(STILL), facts_of(STILL, frozenset({"b.py"}))).state
    assert ("a.py" in state.items) is known


@pytest.mark.parametrize(("absent", "known"), [("stays", True), ("leaves", False)])
def test_a_deleted_file_stays_in_the_seed_design_alone(absent: str, known: bool) -> None:  # noqa: FBT001
    rules = replace(SEED, absent=absent)  # type: ignore[arg-type]
    without = {path: 0 for path in PATHS if path != "a.py"}
    state = run(rules, *[facts_of(STILL)] * 5, facts_of(without, frozenset(without))).state
    assert ("a.py" in state.items, "symbol:a.py" in state.items) == (known, known)


@pytest.mark.parametrize(("age", "tier"), [("aged", "active"), ("at once", "L3")])
def test_the_age_of_a_message_counts_in_the_seed_design_alone(age: str, tier: str) -> None:
    rules = replace(SEED, history_age=age)  # type: ignore[arg-type]
    done = run(rules, facts_of(STILL, said=1), facts_of({**STILL, "a.py": 1}, frozenset({"b.py"}), said=1))
    assert done.state.tier("history:0") == tier


@pytest.mark.parametrize(("place", "tier"), [("tiers", "L3"), ("conversation", "active")])
def test_old_messages_move_into_tiers_in_the_seed_design_alone(place: str, tier: str) -> None:
    rules = replace(SEED, history_place=place)  # type: ignore[arg-type]
    done = run(rules, *[facts_of(STILL, said=1)] * 5, facts_of({**STILL, "a.py": 1}, said=1))
    assert done.state.tier("history:0") == tier


def test_shares_are_of_items_in_the_seed_design_and_of_tokens_in_the_corrected_one() -> None:
    items = [TierSeed("big", 9, 500.0), *(TierSeed(str(place), 8 - place, 100.0) for place in range(5))]
    count = [one.tier for one in seeded_tiers(items).values()]
    tokens = [one.tier for one in seeded_tiers(items, seeding="tokens").values()]
    assert count == ["L1", "L2", "L2", "L3", "L3", "L3"]
    assert tokens == ["L1", "L3", "L3", "L3", "L3", "L3"]  # the first alone has half of all tokens


def test_without_anchors_a_small_tier_promotes_too() -> None:
    turns = [facts_of(STILL, frozenset({"e.py"}))] * 5
    more = [facts_of({"c.py": number, "e.py": 0}, frozenset({"c.py"})) for number in (0, 0, 0, 0, 0, 1, 1, 1, 1, 1)]
    small = run(SEED, *turns, *more).state
    free = run(replace(SEED, anchors=False), *turns, *more).state
    assert small.n("e.py") < free.n("e.py")


# --- the corrected preset ---


def test_cached_items_keep_their_places_while_nothing_changes() -> None:
    first = run(PAGEIN, facts_of(STILL)).state
    later = run(PAGEIN, *[facts_of(STILL, said=number) for number in range(20)], start=first).state
    assert (later.order, later.entries) == (first.order, first.entries)
    assert {one.tier for one in later.items.values()} == {"L3"}  # no age alone promotes


def test_a_change_moves_only_what_stands_behind_the_last_readable_entry() -> None:
    first = run(PAGEIN, *[facts_of(STILL)] * 13).state
    place = first.order.index("d.py")
    changed = run(PAGEIN, facts_of({**STILL, "d.py": 1}), start=first).state
    readable = max((one for one in first.entries if one <= place), default=0)
    assert changed.order[:readable] == first.order[:readable]
    assert "d.py" not in changed.order
    assert changed.items["d.py"].tier == "active"
    front = first.order[0]
    rewritten = run(PAGEIN, facts_of({**STILL, front: 1}), start=first).state
    assert set(rewritten.order) == set(first.order) - {front}
    assert {rewritten.items[key].tier for key in rewritten.order} == {"L0"}


def test_an_external_change_does_not_drain_the_tiers_in_front_of_it() -> None:
    settled = run(PAGEIN, facts_of(STILL), facts_of({**STILL, "c.py": 1}), *[facts_of({**STILL, "c.py": 1})] * 12).state
    last = settled.order[-1]
    after = run(PAGEIN, facts_of({**STILL, "c.py": 1, last: 2}), start=settled).state
    assert {key: after.tier(key) for key in settled.order[:-1]} == {
        key: settled.tier(key) for key in settled.order[:-1]
    }


def test_an_item_outside_enters_when_it_has_cost_more_than_its_entry() -> None:
    state = run(PAGEIN, facts_of(STILL, said=10)).state
    state = run(PAGEIN, facts_of({**STILL, "e.py": 1}, said=10), start=state).state
    waits = 0
    while "e.py" not in state.order:
        state = run(PAGEIN, facts_of({**STILL, "e.py": 1}, said=10), start=state).state
        waits += 1
    behind, size = 3000.0, SIZES["e.py"]
    carried = (waits - 2) * 0.9 * size  # it waits for an N of 3 first
    assert 1.15 * behind + 0.25 * size < carried < 1.15 * behind + 0.25 * size + 0.9 * size


def test_a_deselected_file_leaves_with_the_next_rewrite_and_costs_none_itself() -> None:
    first = run(PAGEIN, facts_of(STILL)).state
    gone = first.order[2]
    without = frozenset(PATHS) - {gone}
    later = run(PAGEIN, *[facts_of(STILL, without)] * 3, start=first).state
    assert later.order[: len(first.order)] == first.order
    again = run(PAGEIN, facts_of(STILL), start=later).state
    assert again.order[: len(first.order)] == first.order  # a toggle costs nothing
    front = first.order[0]
    rewritten = run(PAGEIN, facts_of({**STILL, front: 1}, without), start=later).state
    assert gone not in rewritten.items
    changed = run(PAGEIN, facts_of({**STILL, gone: 1}, without), start=later).state
    assert gone not in changed.items  # its text would not be true any more


def test_pages_from_the_web_are_items_of_the_corrected_preset_alone() -> None:
    page = (RequestItem("url:https://x", "1", 500.0),)
    assert "url:https://x" in run(PAGEIN, replace(facts_of(STILL), urls=page)).state.order
    assert "url:https://x" not in run(SEED, replace(facts_of(STILL), urls=page)).state.items
    gone = run(PAGEIN, replace(facts_of(STILL), urls=page), facts_of(STILL)).state
    assert "url:https://x" not in gone.items


def test_an_insertion_shifts_nothing() -> None:
    first = run(PAGEIN, facts_of(STILL, said=2)).state
    more = {"0.py": 0, **STILL}
    second = run(PAGEIN, *[facts_of(more, frozenset(more), said=2)] * 30, start=first).state
    assert second.order == (*first.order, "0.py")
    assert second.entries[: len(first.entries)] == first.entries


def test_a_cold_cache_is_a_rewrite_of_everything() -> None:
    edited = {**STILL, "a.py": 1}
    state = run(PAGEIN, facts_of(STILL), *[facts_of(edited, said=200)] * 6).state
    assert "a.py" not in state.order
    assert "a.py" in run(PAGEIN, replace(facts_of(edited, said=200), cold=True), start=state).state.order


def test_a_cache_that_reads_every_prefix_keeps_all_in_front_of_the_change() -> None:
    first = run(PAGEIN, facts_of(STILL)).state
    changed = {**STILL, first.order[3]: 1}
    after = step_tiers(first, facts_of(changed), PAGEIN, CacheTerms(anywhere=True)).state
    assert after.order[:3] == first.order[:3]


def test_every_choice_is_a_field_with_its_seed_value_as_the_default() -> None:
    assert {one.name for one in CHOICES} | {"cache_min_tokens", "cache_buffer_multiplier"} == set(NAMES)
    assert all(getattr(SEED, one.name) != getattr(PAGEIN, one.name) for one in CHOICES)
    assert TierRules() == SEED == preset("seed")
    assert set(PRESETS) == {"seed", "pagein"}


def test_choices_that_do_not_go_together_are_refused() -> None:
    with pytest.raises(BadSetting, match="cached bytes must not move"):
        TierRules(promotion="rewritten")
    with pytest.raises(BadSetting, match="0 or more"):
        TierRules(cache_min_tokens=-1)
    for endless in (float("nan"), float("inf")):
        with pytest.raises(BadSetting, match="0 or more"):
            TierRules(cache_buffer_multiplier=endless)
    with pytest.raises(BadSetting, match="one of seed, pagein"):
        preset("seeds")


def test_the_table_has_a_row_for_each_event_that_can_meet_a_tier() -> None:
    assert len(TRANSITIONS) == 5 * 2 + 1 + 4 * 3
