"""The page's window, orders and past sessions, in a real browser on a real gateway; and `pagein top` on the same."""

import asyncio
import json
import os
import re
import select
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote

import aiohttp
import pytest
from tests.gateway.browser import Page, browsing, needs_browser
from tests.gateway.processes import data_folder, gateway_process, noted, token_in
from tests.gateway.test_serve import cli, conversation, sent
from tests.gateway.upstreams import run

from pagein import wiring
from pagein.cli.stored_costs import tell_week
from pagein.gateway.http.addresses import with_token
from pagein.gateway.http.headers import PROOF
from pagein.gateway.setup.inquiry import GatewayInquiry, NoAnswer
from pagein.simulator import SimulatedProvider
from pagein.tools import pin_commands

_CACHE = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "pagein" / "axe"
AXE = sorted(Path(os.environ.get("PAGEIN_AXE") or _CACHE).glob("axe-*.min.js"))
HOSTILE = "<img src=x onerror=alert(1)> \"'&"
HEARD = "document.querySelector('.orders [role=status]').textContent"
PART = "[...document.querySelectorAll('button.part')].find((one) => one.textContent.includes('Bash step 3')).click()"


def body(turns: int) -> dict[str, object]:
    """A conversation whose results hold markup. Two of them show a file."""
    text = json.dumps(conversation(turns, lines=160) | {"cache_control": {"type": "ephemeral"}})
    for number in (1, 4):
        text = text.replace(f"make step-{number}", "cat src/app.py")
    return dict(json.loads(text.replace(" of its output", " <script>alert(2)</script>")))


@pytest.fixture(scope="module")
def worked(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, str, Path]]:
    """A gateway with one session of eight calls: its address, its token, its folder."""
    folder = tmp_path_factory.mktemp("inspected")
    with SimulatedProvider() as provider, gateway_process(provider.url, folder) as (url, _):
        for turns in range(8):
            run(sent(url, body(turns), x_pagein_session=HOSTILE))
        noted(folder, 8)
        yield url, token_in(folder), folder


async def ordered(page: Page, words: str) -> None:
    """Wait until the page tells of an order."""
    await page.until(f"{HEARD}.includes({json.dumps(words)})")


async def first_title(page: Page) -> str:
    await page.until("document.querySelector('#overview tbody a') !== null")
    return str(await page.value("document.querySelector('#overview tbody a').textContent"))


@needs_browser
def test_a_person_sees_a_part_of_the_window_and_steers_by_click_and_key_while_calls_come(
    worked: tuple[str, str, Path], tmp_path: Path
) -> None:
    url, token, folder = worked

    async def go() -> None:
        async with browsing(with_token(url, token) + "/", tmp_path) as page:
            await page.look(420)
            assert (await first_title(page)).startswith("fix the build"), "the first list that is drawn has titles"
            await page.until("document.querySelector('.parts table') !== null")
            await page.value(PART)
            await page.until("document.querySelector('.part-card pre') !== null")
            shown = str(await page.value("document.querySelector('.part-card pre').textContent"))
            assert shown.splitlines()[1] == "step 3 says line 1 <script>alert(2)</script>"
            assert "It may leave" in await page.text()
            await page.value("document.querySelector('[data-order=pin]').click()")
            await ordered(page, "stays in the window")
            await page.until("document.querySelector('.parts tr.open').textContent.includes('pinned')")
            await page.press("z", "z")
            await ordered(page, "Taken back: pin")
            await page.until("!document.querySelector('.parts tr.open').textContent.includes('pinned')")
            await page.press("o", "o")
            await ordered(page, "decides nothing")
            await page.until("document.querySelector('[data-order=on]') !== null")
            await page.press("z", "z")
            await ordered(page, "Taken back")
            await page.press("d", "d")
            await ordered(page, "leaves the window with the next epoch")
            await page.press("e", "e")
            await ordered(page, "opens an epoch")
            await sent(url, body(8), x_pagein_session=HOSTILE)  # the page hears of it by itself
            await page.until("document.querySelector('.parts tr.open').textContent.includes('stub')")
            await page.until("document.querySelectorAll('.part-card pre').length === 2")
            assert "left with epoch 1" in await page.text()
            whole = str(await page.value("document.querySelectorAll('.part-card pre')[1].textContent"))
            assert whole == body(8)["messages"][8]["content"][0]["content"]  # type: ignore[index]
            await page.press("r", "r")
            await ordered(page, "comes back into the window")
            assert await page.value("document.documentElement.scrollWidth <= 420")
            assert await page.value("document.querySelectorAll('main img, main script').length") == 0
            assert page.problems == []

    run(go())
    seen = json.loads(cli("window", HOSTILE, "--json", "--store", str(folder / "s.pagein"), folder=folder).stdout)
    assert next(one for one in seen["results"] if one["call_id"] == "toolu_0003")["marks"] == ["restoring"]


