"""Arguments with file text: which parts may be masked, when, and the line in their place."""

import json
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pagein.errors import BadSetting
from pagein.model.messages import FileAccess, ToolCall
from pagein.policy.eviction.argument_masks import (
    CAREFUL,
    NOTHING,
    SOON,
    ArgumentRules,
    mask_arguments,
    same_but_texts,
    weight,
)
from pagein.policy.eviction.residency import EMPTY, PRICED, Residency, Resident, ResidentSet
from pagein.policy.eviction.residency_rules import USUAL
from pagein.policy.reads.echo_guard import OwnTexts, echoes
from pagein.policy.stubs.recall_ways import TOOLS

SIZES = ArgumentRules()
RULES = USUAL.with_ages({"replaced": 3, "alone": 10})
ID = "pg-0123abcd-4567ef01"
LONG = "a line of the file\n" * 60
OTHER = "another line of it\n" * 60
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)


def edit(old: str = LONG, new: str = OTHER, **more: object) -> ToolCall:
    arguments = json.dumps({"file_path": "/w/a.py", "old_string": old, "new_string": new, **more})
    return ToolCall("call-1", "Edit", arguments, (FileAccess("edit", "/w/a.py"),))


def written(born: int, path: str = "a.py", form: str = "texts") -> Resident:
    at = Resident(f"call-{born}", 2 * born, 0, 1000, born, 0, path=path, stays=50)
    if form == "texts":
        return replace(at, kind="file text", form="texts", stays=50)
    return replace(at, kind="replaced text", form="replaced", stays=500)


def aged(standing: ResidentSet, call: int) -> list[tuple[str, str]]:
    return [(one.call_id, one.form) for one in standing.at_call(call, RULES).old()]


def test_nothing_is_masked_unless_it_is_asked_for() -> None:
    assert Residency().arguments is None
    assert PRICED.arguments is None


def test_the_careful_settings_leave_all_but_big_arguments_alone() -> None:
    big = edit(new="a line of the file\n" * 600)
    assert weight(edit(), CAREFUL) == NOTHING
    assert weight(edit(), SOON).without_any < len(edit().arguments)
    assert weight(big, CAREFUL).without_any < len(big.arguments)


def test_of_an_edit_the_text_that_it_replaced_may_go_alone() -> None:
    held = weight(edit(), SIZES)
    assert held.chars == len(edit().arguments)
    assert held.without_any < held.without_replaced < held.chars
    half = json.loads(mask_arguments(edit().arguments, ID, "Edit", SIZES, TOOLS, written=False))
    assert half["new_string"] == OTHER
    assert half["file_path"] == "/w/a.py"
    assert ID in half["old_string"]
    assert len(half["old_string"]) < 130
    whole = json.loads(mask_arguments(edit().arguments, ID, "Edit", SIZES, TOOLS, written=True))
    assert ID in whole["new_string"]
    assert list(whole) == ["file_path", "old_string", "new_string"]


def test_every_client_s_names_for_such_texts_are_known() -> None:
    for name in ("old_string", "oldString", "oldText", "old_str", "old_text"):
        assert ID in mask_arguments(json.dumps({name: LONG}), ID, "x", SIZES, TOOLS, written=False)
    for name in ("new_string", "newString", "newText", "content", "file_text", "new_source"):
        assert ID not in mask_arguments(json.dumps({name: LONG}), ID, "x", SIZES, TOOLS, written=False)
        assert ID in mask_arguments(json.dumps({name: LONG}), ID, "x", SIZES, TOOLS, written=True)
    several = {"path": "a", "edits": [{"oldText": LONG, "newText": "short"}, {"oldText": "o", "newText": LONG}]}
    made = json.loads(mask_arguments(json.dumps(several), ID, "edit", SIZES, TOOLS, written=True))
    assert [ID in one["oldText"] for one in made["edits"]] == [True, False]
    assert [ID in one["newText"] for one in made["edits"]] == [False, True]


