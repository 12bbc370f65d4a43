import io
from pathlib import Path

import pytest
from rich.console import Console

from pagein.errors import BadInput
from pagein.ui.choice import ReplayableSession, age, parse_choice, show_candidates


@pytest.mark.parametrize(
    ("answer", "picked"),
    [
        ("1", [0]),
        ("1,3-5", [0, 2, 3, 4]),
        ("2 2 1", [1, 0]),
        ("all", [0, 1, 2, 3, 4]),
        (" ALL ", [0, 1, 2, 3, 4]),
        ("5-5", [4]),
    ],
)
def test_an_answer_picks_sessions_in_its_order(answer: str, picked: list[int]) -> None:
    assert parse_choice(answer, 5) == picked


@pytest.mark.parametrize("answer", ["", " , ", "0", "6", "3-2", "1-", "-1", "x", "1.5", "1--2", "²"])
def test_an_answer_off_the_list_is_refused_with_what_it_takes(answer: str) -> None:
    with pytest.raises(BadInput, match=r"1 (to|and) 5|1 to 5"):
        parse_choice(answer, 5)


def test_the_newest_are_listed_and_the_rest_counted() -> None:
    out = io.StringIO()
    found = [
        ReplayableSession("codex", Path(f"s{number}.jsonl"), number * 3600.0, 4_000_000, "") for number in range(30)
    ]
    found[0] = ReplayableSession("codex", Path("a.jsonl"), 1.0, 9, "mend the tax" * 30, "/home/ada/shop")
    show_candidates(Console(file=out, width=100), found, 20)
    text = out.getvalue()
    assert "1 1 s 9B codex shop mend the tax" in " ".join(text.split())
    assert "s19.jsonl" in text
    assert "s20.jsonl" not in text
    assert "and 10 older ones" in text
    assert "4.00MB" in text


def test_an_age_has_one_unit() -> None:
    assert [age(seconds) for seconds in (-1, 40, 720, 18_000, 260_000)] == ["0 s", "40 s", "12 min", "5 h", "3 d"]
