import asyncio
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote

import aiohttp
import pytest
from tests.gateway.browser import Page, browsing, needs_browser
from tests.gateway.processes import gateway_process, token_in
from tests.gateway.test_serve import cli, conversation, sent
from tests.gateway.upstreams import run, says, stage

from pagein.gateway.http.addresses import with_token
from pagein.gateway.pages.call_history import CALLS, SESSIONS, Board, CallRecord
from pagein.gateway.settings import GatewaySettings
from pagein.simulator import SimulatedProvider

HOSTILE = "<img src=x onerror=alert(1)> & 'quotes' <b>bold</b>"


# The parts of the page that are wider than their room. Heads of columns are out of sight where rows are paragraphs.
CUT = """[...document.querySelectorAll('.scroll, td, th')].filter((one) => one.clientWidth > 1 && one.scrollWidth > one.clientWidth + 1
  && !(one.closest('thead') && getComputedStyle(one.closest('thead')).position === 'absolute'))
  .map((one) => `${one.ariaLabel || one.dataset.head}: ${one.textContent.slice(0, 40)}`)"""


async def asked(url: str) -> tuple[Any, dict[str, str]]:
    jar = aiohttp.CookieJar(unsafe=True)  # the link sets a cookie for an address
    async with aiohttp.ClientSession(cookie_jar=jar) as client, client.get(url) as answer:
        text = await answer.text()
        return (json.loads(text) if answer.content_type == "application/json" else text), dict(answer.headers)


async def called(url: str, session: str, times: int) -> dict[str, Any]:
    """The session as the page is told of it, when so many calls of it are over: a call is told of after its answer."""
    for _ in range(1200):
        state, _ = await asked(url + "/api/state")
        for one in state["sessions"]:
            if one["name"] == session and one["calls"] == times:
                return dict(one)
        await asyncio.sleep(0.1)
    raise AssertionError(f"{times} calls of {session} were not told of")


def details(session: str) -> str:
    return "/api/session?name=" + quote(session, safe="")


@pytest.fixture(scope="module")
def worked(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, Path]]:
    """A gateway with a session of a hostile name and hostile results, one result of it dropped by hand; and a client that changes its prompt."""
    folder = tmp_path_factory.mktemp("worked")
    with SimulatedProvider() as provider, gateway_process(provider.url, folder) as (plain, _):
        url = with_token(plain, token_in(folder))
        for turns in range(12):
            if turns == 11:  # the user's hand, from another process
                store = str(folder / "s.pagein")
                ordered = cli("drop", HOSTILE, "toolu_0000", "--now", "--store", store, folder=folder)
                assert ordered.returncode == 0, ordered.stderr
            asked = conversation(turns, lines=160) | {"cache_control": {"type": "ephemeral"}}
            body = json.dumps(asked).replace(" of its output", " <script>alert(2)</script>")
            run(sent(url, json.loads(body), X_Claude_Code_Session_Id=HOSTILE))
        for name in ("one way", "another way"):
            system = [{"type": "text", "text": f"{name} " * 2000, "cache_control": {"type": "ephemeral"}}]
            run(sent(url, {"system": system, **conversation(2)}, x_pagein_session="fickle"))
        run(
            sent(
                url,
                conversation(1),
                x_pagein_session="of a subscriber",
                Authorization="Bearer sk-ant-oat01-x",
                x_api_key="",
            )
        )
        run(sent(url, {**conversation(1), "messages": []}, x_pagein_session="refused"))
        yield url, folder


