"""What a model is shown of a report: whole answers only, in order, and the ids of the rest."""

from hypothesis import given
from hypothesis import strategies as st

from pagein.model.read_caps import DEFAULT_CAPS, ReadCaps
from pagein.policy.delegation.answer_texts import report_text
from pagein.policy.delegation.child_costs import CallCost
from pagein.policy.delegation.reports import ChildResult, Report


def result(number: int, answer: str) -> ChildResult:
    return ChildResult((f"pg-{number:08}",), "success", answer, "high", object_id=f"answer-{number}")


def test_an_answer_that_does_not_fit_is_named_and_so_are_those_behind_it() -> None:
    results = (result(1, "short"), result(2, "x" * 60_000), result(3, "also short"))
    text = report_text(Report("batch-1", "batch", results, actual=CallCost(3, None, 9, 9, 18)), DEFAULT_CAPS)
    assert "short\n[Stored as answer-1]" in text
    assert "xxx" not in text
    assert "also short" not in text
    assert "2 results are not shown. Peek at the answers: pg-00000002: answer-2; pg-00000003: answer-3]" in text
    assert "cost unknown for 18 tokens" in text


def test_failures_and_partial_results_are_told() -> None:
    results = (result(1, "fine"), ChildResult(("b",), "timeout", why="no answer within 120 s"))
    text = report_text(Report("batch-1", "batch", results, partial="1 of 2 answered"), DEFAULT_CAPS)
    assert text.startswith("[Partial: 1 of 2 answered.]")
    assert "### b\nThis child timed out: no answer within 120 s" in text


@given(st.lists(st.text("ab\n", max_size=400), max_size=30), st.integers(4_200, 20_000), st.integers(20, 300))
def test_no_report_is_larger_than_its_caps_and_each_answer_is_shown_whole_or_named(
    answers: list[str], most_bytes: int, most_lines: int
) -> None:
    results = tuple(result(number, f"<{answer}>") for number, answer in enumerate(answers))
    text = report_text(Report("batch-1", "batch", results), ReadCaps(most_lines, most_bytes))
    assert len(text.encode()) <= most_bytes + 2_048
    assert text.count("\n") <= most_lines + 8
    shown = [one.object_id for one in results if f"\n{one.answer}\n[Stored as {one.object_id}]" in text]
    assert shown == [one.object_id for one in results][: len(shown)]
    assert len(shown) == len(results) or f"{len(results) - len(shown)} results are not shown" in text
