import io
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console

from pagein.model.bill import Bill
from pagein.ui.columns import COST, DEEDS, POLICY_MEANINGS, BillColumn
from pagein.ui.row_tables import RowColumn, TableRow, fit_columns, print_rows
from pagein.ui.tables import SKIPPED_SHOWN, TableOptions, show


def printed(bill: Bill, width: int = 140, shown: TableOptions | None = None) -> str:
    out = io.StringIO()
    show(Console(file=out, width=width, highlight=False, markup=False, emoji=False), bill, shown or TableOptions())
    return out.getvalue()


@pytest.mark.parametrize("width", [24, 36, 50, 80])
def test_the_first_column_and_some_words_stand_on_any_terminal(width: int) -> None:
    out = io.StringIO()
    columns = (RowColumn("v", justify="right"), RowColumn("when"), RowColumn("op"), RowColumn("session"))
    row = TableRow(("12", "2026-11-21 10:00", "write", "claude-code 0123abcd"), "please mend the tests")
    print_rows(Console(file=out, width=width), columns, "the user said", [row])
    head, told = out.getvalue().splitlines()
    assert head.startswith(" v  ")
    assert told.startswith("12  ")
    assert "please men" in told
    assert max(map(len, (head, told))) <= width


def line(text: str, start: str) -> list[str]:
    return next(row for row in text.splitlines() if row.startswith(start + " ")).split()


def test_the_verdict_comes_first(bill: Bill) -> None:
    assert printed(bill).startswith("This session cost $10.26 at list prices")


def test_quiet_prints_the_verdict_alone(bill: Bill) -> None:
    assert "dollars" not in printed(bill, shown=TableOptions(quiet=True))


def test_a_policy_is_a_row_of_what_it_cost(bill: Bill) -> None:
    row = line(printed(bill), "pagein")
    assert row == [
        "pagein",
        "pagein,",
        "keep-alive",
        "on",
        "$8.96",
        "-12.7",
        "%",
        "17.9M",
        "597.1k",
        "160",
        "59.7k",
        "18.5M",
        "+34.3",
        "%",
    ]


def test_what_a_policy_did_has_its_faults_quotes_and_lost_bytes(bill: Bill) -> None:
    deeds = printed(bill).split("What was done")[1]
    assert line(deeds, "pagein") == [
        "pagein",
        "64",
        "3",
        "1.88",
        "4",
        "$0.0630",
        "2",
        "117",
        "/",
        "1",
        "/",
        "120",
        "0",
        "0",
    ]
    assert "append " not in deeds.split("The simulator")[0]


@pytest.mark.parametrize("width", [200, 120, 100, 80, 72])
def test_no_line_is_wider_than_the_terminal(bills: Callable[[int], Bill], width: int) -> None:
    assert max(map(len, printed(bills(3), width).splitlines())) <= width


def test_a_narrow_terminal_drops_columns_whole_and_says_which(bill: Bill) -> None:
    text = printed(bill, 60)
    assert "not shown, for want of width: that is, read, written, uncached, output, prompt" in " ".join(text.split())
    assert line(text, "pagein") == ["pagein", "$8.96", "-12.7", "%", "+34.3", "%"]


@given(st.integers(0, 200))
def test_columns_leave_by_rank_and_the_first_never(width: int) -> None:
    kept = fit_columns(COST, {column.title: 9 for column in COST}, width)
    assert kept == [column for column in COST if column in kept]
    assert {column for column in COST if column.rank == 0} <= set(kept)
    gone = [column.rank for column in COST if column not in kept]
    assert not gone or min(gone) >= max((column.rank for column in kept), default=0)


def test_several_sources_have_a_table_each_and_a_mean(bills: Callable[[int], Bill]) -> None:
    text = printed(bills(2))
    assert "Cost: alpha" in text
    assert "Cost: beta" in text
    assert "macro" in text


def test_one_source_has_no_table_of_its_own(bill: Bill) -> None:
    assert "Cost: " not in printed(bill)


def test_few_sessions_get_a_row_each_and_many_only_on_request(bills: Callable[[int], Bill]) -> None:
    few = bills(3)
    few["per_session"][2]["began"] = 1.8e9
    row = next(row for row in printed(few).splitlines() if row.startswith("Mend the parser, part 2 (sub-agent)"))
    assert "project-2" in row
    assert "2027-01-1" in row
    assert "part 29" not in printed(bills(30))
    assert "part 29" in printed(bills(30), shown=TableOptions(sessions=True))
    assert "part 2" not in printed(bills(3), shown=TableOptions(sessions=False))