@needs_browser
@pytest.mark.skipif(not AXE, reason="axe-core is not there (scripts/install_axe.sh fetches it)")
def test_an_audit_finds_nothing_on_the_page_that_keeps_people_out(
    worked: tuple[str, str, Path], tmp_path: Path
) -> None:
    url, token, _ = worked
    run_audit = "axe.run().then((one) => [one.passes.length, ...one.violations.map((bad) => bad.id + ': ' + bad.nodes[0].html)])"

    async def go() -> None:
        async with browsing(with_token(url, token) + "/", tmp_path) as page:
            await page.until("document.querySelector('#totals tbody tr') !== null")
            await page.until("document.querySelector('.parts table') !== null")
            await page.value("[...document.querySelectorAll('button.part')].pop().click()")
            await page.until("document.querySelector('.part-card pre') !== null")
            await page.value(f"{AXE[-1].read_text(encoding='utf-8')};0")
            for dark in (False, True):
                await page.look(1280, dark=dark)
                audit = await page.value(run_audit)
                assert isinstance(audit, list)
                assert audit[0] > 20
                assert audit[1:] == []

    run(go())


@needs_browser
def test_after_a_restart_the_page_still_has_the_session_with_its_calls_and_what_the_days_cost(tmp_path: Path) -> None:
    async def go(url: str) -> None:
        async with browsing(url, tmp_path / "browser") as page:
            await page.until("document.querySelector('#totals tbody tr') !== null")
            await page.value("document.querySelector('#stored a').click()")
            await page.until("document.querySelector('#inside h3') !== null")
            await page.until("document.activeElement.closest('#inside h2') !== null")
            place = await page.value("[document.activeElement.getBoundingClientRect().top, innerHeight]")
            assert isinstance(place, list)
            assert -2 < place[0] < place[1], "the chosen session is in sight, and has the focus"
            text = await page.text()
            assert "from before this gateway's start" in text
            assert "last seven days, 3 calls" in str(await page.value("document.querySelector('#days').textContent"))
            misses = "document.querySelector('#inside [aria-label=\"Where the cache fell short\"] tbody').textContent"
            assert "the client" in str(await page.value(misses))
            assert "the instructions" in str(await page.value(misses))
            assert (
                await page.value("document.querySelectorAll('#inside [aria-label=\"Time line\"] tbody tr').length") == 3
            )
            await page.value("document.querySelector('[data-by=model]').click()")
            await page.until("document.querySelector('#totals tbody').textContent.includes('claude-sonnet-4-5')")
            for words, rows in (("fix BUILD claude", 1), ("fix nothing", 0)):
                await page.value(
                    f"byId('filter').value = {words!r}; byId('filter').dispatchEvent(new Event('input', {{ bubbles: true }}))"
                )
                await page.until(f"document.querySelectorAll('#stored tbody tr').length === {rows}")
            assert page.problems == []

    with SimulatedProvider() as provider:
        with gateway_process(provider.url, tmp_path) as (url, process):
            for turns in range(3):
                told = {"system": f"Be brief. {'Be kind.' * (turns == 2)}", "cache_control": {"type": "ephemeral"}}
                run(sent(url, conversation(turns) | told, x_pagein_session="of last week"))
            noted(tmp_path, 3)
            process.terminate()
            process.wait(60)
        with gateway_process(provider.url, tmp_path) as (url, _):
            run(go(with_token(url, token_in(tmp_path))))
            found = GatewayInquiry(url, "127.0.0.1", tmp_path / "data" / "pagein" / "gateway.token")
            assert found.overview()["sessions"] == []


