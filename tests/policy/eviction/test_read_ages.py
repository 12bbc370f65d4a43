"""Reads go when the work on their file is over: held against a reference that looks at the whole past at every call."""

from dataclasses import dataclass

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pagein.errors import BadSetting
from pagein.policy.eviction.residency import EMPTY, Resident, ResidentSet
from pagein.policy.eviction.residency_rules import USUAL, ResidencyRules

RULES = USUAL.without_layer("odds").with_ages({"keep_calls": 1, "keep_reads": 1, "after_edit": 2, "after_task": 4})


def _read(call: int, path: str = "a.py") -> Resident:
    return Resident(f"c{call}", 2 * call, 0, 500, call, before=100 * call, kind="file read", path=path)


def _old(standing: ResidentSet, call: int, rules: ResidencyRules = RULES) -> list[str]:
    return [one.call_id for one in standing.at_call(call, rules).old()]


def _shown(call: int = 1, rules: ResidencyRules = RULES) -> ResidentSet:
    return EMPTY.at_call(call, rules).with_access("a.py", call, rules, edited=False).with_resident(_read(call), rules)


def test_a_read_of_the_task_at_hand_stays_however_old_it_is() -> None:
    assert _old(_shown(), 500) == []


def test_a_read_may_go_once_its_file_was_edited_and_then_left_alone() -> None:
    edited = _shown().with_access("a.py", 5, RULES, edited=True)
    assert _old(edited, 6) == []
    assert _old(edited, 7) == ["c1"]


def test_an_edit_that_failed_is_a_touch_and_no_edit() -> None:
    assert _old(_shown().with_access("a.py", 5, RULES, edited=False), 100) == []


def test_an_edit_before_the_read_does_not_let_it_go() -> None:
    read_again = EMPTY.with_access("a.py", 1, RULES, edited=True).with_resident(_read(3), RULES)
    assert _old(read_again, 100) == []


def test_a_read_of_an_older_task_may_go_when_its_file_was_left_alone() -> None:
    spoken = _shown().at_call(3, RULES).with_task(3, RULES)
    assert _old(spoken, 4) == []
    assert _old(spoken, 5) == ["c1"]


def test_what_a_person_says_with_the_first_read_begins_no_newer_task() -> None:
    assert _old(EMPTY.with_task(1, RULES).with_resident(_read(1), RULES), 100) == []


def test_a_touch_makes_a_read_that_might_have_gone_wait_again() -> None:
    standing = _shown().with_access("a.py", 5, RULES, edited=True).at_call(7, RULES)
    again = standing.with_access("a.py", 7, RULES, edited=True)
    assert again.old_tokens == 0
    assert _old(again, 8) == []
    assert _old(again, 9) == ["c1"]


def test_those_that_stay_old_beside_a_touched_file_keep_their_rent() -> None:
    standing = (
        _shown()
        .with_resident(_read(2, "b.py"), RULES)
        .with_access("a.py", 3, RULES, edited=True)
        .with_access("b.py", 3, RULES, edited=True)
    )
    aged = standing.at_call(5, RULES).at_call(10, RULES)
    rent = aged.rent(0.1)
    assert aged.with_access("b.py", 10, RULES, edited=True).rent(0.1) == pytest.approx(rent / 2)


def test_untouched_bounds_the_wait_where_it_is_set() -> None:
    bounded = RULES.with_ages({"untouched": 9})
    assert _old(_shown(rules=bounded), 9, bounded) == []
    assert _old(_shown(rules=bounded), 10, bounded) == ["c1"]


def _asked(words: str, rules: ResidencyRules = RULES) -> ResidentSet:
    return EMPTY.with_task(1, rules, words).with_access("a.py", 1, rules, edited=False).with_resident(_read(1), rules)


def test_a_session_that_was_asked_to_read_and_changes_nothing_lets_its_reads_go() -> None:
    assert _old(_asked("Review the diff of this branch"), 4) == []
    assert _old(_asked("Review the diff of this branch"), 5) == ["c1"]
    assert _old(_asked("Fix what the review found"), 500) == []
    assert _old(_asked("hm"), 500) == []


