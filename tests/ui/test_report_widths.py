"""The report in a real browser: on a phone nothing is cut, and nothing scrolls sideways."""

from collections.abc import Callable
from pathlib import Path

from tests.gateway.browser import browsing, needs_browser
from tests.gateway.pages.test_dashboard import CUT
from tests.gateway.upstreams import run
from tests.ui.conftest import make_doctor

from pagein.model.bill import Bill, Detail
from pagein.ui.report import page


@needs_browser
def test_no_table_is_cut_on_a_phone_also_with_all_columns(
    bills: Callable[[int], Bill], detail: Detail, tmp_path: Path
) -> None:
    bill: Bill = {**bills(3), "doctor": make_doctor(), "skipped": [{"file": "/srv/" + "long" * 30, "reason": "empty"}]}
    file = tmp_path / "report.html"
    file.write_text(page(bill, [detail]))

    async def go() -> None:
        async with browsing(file.as_uri(), tmp_path / "browser") as seen:
            await seen.look(420)
            await seen.until("document.querySelector('#epochs table') !== null")
            await seen.value("document.getElementById('numbers').open = true")
            await seen.until("document.querySelector('#numbers-table td') !== null")
            for all_columns in ("false", "true"):
                await seen.value(
                    f"document.querySelectorAll('.columns input').forEach((one) => one.checked = {all_columns})"
                )
                assert await seen.value("document.documentElement.scrollWidth <= 420")
                assert await seen.value(CUT) == [], f"all columns: {all_columns}"
            named = "document.querySelector('#epochs td').dataset.head"
            assert await seen.value(named) == "what", "a value in a paragraph has the name of its column"
            for width in (500, 681, 820, 940):
                await seen.look(width)
                wide = "(one => one.scrollWidth - one.clientWidth)(document.getElementById('numbers-table'))"
                assert await seen.value(f"{wide} <= 0"), f"the numbers of every call at {width} pixels"
            await seen.look(1280)
            assert await seen.value(CUT) == []
            assert seen.problems == []

    run(go())
