"""Thinking leaves with epochs through the gateway, before a provider that signs thinking and verifies the signatures."""

import io
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from tests.gateway.stream.test_recalls import BASH, Client, blocks_of
from tests.gateway.upstreams import run

from pagein import wiring
from pagein.engine.engine import Settings
from pagein.gateway.curation.engine_curator import EngineCurator
from pagein.gateway.kill_switch import Switch
from pagein.gateway.pages.json_logs import logger_to
from pagein.gateway.server import Gateway, GatewayParts
from pagein.gateway.settings import GatewaySettings
from pagein.simulator import SimulatedProvider
from pagein.testing.eager_residency import eager

EAGER = Settings(eager(batch_tokens=1000, keep_calls=1, min_tokens=60, thinking="leaves"))
CALL = {"tool": "Bash", "args": {"command": "make all"}}
TASK: list[object] = [
    [{"thinking": "first make"}, CALL],
    [{"thinking": "and once more"}, {"text": "again"}, CALL],
    [{"thinking": "so"}, {"text": "done"}],
]


class Thinker(Client):
    """A client whose model thinks."""

    model = ""

    async def turn(self) -> dict[str, Any]:
        body = {"model": self.model, "max_tokens": 4000, "tools": [BASH], "messages": self.messages}
        more: dict[str, Any] = {"thinking": {"type": "adaptive"}, "stream": self.stream}
        async with self.http.post(self.url + "/v1/messages", json=body | more, headers={"x-api-key": "k"}) as answer:
            assert answer.status == 200, await answer.text()
            return self.said(await answer.json())


def _thoughts(body: Any) -> list[str]:  # noqa: ANN401 - a body as JSON
    return [block["thinking"] for one in body["messages"] for block in blocks_of(one) if block["type"] == "thinking"]


@pytest.mark.parametrize("model", ["claude-opus-4-6", "claude-sonnet-5-5"])
def test_a_provider_takes_every_request_and_each_task_begins_without_what_was_thought_before(
    tmp_path: Path, model: str
) -> None:
    async def go() -> None:
        async with SimulatedProvider(TASK * 4) as provider:
            settings = GatewaySettings(anthropic=provider.url, openai=provider.url, port=0, grace=2, budget=60)
            curator = EngineCurator(wiring.open(tmp_path / "s.pagein", settings=EAGER), recall=True)
            parts = GatewayParts(curator, None, Switch(tmp_path / "off", {}), logger_to(io.StringIO()))
            async with Gateway(settings, parts) as gateway, aiohttp.ClientSession() as http:
                client = Thinker(gateway.url, http, stream=False)
                client.model = model
                for task in range(4):
                    client.messages.append({"role": "user", "content": f"build it, {task}"})
                    for _ in TASK:
                        await client.turn()
            assert [record.refused for record in provider.requests if record.refused] == []
            bodies = [record.body for record in provider.requests if record.path.startswith("/v1/messages")]
            assert len(bodies) == len(TASK) * 4
            assert len(_thoughts({"messages": client.messages})) == len(TASK) * 4
            for task in range(1, 4):
                begins, *loop = bodies[task * len(TASK) : (task + 1) * len(TASK)]
                stayed = _thoughts(begins)
                assert len(stayed) < task * len(TASK)
                assert [_thoughts(one)[len(stayed) :] for one in loop] == [
                    ["first make"],
                    ["first make", "and once more"],
                ]

    run(go())