@pytest.mark.parametrize(
    ("headers", "payload", "status"),
    [
        ({}, "{}", 401),
        ({"Origin": "http://127.0.0.1:1", "Cookie": "pagein=x"}, "{}", 403),
        ({"Sec-Fetch-Site": "same-site"}, "{}", 403),
        ({"shown": "yes", "Content-Type": "text/plain"}, "{}", 415),
        ({"shown": "yes"}, "[1]", 400),
        ({"shown": "yes"}, '{"session": "never seen", "act": "epoch"}', 400),
        ({"shown": "yes"}, json.dumps({"session": HOSTILE, "act": "forget"}), 400),
        ({"shown": "yes"}, json.dumps({"session": HOSTILE, "act": "drop", "target": "toolu_none"}), 400),
    ],
)
def test_an_order_wants_the_token_the_own_site_and_something_that_can_be_done(
    worked: tuple[str, str, Path], headers: dict[str, str], payload: str, status: int
) -> None:
    url, token, _ = worked
    given = {"Content-Type": "application/json"} | {name: value for name, value in headers.items() if name != "shown"}
    given |= {PROOF: token} if "shown" in headers else {}

    async def go() -> tuple[int, Any]:
        async with (
            aiohttp.ClientSession() as client,
            client.post(f"{url}/api/order", data=payload, headers=given) as got,
        ):
            return got.status, await got.json()

    found, told = run(go())
    assert found == status
    assert told["error"]


def test_the_terminal_shows_the_window_and_takes_the_same_orders(worked: tuple[str, str, Path]) -> None:
    pytest.importorskip("textual")
    from textual.coordinate import Coordinate
    from textual.widgets import DataTable, Static

    from pagein.ui.top import Top

    url, _, folder = worked
    source = GatewayInquiry(url, "127.0.0.1", folder / "data" / "pagein" / "gateway.token")

    async def go() -> None:
        app = Top(source, (NoAnswer,))
        async with app.run_test(size=(120, 40)) as pilot:

            async def until(words: str, part: str) -> None:
                for _ in range(300):
                    await pilot.pause(0.05)
                    if words in str(app.query_one(part, Static).render()):
                        return
                raise AssertionError(f"{part} says {app.query_one(part, Static).render()}")

            await until(HOSTILE, "#about")
            results = app.query_one("#results", DataTable)
            assert results.row_count >= 7
            first = app.query_one("#sessions", DataTable)
            assert str(first.get_cell_at(Coordinate(0, 0))).startswith("fix the build"), (
                "live sessions are listed by their first words"
            )
            results.focus()
            await pilot.press("p")
            await until("stays in the window", "#told")
            await pilot.press("z")
            await until("Taken back", "#told")
            await pilot.press("s")
            await until("Calls of ", "#about")
            sessions, calls = (app.query_one(name, DataTable) for name in ("#sessions", "#results"))
            assert "project" in [str(column.label) for column in sessions.columns.values()]
            assert sessions.row_count >= 1
            assert calls.row_count >= 1
            await pilot.press("p")
            await until("s goes back", "#told")
            await pilot.press("s")
            await until(HOSTILE, "#about")
            assert "stands as" in [str(column.label) for column in results.columns.values()]
            await pilot.press("ctrl+c")
            await pilot.pause(0.1)
            assert app.return_code == 0, "Ctrl-C ends it"

    asyncio.run(go())
    marks = [one["marks"] for one in source.session(HOSTILE)["inside"]["objects"]]
    assert ["pinned"] not in marks


@needs_browser
def test_an_order_about_a_file_holds_for_every_result_that_shows_it_until_it_is_taken_back(
    worked: tuple[str, str, Path], tmp_path: Path
) -> None:
    url, token, folder = worked
    source = GatewayInquiry(url, "127.0.0.1", folder / "data" / "pagein" / "gateway.token")

    async def pinned() -> int:
        found = await asyncio.to_thread(source.session, HOSTILE)
        return sum("pinned" in one["marks"] for one in found["inside"]["objects"])

    async def go() -> None:
        async with browsing(f"{with_token(url, token)}/#{quote(HOSTILE)}", tmp_path) as page:
            await page.until("document.querySelector('#file') !== null")
            await page.value("document.querySelector('[data-file-order=pin]').click()")
            await ordered(page, "Write the name of a file first")
            await page.value("document.querySelector('#file').focus()")
            await page.tell("Input.insertText", text="app.py")
            await page.value("document.querySelector('[data-file-order=pin]').click()")
            await ordered(page, "2 results show it")
            assert await page.value("document.querySelector('#file').value") == "app.py", "what is typed stays"
            assert await pinned() == 2
            await page.value("document.querySelector('[data-order=undo]').click()")
            await ordered(page, "Taken back")
            assert await pinned() == 0

    run(go())