def test_an_edit_makes_the_reads_of_a_reading_session_wait_again() -> None:
    standing = _asked("Review the diff of this branch").at_call(5, RULES)
    assert [one.call_id for one in standing.old()] == ["c1"]
    edited = standing.with_access("b.py", 5, RULES, edited=True)
    assert edited.old_tokens == 0
    assert _old(edited, 500) == []


def test_a_request_to_change_makes_the_reads_of_a_reading_session_wait_again() -> None:
    standing = _asked("Review the diff of this branch").at_call(5, RULES).with_task(5, RULES, "go on and fix it")
    assert standing.old_tokens == 0
    assert _old(standing, 5) == ["c1"]  # four calls after the last touch, by now as a read of an older task
    young = _asked("Review the diff of this branch", USUAL).at_call(5, USUAL).with_task(5, USUAL, "go on and fix it")
    assert _old(young, 12, USUAL) == []
    assert _old(young, 13, USUAL) == ["c1"]


def test_what_a_session_has_done_outlives_a_window_that_is_built_anew() -> None:
    work = _asked("Review the diff of this branch").with_access("b.py", 2, RULES, edited=True).work
    assert not EMPTY.with_work(work).with_task(3, RULES, "Explain it").work.only_reads


def test_a_wait_of_nothing_is_refused() -> None:
    with pytest.raises(BadSetting, match="after_edit"):
        USUAL.with_ages({"after_edit": 0})


@dataclass(frozen=True, slots=True)
class _Happened:
    kind: str  # read, edit, fail, spoken
    path: str


_HAPPENINGS = st.lists(
    st.builds(_Happened, st.sampled_from(["read", "edit", "fail", "spoken", "idle"]), st.sampled_from("abc")),
    max_size=40,
)


_WORDS = {"a": "review it", "b": "fix it", "c": "these words say nothing"}


@given(_HAPPENINGS, st.sampled_from([None, 6]), st.integers(0, 3), st.sampled_from("abc"))
def test_the_queues_say_what_a_look_at_the_whole_past_says(
    told: list[_Happened], untouched: int | None, later: int, words: str
) -> None:
    rules = RULES.with_ages({"untouched": untouched})
    standing = EMPTY.with_task(0, rules, _WORDS[words])
    for call, one in enumerate(told, start=1):
        if one.kind == "spoken":
            standing = standing.with_task(call, rules, _WORDS[one.path])
        elif one.kind != "idle":
            standing = standing.with_access(one.path, call, rules, edited=one.kind == "edit")
        if one.kind == "read":
            standing = standing.with_resident(_read(call, one.path), rules)
        standing = standing.at_call(call + 1, rules)
    now = len(told) + 1 + later
    for call in range(len(told) + 2, now + 1):
        standing = standing.at_call(call, rules)
    old = list(standing.old())
    assert {one.call_id for one in old} == _by_looking(told, now, untouched, words)
    assert standing.old_tokens == sum(one.tokens for one in old)
    assert standing.old_gain == sum(one.gain for one in old)
    assert standing.first_before(ripe_too=False) == min((one.before for one in old), default=0)
    assert len(list(standing.all())) == sum(one.kind == "read" for one in told)


def _by_looking(told: list[_Happened], now: int, untouched: int | None, words: str) -> set[str]:
    past = list(enumerate(told, start=1))
    asked = [words, *(one.path for one in told if one.kind == "spoken")]
    only_reads = asked[0] == asked[-1] == "a" and all(one.kind != "edit" for one in told)
    task = max((call for call, one in past if one.kind == "spoken"), default=0)
    found = set()
    for born, read in past:
        if read.kind != "read":
            continue
        mine = [(call, one) for call, one in past if one.path == read.path and one.kind in ("read", "edit", "fail")]
        touched = max(call for call, _ in mine)
        edited = any(one.kind == "edit" and call >= born for call, one in mine)
        waits = [2] * edited + [4] * (born < task)
        waits += [4] * only_reads + ([] if untouched is None else [untouched])
        if waits and now - touched >= min(waits):
            found.add(f"c{born}")
    return found
