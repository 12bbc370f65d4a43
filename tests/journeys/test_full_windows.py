"""Sessions of prose go on through the gateway at three times the window of a provider that refuses what is too long."""

import asyncio
import io
import json
import re
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from tests.engine.window.prose import Talk, Wire, items_of, lost
from tests.gateway.upstreams import run

from pagein import wiring
from pagein.engine.engine import Settings as EngineSettings
from pagein.gateway.curation.engine_curator import EngineCurator
from pagein.gateway.kill_switch import Switch
from pagein.gateway.pages.json_logs import logger_to
from pagein.gateway.server import Gateway, GatewayParts
from pagein.gateway.settings import GatewaySettings
from pagein.policy.eviction.overflow import Valve
from pagein.providers.validity import Api
from pagein.simulator import SimulatedProvider
from pagein.simulator.model_call import ProviderCall
from pagein.simulator.provider_settings import ProviderSettings

APIS: tuple[Api, ...] = ("anthropic", "openai_chat", "openai_responses")
WINDOW = 8000
PATHS = {"anthropic": "/v1/messages", "openai_chat": "/v1/chat/completions", "openai_responses": "/v1/responses"}
SCHEMA = {"type": "object", "properties": {"command": {"type": "string"}}}
TOOLS: dict[Api, Wire] = {
    "anthropic": {"name": "Bash", "description": "run", "input_schema": SCHEMA},
    "openai_chat": {"type": "function", "function": {"name": "Bash", "description": "run", "parameters": SCHEMA}},
    "openai_responses": {"type": "function", "name": "Bash", "description": "run", "parameters": SCHEMA},
}
ANSWER = "It depends on what one takes for granted, as ever." * 20


def answered(asked: ProviderCall) -> list[Any]:
    """Prose; where the user asks for it, a recall of what left first, by the tool or the command that its stub names."""
    text = json.dumps(asked.body)
    if "RECALL" not in text:
        return [{"text": ANSWER}]
    last = json.dumps(items_of(json.dumps(asked.body).encode(), asked.api)[-1])
    if "RECALL" not in last:
        return [{"text": "peeked" if "Question 0.0: why is that so?" in last else f"got {last}"}]
    named, command = re.findall(r"(pg-[0-9a-f]{8}-[0-9a-f]{8}) \|.*?(pagein peek|peek\()", text)[0]
    if command == "pagein peek":
        return [{"tool": "Bash", "args": {"command": f"pagein peek {named}"}}]
    return [{"tool": "peek", "args": {"id": named}}]


async def run_shell_calls(reply: Wire, talk: Talk, store: Path) -> bool:
    """Run the shell commands of an answer in Anthropic's format as a client does; return whether there were any."""
    calls = [one for one in reply.get("content", ()) if one["type"] == "tool_use"]
    for call in calls:
        words = [sys.executable, "-m", *call["input"]["command"].split(), "--store", str(store)]
        child = await asyncio.create_subprocess_exec(*words, stdout=asyncio.subprocess.PIPE)
        shown, _ = await child.communicate()
        assert child.returncode == 0
        talk.items.append({"role": "assistant", "content": reply["content"]})
        result = {"type": "tool_result", "tool_use_id": call["id"], "content": shown.decode()}
        talk.items.append({"role": "user", "content": [result]})
    return bool(calls)


def said_in(reply: Wire, api: Api) -> str:
    """The text of an answer."""
    match api:
        case "anthropic":
            return "".join(block.get("text", "") for block in reply["content"])
        case "openai_chat":
            return str(reply["choices"][0]["message"]["content"])
        case _:
            parts = [part for item in reply["output"] if item["type"] == "message" for part in item["content"]]
            return "".join(part["text"] for part in parts)


@asynccontextmanager
async def gateway(store: Path, upstream: str, log: io.StringIO) -> AsyncIterator[Gateway]:
    settings = GatewaySettings(anthropic=upstream, openai=upstream, port=0, grace=2, budget=60)
    engine = wiring.open(store, settings=EngineSettings(valve=Valve(window=WINDOW)))
    parts = GatewayParts(EngineCurator(engine), None, Switch(store.parent / "off", {}), logger_to(log))
    async with Gateway(settings, parts) as one:
        yield one


async def sent(http: aiohttp.ClientSession, url: str, talk: Talk) -> tuple[int, Wire]:
    fields = json.loads(talk.body()) | {"tools": [TOOLS[talk.api]]}
    headers = {"x-api-key": "k", "authorization": "Bearer k", "anthropic-version": "2023-06-01"}
    async with http.post(url + PATHS[talk.api], json=fields, headers=headers) as answer:
        reply: Wire = await answer.json()
        return answer.status, reply


