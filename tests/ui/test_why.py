import io

import pytest
from rich.console import Console
from tests.ui.conftest import make_why

from pagein.model.bill import Why
from pagein.ui.why import DECISIONS_SHOWN, SESSIONS_SHOWN, by_reason, show_why


def printed(*whys: Why, width: int = 140) -> str:
    out = io.StringIO()
    show_why(Console(file=out, width=width, highlight=False, markup=False, emoji=False), whys)
    return out.getvalue()


def _nothing() -> Why:
    return {**make_why("idle-one"), "decisions": [], "saved": 0.0, "idle": "nothing was old enough"}


def test_each_decision_is_a_row_and_what_nobody_reckoned_a_dash() -> None:
    text = " ".join(printed(make_why()).split())
    assert "alpha/session-0, 160 calls, 39.0k BIT saved" in text
    assert "59 19 min 21 results 43.0k cold cache 9.00k 20.0k 12.0k" in text
    assert "98 32 min 21 previews 43.0k big output 9.00k - 12.0k" in text
    assert "In the end carrying 9,000 tokens had cost 900 BIT" in text


def test_reads_that_left_because_an_edit_will_hardly_quote_them_are_counted_by_their_reasons() -> None:
    why = make_why()
    why["decisions"][0]["unlikely"] = ["12 calls without an edit", "it shows a document", "12 calls without an edit"]
    lines = [line.strip() for line in printed(why, width=240).splitlines() if "hardly" in line]
    assert lines == [
        "2 reads that an edit will hardly quote: 12 calls without an edit",
        "1 read that an edit will hardly quote: it shows a document",
    ]


def test_several_sessions_are_summed_up_by_reason_first() -> None:
    text = printed(make_why(), make_why("other"))
    assert text.strip().startswith("Why: 6 decisions in 2 sessions")
    first = next(line for line in text.splitlines() if line.startswith("cold cache"))
    assert first.split() == ["cold", "cache", "2", "42", "86.0k", "18.0k", "40.0k"]


def test_where_nothing_left_the_reason_stands_beside_the_session() -> None:
    text = printed(_nothing())
    assert "Why nothing left: 1 session" in text
    assert "alpha/idle-one" in text
    assert "nothing was old enough" in text


def test_what_does_not_fit_is_counted() -> None:
    many = make_why()
    many["decisions"] = many["decisions"] * DECISIONS_SHOWN
    text = " ".join(printed(*[many] * (SESSIONS_SHOWN + 2), *[_nothing()] * (SESSIONS_SHOWN + 1)).split())
    assert f"and {2 * DECISIONS_SHOWN} more; --json lists all" in text
    assert "and 2 sessions more; --json lists all" in text
    assert "and 1 session more; --json lists all" in text


def test_reasons_are_summed_and_the_best_comes_first() -> None:
    sums = by_reason(make_why()["decisions"])
    assert [(one.reason, one.realised) for one in sums] == [
        ("cold cache", 20_000.0),
        ("big output", None),
        ("rent paid", -1_000.0),
    ]


def test_the_name_of_a_session_cannot_steer_the_terminal() -> None:
    assert "\x1b" not in printed({**make_why(), "id": "\x1b[31mred"}, {**_nothing(), "id": "\x1b]0;x\x07"})


@pytest.mark.parametrize("width", [50, 200])
def test_it_fits_any_terminal(width: int) -> None:
    assert max(map(len, printed(make_why(), _nothing(), width=width).splitlines())) <= width