def test_the_dashboard_is_told_of_sessions_their_window_epochs_and_objects_and_finds_what_is_stored(
    worked: tuple[str, Path],
) -> None:
    url, _ = worked

    async def go() -> None:
        one = await called(url, HOSTILE, 12)
        assert (one["source"], one["epochs"], one["errors"], one["failures"]) == ("x-claude-code-session-id", 1, 0, 0)
        assert one["cost"] > 0
        found, headers = await asked(url + details(HOSTILE))
        assert headers["Cache-Control"] == "no-store"
        assert found["calls"][0]["replaced"] > 0
        inside = found["inside"]
        assert inside["window"]["results"] > 0
        assert inside["window"]["user"] > 0
        assert sum(epoch["out"] for epoch in inside["epochs"]) > 0
        assert all(epoch["reason"] for epoch in inside["epochs"])
        opened = next(call for call in found["calls"] if call["epoch"])
        assert opened["at"] in {epoch["at"] for epoch in inside["epochs"]}
        gone = [item for item in inside["objects"] if item["form"] != "whole"]
        assert gone
        assert all(item["id"].startswith("pg-") for item in gone)
        hits, _ = await asked(url + "/api/search?q=step%200%20says%20line%20150")
        assert gone[0]["id"] in {hit["id"] for hit in hits["hits"]}

    run(go())


def test_status_counts_the_cache_misses_by_cause_and_whose_doing(worked: tuple[str, Path]) -> None:
    url, folder = worked
    run(called(url, "fickle", 2))
    store = str(folder / "s.pagein")
    told = json.loads(cli("status", "--store", store, "--json", folder=folder).stdout)
    (system,) = [one for one in told["costs"]["week"]["misses"] if one["cause"] == "system"]
    assert (system["who"], system["calls"]) == ("client", 1)
    assert system["tokens"] > 2000
    shown = cli("status", "--store", store, folder=folder).stdout
    assert re.search(rf"^  system +by the client +1 call +{system['tokens']:,} tokens$", shown, re.MULTILINE)


def test_a_session_that_only_passed_has_calls_and_what_fills_its_window_and_one_never_seen_has_neither(
    worked: tuple[str, Path],
) -> None:
    url, _ = worked

    async def go() -> None:
        await called(url, "of a subscriber", 1)
        found, _ = await asked(url + details("of a subscriber"))
        assert found["inside"]["window"]["results"] > 0
        assert found["inside"]["epochs"] == []
        assert found["calls"][0]["passed"] == "subscription"
        never, _ = await asked(url + details("never seen"))
        assert "no session of this name" in never["error"]

    run(go())


@needs_browser
def test_a_person_sees_sessions_costs_the_window_reasons_and_finds_text_and_nothing_of_it_is_run(
    worked: tuple[str, Path], tmp_path: Path
) -> None:
    url, _ = worked

    async def go() -> None:
        await called(url, HOSTILE, 12)
        async with browsing(f"{url}/#{quote(HOSTILE, safe='')}", tmp_path) as page:
            await page.until(
                "document.querySelector('#inside h2') && document.querySelectorAll('#inside svg g').length"
            )
            text = await page.text()
            for told in (
                f"Session {HOSTILE}",
                "claude-sonnet-4-5",
                "named by x-claude-code-session-id",
                "The window now",
                "What each call sent",
                "stub",
                "By pagein's reckoning",
                "1 error upstream",
                "1 untouched",
                "not in cache",
                "<script>alert(2)</script>",
            ):
                assert told in text, told
            await page.value("location.hash = 'fickle'")
            await page.until("document.querySelector('#inside h2').textContent === 'Session fickle'")
            assert "the client" in await page.text()
            await page.press("/", "/")
            for letter in "<script>":
                await page.press(letter, letter)
            await page.press("Enter", "\r")
            await page.until("document.querySelector('#hits tbody tr') !== null")
            assert "with “<script>”" in await page.text()
            assert await page.value("document.querySelectorAll('main img, main script').length") == 0
            assert page.problems == []
            assert {one.partition("//")[2].partition("/")[0] for one in page.asked if one.startswith("http")} == {
                url.split("/")[2]
            }

    run(go())


