"""The residency table: each row is a queue, a setting, a layer and a line of the docs."""

from dataclasses import replace

import pytest

from pagein.errors import BadSetting
from pagein.model.messages import FileAccess, ToolCall, ToolResult
from pagein.policy.eviction.presets import PRESETS
from pagein.policy.eviction.residency import EMPTY, PRICED, Resident, kinds_of_result, resident_kind
from pagein.policy.eviction.residency_rules import USUAL, Age, Layer, ResidencyRule, ResidencyRules
from pagein.replay.policies.ablation import LAYERS
from pagein.settings.keys import KEYS

WEB = ResidencyRule(
    "web search", "a web search", "web search", Age("keep_searches", 2, says="."), layer=Layer("searches", "x")
)


def call(name: str, *accesses: FileAccess) -> ToolCall:
    return ToolCall("c", name, "{}", accesses)


def test_each_age_for_users_is_a_setting_with_the_default_of_its_row() -> None:
    ages = {name: age.calls for name, age in USUAL.ages.items() if age.says}
    assert ages == {"keep_calls": 5, "keep_calls_free": 3, "keep_reads": 20}
    assert {name: KEYS[name].default for name in ages} == ages


def test_each_layer_of_the_table_can_be_left_out_of_a_replay() -> None:
    layers = {row.layer.name for row in USUAL.rows if row.layer is not None}
    assert layers == {"files", "reading", "odds"}
    assert layers <= set(LAYERS)
    assert all(row.kind != "file read" for row in USUAL.without_layer("files").rows)


def test_names_of_rows_are_unique_and_each_row_has_a_reason() -> None:
    assert len({row.name for row in USUAL.rows}) == len(USUAL.rows)
    assert all(row.why for row in USUAL.rows)


def test_the_kinds_of_a_result_are_listed_from_special_to_general() -> None:
    good, bad = ToolResult("c", "text"), ToolResult("c", "text", is_error=True)
    assert kinds_of_result(call("Read", FileAccess("read", "a.py")), good) == ("file read", "read", "result")
    assert kinds_of_result(call("Bash", FileAccess("read", "")), good) == ("read", "result")
    assert kinds_of_result(call("WebSearch"), good) == ("web search", "result")
    assert kinds_of_result(call("Bash"), good) == ("result",)
    assert kinds_of_result(call("Bash"), bad) == ("failure",)


def test_a_kind_without_a_row_falls_under_the_general_one() -> None:
    asked, result = call("WebSearch"), ToolResult("c", "text " * 400)
    assert resident_kind(asked, result, 900, PRICED) == ("result", "")
    searches = replace(PRICED, rules=ResidencyRules((*USUAL.rows, WEB)))
    assert resident_kind(asked, result, 900, searches) == ("web search", "")
    assert resident_kind(asked, result, 900, replace(PRICED, rules=ResidencyRules(()))) is None
    assert resident_kind(asked, result, 100, PRICED) is None


def test_the_path_counts_where_the_rows_hold_by_file() -> None:
    asked, result = call("Read", FileAccess("read", "a.py")), ToolResult("c", "text " * 400)
    assert resident_kind(asked, result, 900, PRICED) == ("file read", "a.py")
    assert resident_kind(asked, result, 900, replace(PRICED, rules=USUAL.without_layer("files"))) == ("read", "")


def test_a_new_row_is_enough_for_a_new_age() -> None:
    rules = ResidencyRules((*USUAL.rows, WEB))
    found = EMPTY.with_resident(Resident("w", 1, 0, 500, 0, kind="web search"), rules)
    found = found.with_resident(Resident("r", 1, 1, 500, 0), rules)
    assert [one.call_id for one in found.at_call(1, rules).old()] == []
    assert [one.call_id for one in found.at_call(2, rules).old()] == ["w"]
    assert {one.call_id for one in found.at_call(5, rules).old()} == {"w", "r"}


def test_an_age_is_never_below_the_one_that_it_names() -> None:
    assert USUAL.with_ages({"keep_calls": 30}).ages["keep_reads"].calls == 30
    assert PRICED.reads_wait == 20
    assert PRESETS["thrifty"].residency.reads_wait == 10


def test_no_lower_age_is_above_the_usual_one() -> None:
    (row,) = USUAL.with_ages({"keep_calls": 2}).of("result")
    assert (row.wait, row.cheap_wait) == (2, 2)
    (row,) = USUAL.with_ages({"keep_calls_free": 0}).of("result")
    assert (row.wait, row.cheap_wait) == (5, 5)


def test_rows_that_no_queue_could_hold_are_refused() -> None:
    with pytest.raises(BadSetting, match="does not begin"):
        ResidencyRule("x", "x", "result", Age("x", 1), clock="touched")
    with pytest.raises(BadSetting, match="no lower age"):
        ResidencyRule("x", "x", "file read", Age("x", 1), Age("y", 1), clock="touched")
    with pytest.raises(BadSetting, match="nothing tells"):
        ResidencyRule("x", "x", "result", Age("x", 1), only="edited")
    with pytest.raises(BadSetting, match="are for the same result"):
        ResidencyRules((*USUAL.rows, ResidencyRule("x", "x", "result", Age("x", 1))))
    with pytest.raises(BadSetting, match="no residency rule has an age 'keep_call'"):
        USUAL.with_ages({"keep_call": 1})
