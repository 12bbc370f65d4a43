"""The model recalls evicted content through the gateway, and the client sees one answer."""

import asyncio
import io
import json
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import aiohttp
from tests.gateway.upstreams import run

from pagein import wiring
from pagein.engine.engine import Settings
from pagein.gateway.curation.engine_curator import EngineCurator
from pagein.gateway.kill_switch import Switch
from pagein.gateway.pages.json_logs import logger_to
from pagein.gateway.server import Gateway, GatewayParts
from pagein.gateway.settings import GatewaySettings
from pagein.policy.eviction.residency import Residency
from pagein.simulator import SimulatedProvider

# previews whatever they cost: what is tested here is their recall
PREVIEWED = Settings(Residency(economics=None, batch_tokens=40_000))
BASH = {
    "name": "Bash",
    "description": "Run a command. " * 2800,  # as large as the prompt of an agent, which has the recall tools at once
    "input_schema": {"type": "object", "properties": {"command": {}}},
}
PEEK = {"tool": "peek", "args": {"id": "{{id}}", "line": 199, "lines": 2}}
CAPTURE = {"capture": {"id": 'peek\\("(pg-[0-9a-f-]+)"\\)'}}
CALL = {"tool": "Bash", "args": {"command": "make all"}}
OUTPUT = "".join(f"line {number} of what make said at length\n" for number in range(400))


@dataclass
class Client:
    """An agent that keeps a history, runs `Bash` and sends back what it saw."""

    url: str
    http: aiohttp.ClientSession
    stream: bool
    messages: list[dict[str, Any]] = field(default_factory=list)
    events: list[dict[str, Any]] = field(default_factory=list)

    async def turn(self) -> dict[str, Any]:
        body = {"model": "claude-sonnet-4-5", "max_tokens": 4000, "tools": [BASH], "messages": self.messages}
        if any(block.get("type") == "thinking" for one in self.messages for block in blocks_of(one)):
            body["thinking"] = {"type": "enabled", "budget_tokens": 2000}
        if self.stream:
            body["stream"] = True
        headers = {"x-api-key": "k", "anthropic-version": "2023-06-01", "Accept-Encoding": "gzip, br"}
        async with self.http.post(self.url + "/v1/messages", json=body, headers=headers) as answer:
            assert answer.status == 200, await answer.text()
            if not self.stream:
                return self.said(await answer.json())
            text = (await answer.read()).decode()
        frames = [frame for frame in text.split("\n\n") if frame]
        self.events = [json.loads(frame.partition("data: ")[2]) for frame in frames]
        return self.said(assembled(self.events))

    def said(self, answer: dict[str, Any]) -> dict[str, Any]:
        self.messages.append({"role": "assistant", "content": answer["content"]})
        calls = [block for block in answer["content"] if block["type"] == "tool_use"]
        results = [{"type": "tool_result", "tool_use_id": call["id"], "content": OUTPUT} for call in calls]
        if results:
            self.messages.append({"role": "user", "content": results})
        return answer


def blocks_of(message: dict[str, Any]) -> list[dict[str, Any]]:
    return message["content"] if isinstance(message["content"], list) else []


def assembled(events: list[dict[str, Any]]) -> dict[str, Any]:
    """A message out of a stream, as strictly as clients read it."""
    assert [one["type"] for one in events].count("message_start") == 1
    assert events[-1]["type"] == "message_stop"
    blocks: list[dict[str, Any]] = []
    for one in events:
        if one["type"] == "content_block_start":
            assert one["index"] == len(blocks)
            blocks.append(dict(one["content_block"]) | {"json": ""})
        elif one["type"] == "content_block_delta":
            block, delta = blocks[one["index"]], one["delta"]
            for name in ("text", "thinking", "signature"):
                if name in delta:
                    block[name] = block.get(name, "") + delta[name]
            block["json"] += delta.get("partial_json", "")
    for block in blocks:
        text = block.pop("json")
        if block["type"] == "tool_use":
            block["input"] = json.loads(text or "{}")
    (end,) = [one for one in events if one["type"] == "message_delta"]
    return {"content": blocks, "stop_reason": end["delta"]["stop_reason"], "usage": end["usage"]}