def test_prices_of_each_sessions_own_model_are_told_with_what_is_unknown(bills: Callable[[int], Bill]) -> None:
    bill = bills(6)
    bill["prices"] = "own"
    for number, one in enumerate(bill["per_session"]):
        one["prices"] = f"model-{number % 5}"
    bill["per_session"][0]["flags"] = {"unknown_model": "mystery"}
    said = " ".join(printed(bill).split())
    assert "each session by its own model: model-0 (2 sessions), model-1 (1 session)" in said
    assert "and 1 more; 1 session of a model without known prices among them." in said


def test_skipped_files_are_named_with_their_reason_up_to_a_number(bill: Bill) -> None:
    bill["skipped"] = [
        {"file": f"bad-{number}.jsonl", "reason": "line 3: not JSON"} for number in range(SKIPPED_SHOWN + 5)
    ]
    text = printed(bill)
    assert "Skipped: 25 files" in text
    assert "bad-0.jsonl" in text
    assert f"bad-{SKIPPED_SHOWN}.jsonl" not in text
    assert "and 5 more; --json lists all" in text


def test_hostile_names_neither_style_nor_steer_the_terminal(bill: Bill) -> None:
    bill["skipped"] = [{"file": "a\x1b[2J[red]b", "reason": "c\x07"}]
    text = printed(bill)
    assert "a?[2J[red]b" in text
    assert "\x1b" not in text
    assert "\x07" not in text


def test_a_name_of_any_length_pushes_nothing_aside(bill: Bill) -> None:
    bill["groups"]["s" * 5000] = bill["groups"]["beta"]
    bill["prediction"] = {"s" * 5000: bill["prediction"]["beta"]}
    text = printed(bill)
    assert "s" * 81 not in text
    assert "+0.4 %" in text.split("The simulator")[1]


def test_the_error_of_the_simulator_is_shown(bill: Bill) -> None:
    assert line(printed(bill), "beta") == ["beta", "1,603", "+0.4", "%", "+4.7", "%", "+1.2", "%", "-10.0", "%"]


def test_an_empty_bill_prints_without_a_crash(bill: Bill) -> None:
    empty: Bill = {**bill, "sessions": 0, "policies": {}, "groups": {}, "prediction": {}, "per_session": []}
    assert "These 0 sessions were replayed." in printed(empty)


@pytest.mark.parametrize("column", [*COST, *DEEDS], ids=lambda column: column.title)
def test_every_column_says_what_it_means(column: BillColumn) -> None:
    assert column.meaning.endswith(".")


def test_every_policy_is_explained(bill: Bill) -> None:
    assert set(bill["policies"]) <= set(POLICY_MEANINGS)


def test_a_column_that_applies_to_no_row_is_left_out(bill: Bill) -> None:
    assert " dollars " in printed(bill)
    for figures in bill["policies"].values():
        figures["usd"] = None
    assert " dollars " not in printed(bill)
    assert "2.99M" in printed(bill)


def test_the_mean_of_a_single_source_is_no_column(bill: Bill) -> None:
    bill["macro"] = {name: {"ratio": 1.0} for name in bill["policies"]}
    assert "macro" not in printed(bill)


def test_policies_that_changed_nothing_have_no_row_of_deeds_but_pagein_always_has(bill: Bill) -> None:
    for name in ("append", "pagein"):
        bill["policies"][name] |= {"stubs": 0, "epochs": 0, "faults": 0}
    deeds = printed(bill).split("What was done")[1].split("left: ")[0]
    assert [row.split()[0] for row in deeds.splitlines()[2:] if row.strip()] == ["rolling", "clear", "pagein"]


def test_a_window_that_was_too_small_to_be_used_is_told(bills: Callable[[int], Bill]) -> None:
    bill = bills(3)
    assert "beyond the window" not in printed(bill)
    bill["per_session"][1]["flags"] = {"beyond_window": 260_817}
    assert "1 session had prompts of up to 260.8k tokens, beyond the window of these prices" in printed(bill, 200)
