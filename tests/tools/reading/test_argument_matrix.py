"""The argument matrix: what each mode takes, and what a wrong call is told."""

import pytest

from pagein.model.guard_notes import READ_MODES, ReadMode
from pagein.tools.reading.argument_matrix import (
    MATRIX,
    Argument,
    InvalidArguments,
    ReadArguments,
    json_schema,
    parse_arguments,
)

FOREIGN = [(row, mode) for row in MATRIX for mode in READ_MODES if mode not in row.modes]
WHOLE = [row for row in MATRIX if row.kind == "whole"]


def problems(**given: object) -> tuple[str, ...]:
    parsed = parse_arguments(given)
    assert isinstance(parsed, InvalidArguments), parsed
    return parsed.problems


def call_of(row: Argument, mode: ReadMode, value: object) -> dict[str, object]:
    """A call that is right but for this value."""
    call: dict[str, object] = {"mode": mode, "target": "a", row.name: value}
    if mode == "snippet" and row.name not in {"start_line", "end_line"}:
        call["pattern"] = "x"
    if row.name == "end_line":
        call["start_line"] = 1
    return call | {row.name: value}


@pytest.mark.parametrize(("row", "mode"), FOREIGN, ids=lambda one: one if isinstance(one, str) else one.name)
def test_an_argument_of_another_mode_is_refused_in_the_words_of_the_design(row: Argument, mode: ReadMode) -> None:
    value = {"text": "x", "whole": 5, "flag": True, "choice": row.among[0] if row.among else ""}[row.kind]
    where = " or ".join(f"mode='{one}'" for one in row.modes)
    expected = f"{row.name} is only valid for {where}. Remove it or switch mode."
    assert expected in problems(mode=mode, target="a", **{row.name: value})


def test_the_words_for_the_examples_of_the_design() -> None:
    assert problems(mode="file", target="a", against="HEAD") == (
        "against is only valid for mode='diff_preview'. Remove it or switch mode.",
    )
    assert "start_line is only valid for mode='snippet'. Remove it or switch mode." in problems(
        mode="file", target="a", start_line=3
    )
    assert problems(mode="file", target="a", path="b") == (
        "path is only valid for mode='symbol'. Remove it or switch mode.",
    )
    assert problems(mode="diff_preview", target="a", against="MAIN") == (
        "'against' must be one of: HEAD, WORKTREE, INDEX, commit:<sha>, snapshot:<id>@<version>",
    )
    assert problems(mode="ast_edit", target="a") == ("'mode' must be one of: file, symbol, snippet, diff_preview",)
    assert problems(target="a") == ("'mode' must be one of: file, symbol, snippet, diff_preview",)


@pytest.mark.parametrize("row", WHOLE, ids=lambda row: row.name)
@pytest.mark.parametrize("value", [-1, 10**30, 1.5, float("nan"), float("inf"), "5", True, [1]])
def test_absurd_numbers_are_refused_with_the_bounds(row: Argument, value: object) -> None:
    mode = row.modes[-1]
    assert f"'{row.name}' must be a whole number from {row.low} to 1000000000" in problems(**call_of(row, mode, value))


@pytest.mark.parametrize("row", WHOLE, ids=lambda row: row.name)
def test_a_number_at_each_bound_is_taken_also_as_json_writes_it(row: Argument) -> None:
    for value in (row.low, row.high, float(row.low)):
        parsed = parse_arguments(
            call_of(row, row.modes[-1], value) | ({"end_line": 10**9} if row.name == "start_line" else {})
        )
        if row.name == "end_line" and value < 1:
            continue
        assert isinstance(parsed, ReadArguments)
        assert getattr(parsed, row.name) == int(value)


def test_everything_that_is_wrong_is_told_at_once() -> None:
    found = problems(mode="file", target="", limit=0, against="HEAD", colour="red")
    assert len(found) == 4
    assert any(one.startswith("colour is no argument of read; the arguments are: mode, target, ") for one in found)


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({}, "mode='snippet' needs 'start_line' or 'pattern'"),
        ({"end_line": 3}, "end_line needs 'start_line'"),
        ({"start_line": 5, "end_line": 3}, "'end_line' must be start_line or a later line"),
        ({"start_line": 5, "pattern": "x"}, "start_line and pattern exclude each other"),
        ({"start_line": 5, "limit": 2}, "limit needs 'pattern'"),
    ],
)
def test_a_snippet_says_which_lines_or_which_pattern(given: dict[str, object], said: str) -> None:
    assert any(one.startswith(said) for one in problems(mode="snippet", target="a.py", **given))


def test_none_counts_as_left_out() -> None:
    parsed = parse_arguments({"mode": "file", "target": "a", "against": None, "limit": None})
    assert parsed == ReadArguments("file", "a")


def test_the_schema_has_every_argument_and_names_the_modes() -> None:
    schema = json_schema()
    assert list(schema["properties"]) == [row.name for row in MATRIX]
    assert schema["required"] == ["mode", "target"]
    assert schema["properties"]["mode"]["enum"] == list(READ_MODES)
    assert schema["properties"]["start_line"]["description"].startswith("Only with mode snippet. ")
    assert "enum" not in schema["properties"]["against"], "a commit is a word of the choice, too"
