import io

import pytest
from rich.console import Console
from tests.ui.conftest import make_bill, make_doctor

from pagein.model.bill import Doctor
from pagein.replay.results.recorded_usage import sum_of
from pagein.ui.doctor import SHOWN, show_doctor
from pagein.ui.report import page


def printed(found: Doctor, width: int = 160) -> str:
    out = io.StringIO()
    show_doctor(Console(file=out, width=width, highlight=False, markup=False, emoji=False), found)
    return out.getvalue()


def test_each_cause_is_a_row_with_what_it_cost_and_its_share_of_the_bill() -> None:
    text = " ".join(printed(make_doctor()).split())
    assert "30 calls of 114 read less than was there to be read" in text
    assert "alpha unexplained: the provider no longer had what it was given 6 158.4k 142.5k 11.4 %" in text
    assert "expired: it had expired 2 158.4k 12.0k 1.0 %" in text


def test_the_dearest_misses_are_named_and_the_rest_counted() -> None:
    text = printed(make_doctor())
    assert text.count("alpha/session-0") == SHOWN
    assert "and 18 more; --json lists all" in text
    assert "42  " in text


def test_where_all_was_read_or_nothing_is_known_that_is_said() -> None:
    found = make_doctor()
    well: Doctor = {"sources": {"a": {"calls": 9, "bill": 1.0, "ailments": []}}, "misses": [], "usage": sum_of([])}
    assert "all 9 calls read everything that the cache held" in printed(well)
    assert "no recorded call reports" in printed({**found, "sources": {"a": {"calls": 0, "bill": 0.0, "ailments": []}}})


def test_the_name_of_a_session_cannot_steer_the_terminal() -> None:
    found = make_doctor()
    assert "\x1b" not in printed({**found, "misses": [{**found["misses"][0], "id": "\x1b[31mred"}]})


@pytest.mark.parametrize("width", [60, 200])
def test_it_fits_any_terminal(width: int) -> None:
    assert max(map(len, printed(make_doctor(), width).splitlines())) <= width


def test_the_page_has_a_table_of_it_with_every_word_escaped() -> None:
    found = make_doctor()
    found["sources"]["<b>bold"] = found["sources"].pop("beta")
    bill = make_bill()
    bill["doctor"] = found
    made = page(bill, [])
    assert "Cache doctor" in made
    assert "11.4 %" in made
    assert "<b>bold" not in made
    assert "Cache doctor" not in page(make_bill(), [])