@pytest.mark.parametrize("api", APIS)
def test_a_session_of_prose_goes_on_at_three_times_its_window(api: Api, tmp_path: Path) -> None:
    async def go() -> None:
        talk = Talk(api)
        async with (
            SimulatedProvider(answered, ProviderSettings(window=WINDOW)) as provider,
            aiohttp.ClientSession() as http,
        ):
            for part in range(2):  # the second by another process' gateway, as after a death
                async with gateway(tmp_path / "s.pagein", provider.url, io.StringIO()) as one:
                    for turn in range(40):
                        talk.user(f"Question {part}.{turn}: " + "why is that so? " * 20)
                        status, reply = await sent(http, one.url, talk)
                        assert status == 200, reply
                        talk.model(said_in(reply, api))
            async with gateway(tmp_path / "s.pagein", provider.url, io.StringIO()) as one:
                talk.user("RECALL what we said first")
                direct, why = await sent(http, provider.url, talk)
                assert direct == 400, "sent as it is, it is far too long"
                assert re.search("too long|maximum context length|exceeds the context window", json.dumps(why))
                status, reply = await sent(http, one.url, talk)
                assert status == 200, reply
                if await run_shell_calls(reply, talk, tmp_path / "s.pagein"):
                    status, reply = await sent(http, one.url, talk)
                    assert status == 200, reply
                assert said_in(reply, api).endswith("peeked")
            calls = [record for record in provider.requests if record.path in PATHS.values()]
            assert [record.refused for record in calls if record.refused] == ["window"], "but for the one sent as it is"
            assert sum(map(len, talk.texts)) > 3 * WINDOW * 3.5
            with wiring.open(tmp_path / "s.pagein") as engine:
                items = items_of(json.dumps(calls[-1].body).encode(), api)
                assert lost(talk, items, engine.session("any").recall) == []

    run(go())


@pytest.mark.parametrize("model", ["claude-sonnet-5-5", "claude-opus-5-5", "claude-sonnet-4-5"])
def test_a_thinking_session_with_tools_continues_beyond_its_window(model: str, tmp_path: Path) -> None:
    """The provider refuses thinking that stands behind another prompt than it was made for."""

    def working(asked: ProviderCall) -> list[Any]:
        last = items_of(json.dumps(asked.body).encode(), asked.api)[-1]
        is_answered = "tool_result" in json.dumps(last)
        said: list[Any] = [{"thinking": "let me think " * 10}]
        return [*said, {"text": ANSWER} if is_answered else {"tool": "Bash", "args": {"command": "ls"}}]

    async def go() -> None:
        messages: list[Wire] = []
        budget = {"type": "adaptive"} if model != "claude-sonnet-4-5" else {"type": "enabled", "budget_tokens": 1024}
        fields = {"model": model, "max_tokens": 4000, "thinking": budget, "tools": [TOOLS["anthropic"]]}
        headers = {"x-api-key": "k", "anthropic-version": "2023-06-01"}
        provided = SimulatedProvider(working, ProviderSettings(window=WINDOW))
        async with (
            provided as provider,
            aiohttp.ClientSession() as http,
            gateway(tmp_path / "s.pagein", provider.url, io.StringIO()) as one,
        ):
            for turn in range(34):
                messages.append({"role": "user", "content": f"Question {turn}: " + "why is that so? " * 40})
                for _ in range(2):
                    body = {**fields, "messages": messages}
                    async with http.post(one.url + "/v1/messages", json=body, headers=headers) as answer:
                        reply: Wire = await answer.json()
                    assert answer.status == 200, reply
                    messages.append({"role": "assistant", "content": reply["content"]})
                    calls = [block["id"] for block in reply["content"] if block["type"] == "tool_use"]
                    results = [{"type": "tool_result", "tool_use_id": call, "content": "a.py\n" * 40} for call in calls]
                    messages += [{"role": "user", "content": results}] if results else []
            assert [record.refused for record in provider.requests if record.refused] == []
            assert len(json.dumps(messages)) > 3 * WINDOW * 3.5

    run(go())


def test_where_nothing_more_may_leave_that_is_said_once_and_the_request_goes_out(tmp_path: Path) -> None:
    async def go() -> None:
        log = io.StringIO()
        talk = Talk("anthropic")
        provided = SimulatedProvider(answered, ProviderSettings(window=WINDOW))
        async with (
            provided as provider,
            aiohttp.ClientSession() as http,
            gateway(tmp_path / "s.pagein", provider.url, log) as one,
        ):
            for _ in range(3):
                talk.user("all of it: " + "far too much " * 6000)
                status, reply = await sent(http, one.url, talk)
                assert status == 400
                assert "prompt is too long" in json.dumps(reply)
                talk.items.pop()
        # The gateway reports a call behind its answer, and has reported all when it ends.
        notices = [line for line in map(json.loads, log.getvalue().splitlines()) if line["event"] == "notice"]
        told = [line["text"] for line in notices if "nearly full" in line["text"]]
        assert len(told) == 1
        assert told[0] in one.board.notices

    run(go())