def test_the_terminal_takes_orders_about_a_file(worked: tuple[str, str, Path]) -> None:
    pytest.importorskip("textual")
    from textual.widgets import Static

    from pagein.ui.top import Top

    url, _, folder = worked
    source = GatewayInquiry(url, "127.0.0.1", folder / "data" / "pagein" / "gateway.token")

    async def go() -> None:
        app = Top(source, (NoAnswer,))
        async with app.run_test(size=(80, 24)) as pilot:
            pressed = (
                ((), "#about", HOSTILE),
                (("f", *"app.py", "enter"), "#told", "shows app.py"),
                (("p",), "#told", "2 results show it"),
                (("f", *"nothing.py", "enter", "d"), "#told", "no tool result"),
                (("z",), "#told", "Taken back"),
                (("f", "escape", "z"), "#told", "There is no order to take back"),
            )
            for keys, part, words in pressed:
                await pilot.press(*keys)
                said = ""
                for _ in range(300):
                    said = str(app.query_one(part, Static).render())
                    if words in said:
                        break
                    await pilot.pause(0.05)
                assert words in said

    asyncio.run(go())


@needs_browser
def test_each_order_is_given_by_click_and_by_key_and_taken_back(tmp_path: Path) -> None:
    folder = tmp_path
    orders = {
        "pin": ("p", "stays in the window"),
        "veto": ("v", "never leaves the window again"),
        "drop": ("d", "leaves the window with the next epoch"),
        "restore": ("r", "comes back into the window"),
        "epoch": ("e", "opens an epoch"),
        "off": ("o", "decides nothing"),
    }

    def state() -> tuple[list[list[str]], bool, bool]:
        """The marks of each result, whether an epoch is ordered, and whether all is off, as the store has them."""
        with wiring.open_kept_session("steered", str(folder / "s.pagein"), workspace=folder) as session:
            seen = pin_commands.window(session)
        return [one["marks"] for one in seen["results"]], seen["epoch_now"], seen["off"]

    async def holds(wanted: Callable[[object], bool]) -> bool:
        """Whether the store comes to it, seen by another process, in five seconds."""
        for _ in range(100):
            if wanted(state()):
                return True
            await asyncio.sleep(0.05)
        return False

    async def go(url: str) -> None:
        for turns in range(5):
            await sent(url, body(turns), x_pagein_session="steered")
        with wiring.open_kept_session("steered", str(folder / "s.pagein"), workspace=folder) as session:
            pin_commands.touch(session, "drop", "toolu_0001", now=True)
        await sent(url, body(5), x_pagein_session="steered")
        await asyncio.to_thread(noted, folder, 6)  # the client has the answer before the gateway has stored it
        before = state()
        async with browsing(url + "/#steered", tmp_path / "browser") as page:
            await page.until("document.querySelector('.parts table') !== null")
            rows = "[...document.querySelectorAll('.parts tr')]"
            await page.until(f"{rows}.some((one) => one.textContent.includes('stub'))")
            for act, (key, words) in orders.items():
                part = "stub" if act == "restore" else "Bash step 3"
                await page.value(
                    f"{rows}.find((one) => one.textContent.includes('{part}')).querySelector('button').click()"
                )
                await page.until(f"document.querySelector('.parts tr.open')?.textContent.includes('{part}')")
                for by_key in (False, True):
                    give = f"document.querySelector('[data-order={act}]')"
                    await page.until(f"{give} !== null")
                    await (page.press(key, key) if by_key else page.value(f"{give}.click()"))
                    await ordered(page, words)
                    assert await holds(lambda now: now != before), act
                    undo = "document.querySelector('[data-order=undo]')"
                    await page.until(f"{undo} !== null")
                    await (page.press("z", "z") if by_key else page.value(f"{undo}.click()"))
                    await ordered(page, "Taken back")
                    assert await holds(lambda now: now == before), act
            assert page.problems == []

    with SimulatedProvider() as provider, gateway_process(provider.url, tmp_path) as (url, _):
        run(go(with_token(url, token_in(tmp_path))))


def cached(turns: int, words: str = "Fix the build", lines: int = 160) -> dict[str, Any]:
    """A conversation as the pictures show it."""
    told = json.loads(json.dumps(conversation(turns, lines=lines)))
    told["messages"][0]["content"] = words
    # as large as an agent's: a small first request has no recall tools, so that nothing leaves
    return {**told, "system": "You fix builds. " * 4000, "cache_control": {"type": "ephemeral"}}