def test_a_patch_is_text_of_files_by_whatever_name_it_comes() -> None:
    patch = "*** Begin Patch\n*** Update File: a.py\n" + "+a line\n" * 90
    assert (
        json.loads(mask_arguments(json.dumps({"command": patch}), ID, "shell", SIZES, TOOLS, written=True))[
            "command"
        ].count(ID)
        == 2
    )
    bare = json.loads(mask_arguments(json.dumps(patch), ID, "apply_patch", SIZES, TOOLS, written=True))
    assert isinstance(bare, str)
    assert ID in bare


def test_short_texts_other_texts_and_calls_that_wrote_nothing_stay() -> None:
    assert weight(edit(old="x", new="y"), SIZES) == NOTHING
    assert weight(replace(edit(), accesses=(FileAccess("read", "/w/a.py"),)), SIZES) == NOTHING
    assert weight(replace(edit(), arguments="{" + LONG * 3), SIZES).without_any == len(LONG) * 3 + 1
    told = json.dumps({"prompt": LONG, "content": "short", "command": LONG})
    assert json.loads(mask_arguments(told, ID, "Task", SIZES, TOOLS, written=True)) == json.loads(told)


@given(JSON, st.sampled_from(["old_string", "content", "edits"]), st.booleans())
def test_masked_arguments_have_the_same_shape_and_all_else_as_it_was(value: object, name: str, whole: bool) -> None:  # noqa: FBT001
    arguments = json.dumps({"x": value, name: [{"new_string": LONG}] if name == "edits" else LONG, "z": value})
    made = mask_arguments(arguments, ID, "Edit", SIZES, TOOLS, written=whole)
    assert same_but_texts(made, arguments)
    assert json.loads(made)["x"] == json.loads(arguments)["x"]
    assert list(json.loads(made)) == list(json.loads(arguments))
    assert mask_arguments(made, ID, "Edit", SIZES, TOOLS, written=whole) == made


def test_a_different_shape_is_told() -> None:
    assert not same_but_texts('{"a": "x", "b": 1}', '{"b": 1, "a": "x"}')
    assert not same_but_texts('{"a": "x"}', '{"a": ["x"]}')
    assert not same_but_texts('{"a": 1}', '{"a": 2}')
    assert same_but_texts('{"a": ["x"]}', '{"a": ["y"]}')


def test_lone_surrogates_survive() -> None:
    arguments = json.dumps({"old_string": LONG, "new_string": "\ud800 broken"})
    assert (
        json.loads(mask_arguments(arguments, ID, "Edit", SIZES, TOOLS, written=False))["new_string"] == "\ud800 broken"
    )


def test_a_call_that_copies_what_stands_for_text_is_an_echo() -> None:
    made = json.loads(mask_arguments(edit().arguments, ID, "Edit", SIZES, TOOLS, written=True))
    ours = OwnTexts(lambda name: str(name) == ID)
    copied = edit(old="x", new=f"first\n{made['new_string']}\n")
    assert {one.object_id for one in echoes(copied, ours)} == {ID}
    write = ToolCall("c", "Write", json.dumps({"file_path": "b", "content": made["old_string"]}))
    assert {one.object_id for one in echoes(write, ours)} == {ID}
    assert echoes(write, OwnTexts(lambda _: False)) == ()


def test_senseless_rules_are_refused() -> None:
    for ages in ({"replaced": 0}, {"alone": 0}):
        with pytest.raises(BadSetting):
            USUAL.with_ages(ages)
    with pytest.raises(BadSetting):
        ArgumentRules(text=100)


# --- when ---


def test_replaced_text_goes_by_its_own_age() -> None:
    standing = EMPTY.with_resident(written(0), RULES).with_resident(written(0, form="replaced"), RULES)
    assert aged(standing, 2) == []
    assert aged(standing, 3) == [("call-0", "replaced")]


def test_the_rest_goes_when_the_file_was_left_alone_and_then_at_once() -> None:
    standing = EMPTY.with_resident(written(0), RULES).with_resident(written(0, form="replaced"), RULES)
    for call in range(1, 10):
        standing = standing.at_call(call, RULES)
    assert [one.form for one in standing.old()] == ["replaced"]
    assert aged(standing, 10) == [("call-0", "texts")]
    assert standing.at_call(10, RULES).old_tokens == 1000