@needs_browser
@pytest.mark.parametrize(("widths", "dark"), [((360, 420, 768, 1024), True), ((1280, 1400, 1600), False)])
def test_the_page_is_no_wider_than_its_window_and_follows_the_light(
    worked: tuple[str, Path], tmp_path: Path, widths: tuple[int, ...], *, dark: bool
) -> None:
    url, _ = worked

    async def go() -> None:
        await called(url, HOSTILE, 12)
        async with browsing(url + "/#" + quote(HOSTILE), tmp_path) as page:
            await page.look(widths[0], dark=dark)
            await page.until("document.querySelector('.parts table') !== null")
            await page.until("document.querySelector('#stored table') !== null")
            for width in widths:
                await page.look(width, dark=dark)
                assert await page.value(f"document.documentElement.scrollWidth <= {width}"), width
                assert await page.value(CUT) == [], f"nothing is cut at {width} px"
            paper = str(await page.value("getComputedStyle(document.body).backgroundColor"))
            assert (sum(map(int, re.findall(r"\d+", paper))) < 200) == dark
            assert page.problems == []

    run(go())


@needs_browser
def test_what_is_new_is_put_into_the_page_without_making_it_anew(tmp_path: Path) -> None:
    async def go(url: str) -> None:
        for turns in range(3):
            await sent(url, conversation(turns), x_pagein_session="one")
        await called(url, "one", 3)
        async with browsing(url, tmp_path / "browser") as page:
            await page.until("document.querySelector('#inside table') !== null")
            await page.value(
                "window.kept = [document.querySelector('#inside h2'), document.querySelector('#overview tbody tr')];"
                "kept[1].querySelector('a').focus(); document.querySelector('#footer details').open = true"
            )
            await sent(url, conversation(3), x_pagein_session="one")
            await sent(url, conversation(3, "something else"), x_pagein_session="two")
            await page.until("document.querySelectorAll('#overview tbody tr').length === 2")
            await page.until("document.querySelector('#overview tr.open td:nth-child(3)').textContent === '4'")
            assert await page.value("kept.every((one) => one.isConnected)")
            assert await page.value("document.activeElement === kept[1].querySelector('a')")
            assert await page.value("document.querySelector('#footer details').open")
            assert await page.value("document.querySelector('#inside h2').textContent") == "Session one"
            assert page.problems == []

    with SimulatedProvider() as provider, gateway_process(provider.url, tmp_path) as (url, _):
        run(go(with_token(url, token_in(tmp_path))))


@needs_browser
def test_before_the_first_call_the_page_says_what_to_do_and_later_that_the_gateway_is_gone(tmp_path: Path) -> None:
    async def go() -> None:
        async with stage(says(b"{}"), tmp_path) as on, browsing(on.gateway.page, tmp_path / "browser") as page:
            await page.until("document.querySelector('#overview h2') !== null")
            text = await page.text()
            for told in ("No model call came through yet", "ANTHROPIC_BASE_URL", "codex"):
                assert told in text, told
            assert f"anthropic → {on.upstream.url}" in text
            assert page.problems == []
            await on.gateway.stop(0)
            await page.until("document.getElementById('state').textContent === 'the gateway does not answer'")

    run(go())


@needs_browser
def test_among_many_sessions_the_one_that_is_opened_is_seen(tmp_path: Path) -> None:
    async def go(url: str) -> None:
        for number in range(40):
            await sent(url, conversation(0, f"job {number}"), x_pagein_session=f"{number} of many " + "long " * 30)
        async with browsing(url, tmp_path / "browser") as page:
            await page.look(1280)
            await page.until("document.querySelectorAll('#overview tbody tr').length === 40")
            await page.value("document.querySelectorAll('#overview tbody a')[5].focus()")
            await page.press("Enter", "\r")
            await page.until("document.querySelector('#inside h2') !== null")
            assert await page.value("document.querySelector('#inside h2').getBoundingClientRect().top < innerHeight")
            assert page.problems == []

    with SimulatedProvider() as provider, gateway_process(provider.url, tmp_path) as (url, _):
        run(go(with_token(url, token_in(tmp_path))))


def test_the_page_takes_nothing_from_elsewhere_and_runs_nothing_but_its_own(tmp_path: Path) -> None:
    async def go() -> None:
        async with stage(says(b"{}"), tmp_path) as on:
            text, headers = await asked(on.gateway.page)
            policy = headers["Content-Security-Policy"]
            assert policy.startswith("default-src 'none'")
            assert "unsafe" not in policy
            assert headers["X-Frame-Options"] == "DENY"
            assert not re.findall(r"(?:src|href)=\"(?!data:)", text)
            assert set(re.findall(r"https?://[^\"\s]*", text)) == {
                "http://www.w3.org/2000/svg"
            }  # a name, never asked for
            assert "innerHTML" not in text
            assert len(text.encode()) < 300_000

    run(go())


