"""Sessions of a model that binds its thinking to what stood before it, while the gateway is switched off or too slow and behind that.

The simulated provider refuses what the vendor does: thinking that stands behind another prompt than it was made for.
"""

import gzip
import io
import json
import threading
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from tests.gateway.processes import ended, gateway_process, noted
from tests.gateway.recalling_clients import Messages
from tests.gateway.stream.test_recalls import CALL
from tests.gateway.test_serve import cli
from tests.gateway.upstreams import run

from pagein import wiring
from pagein.engine.call_stages import CallStages
from pagein.gateway.curation.engine_curator import EngineCurator
from pagein.gateway.kill_switch import Switch, turn_off, turn_on
from pagein.gateway.pages.json_logs import logger_to
from pagein.gateway.server import Gateway, GatewayParts
from pagein.gateway.settings import GatewaySettings
from pagein.simulator import SimulatedProvider

SCRIPT = [
    [{"thinking": "first make"}, CALL],
    [{"thinking": "and again"}, CALL],
    [{"thinking": "once more"}, CALL],
    [{"thinking": "and now"}, CALL],
    [{"thinking": "so"}, {"text": "done"}],
]


class Thinker(Messages):
    """An agent of a model that binds its thinking."""

    def body(self) -> dict[str, Any]:
        return {**super().body(), "model": "claude-sonnet-5-5", "thinking": {"type": "adaptive"}}


@dataclass
class Stage:
    """A client, a provider and the file that switches the gateway off."""

    client: Thinker
    provider: SimulatedProvider
    switch: Path
    gateway: Gateway

    def thoughts(self) -> int:
        """How much thinking the provider got with the last request."""
        blocks = [one for item in self.provider.requests[-1].body["messages"] for one in item["content"]]
        return sum(isinstance(one, dict) and one["type"] == "thinking" for one in blocks)


@asynccontextmanager
async def stage(folder: Path, budget: float = 60) -> AsyncIterator[Stage]:
    switch = folder / "off"
    async with SimulatedProvider(SCRIPT) as provider:
        settings = GatewaySettings(anthropic=provider.url, openai=provider.url, port=0, grace=2, budget=budget)
        parts = GatewayParts(
            EngineCurator(wiring.open(folder / "s.pagein")), None, Switch(switch, {}), logger_to(io.StringIO())
        )
        async with Gateway(settings, parts) as gateway, aiohttp.ClientSession() as http:
            yield Stage(Thinker(gateway.url, http, stream=True), provider, switch, gateway)
        assert [record.refused for record in provider.requests if record.refused] == []


def test_switched_off_in_mid_session_nothing_is_refused_and_neither_when_it_is_on_again(tmp_path: Path) -> None:
    async def go() -> None:
        async with stage(tmp_path) as here:
            await here.client.turn()
            await here.client.turn()
            assert here.thoughts() == 1
            turn_off(here.switch)
            await here.client.turn()
            assert here.thoughts() == 0
            sent = here.provider.requests[-1].body
            assert [one["name"] for one in sent["tools"]] == ["Bash"]
            assert b"pg-" not in json.dumps(sent["messages"]).encode()
            turn_on(here.switch)
            await here.client.turn()
            assert await here.client.turn() == ["done"]

    run(go())


@pytest.mark.parametrize("packed", [False, True])
def test_leaving_sends_the_agents_own_bytes_without_what_stands_on_our_windows_and_tells_of_the_session(
    tmp_path: Path,
    packed: bool,  # noqa: FBT001 -- a case
) -> None:
    async def go() -> None:
        async with stage(tmp_path) as here:
            await here.client.turn()
            await here.client.turn()
            turn_off(here.switch, leaving=True)
            body = here.client.body()
            if packed:  # as some clients send long requests
                headers = {"Content-Type": "application/json", "Content-Encoding": "gzip", "x-api-key": "k"}
                data = gzip.compress(json.dumps(body).encode())
                url = here.gateway.url + "/v1/messages"
                async with aiohttp.ClientSession() as http, http.post(url, data=data, headers=headers) as answer:
                    assert answer.status == 200
            else:
                await here.client.turn()
            sent = here.provider.requests[-1].body
            assert here.thoughts() == 0
            assert _thoughtless(sent) == _thoughtless(body)
            (notice,) = here.gateway.board.notices
            assert "still holds thinking" in notice
            assert "compact" in notice
            assert len(here.gateway.board.bound()) == 1

    run(go())


def _thoughtless(body: dict[str, Any]) -> dict[str, Any]:
    """A body without thinking; a stream is none of it."""
    said = [
        {**one, "content": [block for block in one["content"] if block["type"] != "thinking"]}
        if isinstance(one["content"], list)
        else one
        for one in body["messages"]
    ]
    return {**body, "messages": said}


def test_plain_off_behind_leaving_is_off_again_and_on_is_on(tmp_path: Path) -> None:
    file = tmp_path / "new" / "off"
    switch = Switch(file, {})
    turn_off(file, leaving=True)
    assert (switch.is_off(), switch.is_leaving()) == (True, True)
    assert "--leaving" in switch.why()
    turn_off(file)
    assert (switch.is_off(), switch.is_leaving()) == (True, False)
    turn_on(file)
    assert (switch.is_off(), switch.is_leaving()) == (False, False)


def test_at_its_end_the_gateway_says_what_leaving_it_would_cost(tmp_path: Path) -> None:
    async def go(url: str) -> None:
        async with aiohttp.ClientSession() as http:
            client = Thinker(url, http, stream=True)
            await client.turn()
            await client.turn()

    with SimulatedProvider(SCRIPT) as provider, gateway_process(provider.url, tmp_path) as (url, process):
        run(go(url))
        noted(tmp_path, 2)
        assert ended(process) == 0
        said = process.stderr.read() if process.stderr is not None else ""
    assert "a session had a window changed under a model that binds its thinking" in said
    assert "pagein off --leaving" in said


def test_the_command_says_what_to_do(tmp_path: Path) -> None:
    done = cli("off", "--leaving", folder=tmp_path)
    assert done.returncode == 0
    for word in ("/compact", "refused once", "remove the gateway from"):
        assert word in done.stdout
    assert (tmp_path / "data" / "pagein" / "gateway.off").read_text() == "leaving\n"


def test_while_switched_off_a_session_that_was_never_changed_passes_byte_for_byte(tmp_path: Path) -> None:
    async def go() -> None:
        async with stage(tmp_path) as here:
            turn_off(here.switch)
            for _ in range(3):
                body = here.client.body()
                await here.client.turn()
                assert here.provider.requests[-1].body == body
            assert here.thoughts() == 2

    run(go())


def test_a_decision_that_takes_too_long_leaves_a_request_that_is_not_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    slow, free = threading.Event(), threading.Event()
    run_stages: Callable[..., Any] = CallStages.run

    def waiting(stages: CallStages, *args: Any) -> Any:  # noqa: ANN401 -- whatever the real one is given and gives
        found = run_stages(stages, *args)
        if slow.is_set():
            free.wait(60)
        return found

    monkeypatch.setattr(CallStages, "run", waiting)

    async def go() -> None:
        async with stage(tmp_path, budget=3) as here:
            await here.client.turn()
            await here.client.turn()
            slow.set()
            await here.client.turn()
            slow.clear()
            free.set()
            await here.client.turn()
            assert await here.client.turn() == ["done"]

    run(go())