@asynccontextmanager
async def stage(
    script: object, tmp_path: Path, *, stream: bool, recall: bool = True
) -> AsyncIterator[tuple[Client, SimulatedProvider, Gateway]]:
    async with SimulatedProvider(script) as provider:
        settings = GatewaySettings(anthropic=provider.url, openai=provider.url, port=0, grace=2, budget=60)
        curator = EngineCurator(wiring.open(tmp_path / "s.pagein", settings=PREVIEWED), recall=recall)
        parts = GatewayParts(curator, None, Switch(tmp_path / "off", {}), logger_to(io.StringIO()))
        async with Gateway(settings, parts) as gateway, aiohttp.ClientSession() as http:
            client = Client(gateway.url, http, stream, [{"role": "user", "content": "build it"}])
            yield client, provider, gateway
        assert [record.refused for record in provider.requests if record.refused] == []


def said(answer: dict[str, Any]) -> list[str]:
    return [block.get("text") or block.get("thinking") or block.get("name") for block in answer["content"]]


ONE: list[object] = [
    [CALL],
    [CAPTURE, {"text": "I must look again. "}, PEEK],
    [{"text": "It said what I thought."}],
    [{"text": "And all is well."}],
]


def one_recall(tmp_path: Path, *, stream: bool) -> None:
    async def go() -> None:
        async with stage(ONE, tmp_path, stream=stream) as (client, provider, gateway):
            assert said(await client.turn()) == ["Bash"]
            answer = await client.turn()
            assert said(answer) == ["I must look again. ", "It said what I thought."]
            assert answer["stop_reason"] == "end_turn"
            calls = [record for record in provider.requests if record.path.startswith("/v1/messages")]
            assert len(calls) == 3
            recalled = calls[2].body["messages"][-1]["content"][0]
            assert "line 198 of what make said" in recalled["content"]
            assert "is_error" not in recalled
            # the client goes on with what it saw; the provider gets what was said, so its cache holds
            client.messages.append({"role": "user", "content": "go on"})
            assert said(await client.turn()) == ["And all is well."]
            before, after = (record.body["messages"] for record in (calls[2], provider.requests[-1]))
            assert after[: len(before)] == before
            assert [block["type"] for block in after[len(before)]["content"]] == ["text"]
            tools = [[tool["name"] for tool in record.body["tools"]] for record in provider.requests]
            assert tools == [["Bash", "peek", "search"]] * 4
            assert gateway.metrics.text().count(b'kind="splice"') == 0

    run(go())


def test_a_recall_is_answered_within_one_streamed_answer(tmp_path: Path) -> None:
    one_recall(tmp_path, stream=True)


def test_a_recall_is_answered_within_one_answer_that_is_no_stream(tmp_path: Path) -> None:
    one_recall(tmp_path, stream=False)


def test_what_an_edit_quotes_comes_back_with_its_surroundings_in_one_round(tmp_path: Path) -> None:
    quote = "line 200 of what make said"
    script = [[CALL], [CAPTURE, {"tool": "peek", "args": {"id": "{{id}}", "around": quote}}], [{"text": "I see."}]]

    async def go() -> None:
        async with stage(script, tmp_path, stream=True) as (client, provider, _):
            await client.turn()
            assert said(await client.turn()) == ["I see."]
            offered = {tool["name"]: tool for tool in provider.requests[-1].body["tools"]}
            assert "around" in offered["peek"]["input_schema"]["properties"]
            shown = provider.requests[-1].body["messages"][-1]["content"][0]["content"]
            assert shown.startswith("line 180 of what make said")
            assert quote in shown
            assert "line 221 of" not in shown

    run(go())


def test_a_recall_beside_a_call_of_the_clients_waits_for_the_client(tmp_path: Path) -> None:
    script = [[CALL], [CAPTURE, {"text": "both"}, PEEK, CALL], [{"text": "done"}]]

    async def go(*, stream: bool) -> None:
        folder = tmp_path / str(stream)
        folder.mkdir()
        async with stage(script, folder, stream=stream) as (client, provider, _):
            await client.turn()
            answer = await client.turn()
            assert said(answer) == ["both", "Bash"]
            assert answer["stop_reason"] == "tool_use"
            assert said(await client.turn()) == ["done"]
            *_, assistant, user = provider.requests[-1].body["messages"]
            assert [block.get("name", block["type"]) for block in assistant["content"]] == ["text", "peek", "Bash"]
            assert {block["tool_use_id"] for block in user["content"]} == {
                block["id"] for block in assistant["content"] if block["type"] == "tool_use"
            }

    run(go(stream=True))
    run(go(stream=False))


def test_thinking_that_is_bound_to_its_prefix_survives_a_recall(tmp_path: Path) -> None:
    script = [
        [{"thinking": "first make"}, CALL],
        [CAPTURE, {"thinking": "what was it"}, PEEK],
        [{"thinking": "aha"}, CALL],
        [{"text": "done"}],
    ]

    async def go(*, stream: bool) -> None:
        folder = tmp_path / str(stream)
        folder.mkdir()
        async with stage(script, folder, stream=stream) as (client, _, __):
            await client.turn()
            assert said(await client.turn()) == ["what was it", "aha", "Bash"]
            assert said(await client.turn()) == ["done"]

    run(go(stream=True))
    run(go(stream=False))