def test_a_touch_of_the_file_makes_its_texts_wait_again() -> None:
    standing = EMPTY.with_resident(written(0), RULES)
    standing = standing.at_call(10, RULES)
    assert [one.form for one in standing.old()] == ["texts"]
    standing = standing.with_access("a.py", 11, RULES, edited=True)
    assert list(standing.old()) == []
    assert standing.old_gain == 0
    assert aged(standing, 20) == []
    assert aged(standing, 21) == [("call-0", "texts")]
    assert aged(standing.with_access("b.py", 12, RULES, edited=True), 21) == [("call-0", "texts")]


def test_text_that_was_written_over_or_shown_whole_since_goes_soon() -> None:
    standing = (
        EMPTY.with_resident(written(0), RULES)
        .with_access("a.py", 4, RULES, edited=True, whole=True)
        .with_resident(written(4), RULES)
    )
    assert aged(standing, 6) == []
    assert aged(standing, 7) == [("call-0", "texts")]
    assert aged(standing, 14) == [("call-0", "texts"), ("call-4", "texts")]


def test_each_of_the_two_times_may_be_switched_off() -> None:
    standing = EMPTY.with_resident(written(0), RULES).with_resident(written(0, form="replaced"), RULES)
    for ages, expected in (
        ({"replaced": None, "alone": 10}, ["texts"]),
        ({"replaced": 3, "alone": None}, ["replaced"]),
        ({"replaced": None, "alone": None}, []),
    ):
        rules = USUAL.with_ages(ages)
        standing = EMPTY.with_resident(written(0), rules).with_resident(written(0, form="replaced"), rules)
        assert [one.form for one in standing.at_call(50, rules).old()] == expected


def test_what_has_left_waits_for_nothing_and_pins_take_both() -> None:
    standing = EMPTY.with_resident(written(0), RULES).with_resident(written(0, form="replaced"), RULES)
    assert len(list(standing.all())) == 1
    gone = standing.without([(0, 0)])
    assert list(gone.all()) == []
    assert aged(gone, 99) == []
    assert [one.form for one in standing.hasten({"call-0"}, 1).old()] == ["texts"]
    assert list(standing.at_call(50, RULES).without_arguments().all()) == []


def test_without_arguments_the_results_stay_as_they_are() -> None:
    result = Resident("call-9", 3, 0, 800, 1)
    standing = EMPTY.with_resident(written(0), RULES).with_resident(result, RULES).at_call(50, RULES)
    alone = standing.without_arguments()
    assert [one.call_id for one in alone.all()] == ["call-9"]
    assert (alone.old_tokens, alone.old_gain) == (800, result.gain)
    assert EMPTY.without_arguments() is EMPTY
    assert list(EMPTY.with_access("a.py", 1, RULES, edited=True, whole=True).all()) == []


@given(st.lists(st.tuples(st.sampled_from(["a", "b"]), st.sampled_from(["edit", "write", "read"])), max_size=25))
def test_whatever_happens_each_call_waits_or_may_go_once_and_sums_agree(steps: list[tuple[str, str]]) -> None:
    standing = EMPTY
    calls = 0
    for call, (path, op) in enumerate(steps):
        standing = standing.with_access(path, call, RULES, edited=op != "read", whole=op == "write")
        if op != "read":
            calls += 1
            standing = standing.with_resident(written(call, path), RULES).with_resident(
                written(call, path, form="replaced"), RULES
            )
        standing = standing.at_call(call + 1, RULES)
        old = list(standing.old())
        assert len({one.call_id for one in old}) == len(old)
        assert standing.old_gain == sum(one.gain for one in old)
        assert standing.old_tokens == sum(one.tokens for one in old)
        assert len(list(standing.all())) == calls
    after = standing.at_call(len(steps) + 20, RULES)
    assert len(list(after.old())) == calls
    assert {one.form for one in after.old()} <= {"texts"}