def test_where_nothing_is_decided_there_is_nothing_to_look_into(tmp_path: Path) -> None:
    async def go() -> None:
        async with stage(says(b"{}"), tmp_path) as on:
            for path in ("/api/session?name=x", "/api/search?q=x"):
                answer, _ = await asked(on.gateway.page.rstrip("/") + path)
                assert "error" in answer

    run(go())


@pytest.mark.parametrize("path", ["/", "/api/state", "/api/session?name=x", "/api/search?q=x"])
def test_the_dashboard_answers_only_to_names_of_this_machine(path: str, tmp_path: Path) -> None:
    async def go() -> None:
        async with stage(says(b"{}"), tmp_path, settings=GatewaySettings(grace=1)) as on:
            async with on.client.get(on.url + path, headers={"Host": "evil.example:8790"}) as answer:
                assert answer.status == 403
            assert on.upstream.got == []

    run(go())


def test_the_board_keeps_the_latest_sessions_and_their_latest_calls() -> None:
    board = Board()
    for number in range(SESSIONS + 50):
        board.add(
            CallRecord(
                at=float(number), session=f"s{number}", source="history", route="messages", model="m", status=200
            )
        )
    for number in range(CALLS + 7):
        board.add(
            CallRecord(
                at=1000.0 + number, session="s60", source="history", route="messages", model="", status=200, cost=2.0
            )
        )
    sessions = board.sessions()
    assert len(sessions) == SESSIONS
    assert sessions[0]["name"] == "s60"
    assert sessions[0]["model"] == "m"
    assert sessions[0]["calls"] == CALLS + 8
    assert sessions[0]["cost"] == 2.0 * (CALLS + 7)
    assert len(board.calls("s60")) == CALLS
    assert board.calls("s60")[0]["at"] == 1000.0 + CALLS + 6
    assert board.calls("s0") == []


def test_what_was_saved_before_a_restart_is_not_counted_again_behind_it(tmp_path: Path) -> None:
    saved = []
    with SimulatedProvider() as provider:
        for turns in (range(13), range(13, 14)):
            with gateway_process(provider.url, tmp_path) as (url, _):
                for number in turns:
                    run(sent(url, conversation(number), x_pagein_session="one"))
                saved.append(run(called(with_token(url, token_in(tmp_path)), "one", len(turns)))["saved"])
    assert 0 < saved[1] < saved[0] / 2


PAINT = "performance.getEntriesByName('first-contentful-paint')[0]"


@needs_browser
def test_the_first_paint_with_500_sessions_takes_at_most_three_times_that_of_an_empty_page(tmp_path: Path) -> None:
    async def painted(page: Page, address: str, drawn: str) -> float:
        """Milliseconds to the first paint, the best of three loads: what else the machine does only adds to it."""
        best = float("inf")
        for _ in range(3):
            await page.tell("Page.navigate", url=address)
            await page.until(f"{drawn} && {PAINT} !== undefined")
            best = min(best, float(str(await page.value(f"{PAINT}.startTime"))))
        return best

    async def go() -> None:
        async with stage(says(b"{}"), tmp_path) as on, browsing("about:blank", tmp_path / "browser") as page:
            bare = await painted(page, on.gateway.page, "document.querySelector('#overview h2') !== null")
            for number in range(SESSIONS):
                on.gateway.board.add(
                    CallRecord(1e9 + number, f"job {number}", "header", route="messages", model="m", status=200)
                )
            rows = f"document.querySelectorAll('#overview tbody tr').length === {SESSIONS}"
            many = await painted(page, on.gateway.page, rows)
        assert many <= 3 * bare, f"{many:.0f} ms with {SESSIONS} sessions, {bare:.0f} ms without"

    run(go())