async def reported(url: str, folder: Path, turns: int) -> None:
    """Send a request, and wait until its usage is stored: what was read tells what a rewrite costs."""
    await sent(url, cached(turns), x_pagein_session="fix-build")
    await asyncio.to_thread(noted, folder, turns + 1)


@needs_browser
def test_the_picture_in_the_docs_shows_the_page_as_it_is(tmp_path: Path) -> None:
    """With PAGEIN_PICTURES=docs/images the picture is written there."""
    folder = Path(os.environ.get("PAGEIN_PICTURES") or tmp_path)
    pictures = folder / "page.png", folder / "dashboard.png"
    other = tmp_path / "other"
    other.mkdir()

    async def go(url: str) -> None:
        for turns in range(8):
            await reported(url, tmp_path, turns)
        with wiring.open_kept_session("fix-build", str(tmp_path / "s.pagein"), workspace=tmp_path) as session:
            for number in range(6):
                pin_commands.touch(session, "drop", f"toolu_{number:04}", now=True)
            pin_commands.touch(session, "pin", "toolu_0006", now=False)
        for turns in range(8, 20):
            await reported(url, tmp_path, turns)
        async with browsing(url + "/", tmp_path / "browser") as page:
            await page.look(1180)
            await page.until("document.querySelector('.parts table') !== null")
            await page.until("document.querySelector('#totals tbody tr') !== null")
            text = await page.text()
            for shown in ("Fix the build", "the user's word", "stubs", "pinned", "paid back"):
                assert shown in text, shown
            await page.picture(pictures[0], 900)

    async def tutorial(url: str) -> None:
        """The session of docs/tutorial.md: large outputs, one of them restored, and a last call with another set of tools."""
        for turns in range(13):
            await sent(url, cached(turns, "Run the steps", 600), x_pagein_session="tutorial")
        await asyncio.to_thread(noted, other, 13)
        with wiring.open_kept_session("tutorial", str(other / "s.pagein"), workspace=Path.cwd()) as session:
            pin_commands.touch(session, "restore", "toolu_0007", now=True)
        last = cached(13, "Run the steps", 600)
        last["tools"].append({"name": "Read", "input_schema": {"type": "object", "properties": {"path": {}}}})
        await sent(url, last, x_pagein_session="tutorial")
        await asyncio.to_thread(noted, other, 14)
        async with browsing(url + "/#tutorial", tmp_path / "again") as page:
            await page.look(1180)
            await page.until(
                "document.querySelector('#inside [aria-label=\"Where the cache fell short\"] tbody tr') !== null"
            )
            text = await page.text()
            for shown in ("Run the steps", "the tools changed", "previews", "stubs"):
                assert shown in text, shown
            await page.picture(pictures[1], 1500)

    with SimulatedProvider() as provider:
        with gateway_process(provider.url, tmp_path) as (url, _):
            run(go(with_token(url, token_in(tmp_path))))
        with gateway_process(provider.url, other) as (url, _):  # a store of its own: sessions share what they lose
            run(tutorial(with_token(url, token_in(other))))
    assert all(picture.read_bytes().startswith(b"\x89PNG") for picture in pictures)


def test_serve_tells_in_a_terminal_what_the_last_week_saved(worked: tuple[str, str, Path], tmp_path: Path) -> None:
    _, _, folder = worked
    mine, terminal = os.openpty()
    command = [sys.executable, "-m", "pagein", "serve", "--port", "0", "--no-keep-alive", "--store"]
    with subprocess.Popen(  # noqa: S603 -- our own
        [*command, str(folder / "s.pagein"), "--log", str(tmp_path / "log.jsonl")],
        stdout=terminal,
        stderr=terminal,
        env=os.environ | data_folder(folder),
    ) as process:
        os.close(terminal)
        text = ""
        try:
            while not re.search("^last 7 days.*\n", text, re.MULTILINE):
                assert select.select([mine], [], [], 60)[0], f"the gateway says no more than {text!r}"
                text += os.read(mine, 65536).decode()
        finally:
            process.kill()
            os.close(mine)
    line = next(one for one in text.splitlines() if one.startswith("last 7 days"))
    told = r"in this store: \$\d+\.\d+ for \d+ calls?; with the settings then in force they (saved|have cost) \$\d"
    assert re.search(told, line), line


def test_of_an_empty_store_no_saving_is_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    store = tmp_path / "empty.pagein"
    for _ in ("missing", "empty"):
        tell_week(str(store), tmp_path).join()
        assert capsys.readouterr() == ("", "")
        wiring.open(str(store), workspace=tmp_path).close()
