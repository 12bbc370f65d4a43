import asyncio
import json
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from tests.gateway.processes import gateway_process
from tests.gateway.test_serve import cli, conversation, sent
from tests.gateway.upstreams import run, says, stage

from pagein.hosts.gateway.settings import GatewaySettings
from pagein.hosts.gateway.state import CALLS, SESSIONS, Board, Call
from pagein.testing.provider import SimulatedProvider

BROWSER = next(
    (found for name in ("chromium", "chromium-browser", "google-chrome") if (found := shutil.which(name))), None
)


async def asked(url: str) -> tuple[Any, dict[str, str]]:
    async with aiohttp.ClientSession() as client, client.get(url) as answer:
        text = await answer.text()
        return (json.loads(text) if answer.content_type == "application/json" else text), dict(answer.headers)


def seen(url: str) -> tuple[str, str]:
    """What a browser made of a page, and what it wrote to its console."""
    assert BROWSER is not None
    flags = ["--headless", "--no-sandbox", "--disable-gpu", "--enable-logging=stderr", "--dump-dom"]
    flags.append("--virtual-time-budget=2500")
    done = subprocess.run([BROWSER, *flags, url], capture_output=True, text=True, timeout=60, check=False)  # noqa: S603
    body = done.stdout.partition("<body>")[2].partition("<script>")[0]
    return body, "\n".join(line for line in done.stderr.splitlines() if "CONSOLE" in line)


def test_the_dashboard_shows_sessions_their_window_epochs_and_objects_and_finds_what_is_stored(tmp_path: Path) -> None:
    with SimulatedProvider() as provider, gateway_process(provider.url, tmp_path) as (url, _):
        name = "fix <b>&amp; 'go'"
        for turns in range(12):
            if turns == 11:  # the user's hand, from another process
                ordered = cli(
                    "drop", name, "toolu_0000", "--now", "--store", str(tmp_path / "s.pagein"), folder=tmp_path
                )
                assert ordered.returncode == 0, ordered.stderr
            run(sent(url, conversation(turns, lines=160), X_Claude_Code_Session_Id=name))

        async def go() -> None:
            for _ in range(50):  # a call is told of after its answer
                state, headers = await asked(url + "/api/state")
                (one,) = state["sessions"]
                if one["calls"] == 12:
                    break
                await asyncio.sleep(0.1)
            assert (one["name"], one["source"], one["calls"]) == ("fix <b>&amp; 'go'", "x-claude-code-session-id", 12)
            assert one["epochs"] == 1
            assert one["recent"][0]["replaced"] > 0
            assert headers["Cache-Control"] == "no-store"
            inside, _ = await asked(url + "/api/session?name=fix%20%3Cb%3E%26amp;%20'go'")
            assert inside["window"]["results"] > 0
            assert inside["window"]["user"] > 0
            assert sum(epoch["out"] for epoch in inside["epochs"]) > 0
            assert all(epoch["reason"] for epoch in inside["epochs"])
            gone = [item for item in inside["objects"] if item["form"] != "whole"]
            assert all(item["id"].startswith("pg-") for item in gone)
            assert gone
            found, _ = await asked(url + "/api/search?q=step%200%20says%20line%20150")
            assert gone[0]["id"] in {hit["id"] for hit in found["hits"]}

        run(go())
        if BROWSER is not None:
            dom, console = seen(url + "/#fix%20%3Cb%3E%26amp%3B%20'go'")
            assert console == ""
            assert "fix &lt;b&gt;&amp;amp; 'go'</button>" in dom
            assert "claude-sonnet-4-5" in dom
            assert "The window: " in dom
            assert '<td class="text">stub</td>' in dom or '<td class="text">preview</td>' in dom


def test_the_page_takes_nothing_from_elsewhere_and_runs_nothing_but_its_own(tmp_path: Path) -> None:
    async def go() -> None:
        async with stage(says(b"{}"), tmp_path) as on:
            text, headers = await asked(on.url + "/")
            policy = headers["Content-Security-Policy"]
            assert policy.startswith("default-src 'none'")
            assert "unsafe" not in policy
            assert headers["X-Frame-Options"] == "DENY"
            assert not re.findall(r"(?:src|href)=\"(?!data:)", text)
            assert "http" not in text.replace("http-equiv", "")
            assert "innerHTML" not in text

    run(go())


@pytest.mark.skipif(BROWSER is None, reason="there is no browser")
def test_a_browser_runs_the_page_without_an_error_also_where_nothing_was_seen(tmp_path: Path) -> None:
    async def go() -> None:
        async with stage(says(b"{}"), tmp_path) as on:
            dom, console = await asyncio.to_thread(seen, on.url + "/")
            assert console == ""
            assert "none yet" in dom
            assert f"anthropic → {on.upstream.url}" in dom

    run(go())


def test_where_nothing_is_decided_there_is_nothing_to_look_into(tmp_path: Path) -> None:
    async def go() -> None:
        async with stage(says(b"{}"), tmp_path) as on:
            for path in ("/api/session?name=x", "/api/search?q=x"):
                answer, _ = await asked(on.url + path)
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
            Call(at=float(number), session=f"s{number}", source="history", route="messages", model="m", status=200)
        )
    for number in range(CALLS + 7):
        board.add(
            Call(at=1000.0 + number, session="s60", source="history", route="messages", model="", status=200, cost=2.0)
        )
    sessions = board.sessions()
    assert len(sessions) == SESSIONS
    assert sessions[0]["name"] == "s60"
    assert sessions[0]["model"] == "m"
    assert sessions[0]["calls"] == CALLS + 8
    assert sessions[0]["cost"] == 2.0 * (CALLS + 7)
    assert len(sessions[0]["recent"]) == CALLS
    assert sessions[0]["recent"][0]["at"] == 1000.0 + CALLS + 6