def test_another_conversation_recalls_nothing_of_this_one(tmp_path: Path) -> None:
    async def go() -> None:
        async with stage([[CALL], [{"text": "kept"}]], tmp_path, stream=True) as (client, provider, _):
            await client.turn()
            await client.turn()
            (name,) = set(re.findall(r"peek\(\\+\"(pg-[0-9a-f-]+)", json.dumps(provider.requests[-1].body)))
            script = [[{"tool": "peek", "args": {"id": name}}], [{"text": "nothing there"}]]
            asked = [{"role": "user", "content": f"SCRIPT:{json.dumps(script)}"}]
            other = Client(client.url, client.http, stream=True, messages=asked)
            assert said(await other.turn()) == ["nothing there"]
            (result,) = provider.requests[-1].body["messages"][-1]["content"]
            assert result["is_error"]
            assert "not found" in result["content"]
            assert "what make said" not in str(result)

    run(go())


def test_a_model_may_recall_several_times_and_in_parallel(tmp_path: Path) -> None:
    search = {"tool": "search", "args": {"pattern": "line 321 of"}}
    script = [[CALL], [CAPTURE, PEEK, search], [CAPTURE, PEEK], [{"text": "done"}]]

    async def go() -> None:
        async with stage(script, tmp_path, stream=True) as (client, provider, _):
            await client.turn()
            assert said(await client.turn()) == ["done"]
            results = provider.requests[-1].body["messages"][-3]["content"]
            assert ["line 198" in results[0]["content"], "Found 1 match" in results[1]["content"]] == [True, True]

    run(go())


def test_what_was_said_before_a_recall_passes_before_it_is_answered(tmp_path: Path) -> None:
    script = [[CALL], [CAPTURE, {"text": "I must look again. "}, PEEK], [{"wait": 1.0}, {"text": "late"}]]

    async def go() -> None:
        async with stage(script, tmp_path, stream=True) as (client, _, __):
            await client.turn()
            body = {"model": "claude-sonnet-4-5", "max_tokens": 9, "tools": [BASH], "stream": True}
            loop, text, early = asyncio.get_running_loop(), b"", 0.0
            began = loop.time()
            async with client.http.post(client.url + "/v1/messages", json=body | {"messages": client.messages}) as got:
                while part := await got.content.readany():
                    text += part
                    if b"again" in text and not early:
                        early = loop.time() - began
            assert 0 < early < 0.8 < loop.time() - began
            assert b"late" in text

    run(go())


def test_a_provider_that_fails_in_the_middle_of_a_recall_is_told_as_an_error(tmp_path: Path) -> None:
    script = [[CALL], [CAPTURE, {"text": "look"}, PEEK], [{"error": 529, "times": 0}]]

    async def go() -> None:
        async with stage(script, tmp_path, stream=True) as (client, _, __):
            await client.turn()
            body = {"model": "claude-sonnet-4-5", "max_tokens": 9, "tools": [BASH], "stream": True}
            async with client.http.post(client.url + "/v1/messages", json=body | {"messages": client.messages}) as got:
                text = await got.text()
            assert "overloaded_error" in text
            assert "message_stop" not in text

    run(go())


def test_tools_are_not_offered_where_they_are_there_or_nobody_offers_any(tmp_path: Path) -> None:
    async def asked(client: Client, tools: list[dict[str, Any]] | None, provider: SimulatedProvider) -> object:
        body: dict[str, Any] = {"model": "claude-sonnet-4-5", "max_tokens": 9, "messages": client.messages}
        if tools is not None:
            body["tools"] = tools
        async with client.http.post(client.url + "/v1/messages", json=body) as answer:
            assert answer.status == 200
        return provider.requests[-1].body.get("tools")

    async def go() -> None:
        by_mcp = [{**BASH, "name": "mcp__pagein__peek"}]
        async with stage([[{"text": "x"}]] * 3, tmp_path, stream=False) as (client, provider, _):
            assert await asked(client, None, provider) is None
            assert await asked(client, by_mcp, provider) == by_mcp
        (tmp_path / "none").mkdir()
        async with stage([[{"text": "x"}]] * 3, tmp_path / "none", stream=False, recall=False) as (client, provider, _):
            assert await asked(client, [BASH], provider) == [BASH]

    run(go())
