"""The same over OpenAI's formats: the model recalls, and the client sees one answer."""

import io
import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from tests.gateway.stream.test_recalls import BASH, CALL, CAPTURE, OUTPUT, PEEK, PREVIEWED
from tests.gateway.upstreams import run

from pagein import wiring
from pagein.gateway.curation.engine_curator import EngineCurator
from pagein.gateway.kill_switch import Switch
from pagein.gateway.pages.json_logs import logger_to
from pagein.gateway.server import Gateway, GatewayParts
from pagein.gateway.settings import GatewaySettings
from pagein.simulator import SimulatedProvider

PARAMETERS = {"type": "object", "properties": {"command": {}}}


@dataclass
class Chat:
    """A client of Chat Completions."""

    url: str
    http: aiohttp.ClientSession
    stream: bool
    items: list[dict[str, Any]] = field(default_factory=lambda: [{"role": "user", "content": "build it"}])
    raw: str = ""
    key = "messages"

    def body(self) -> dict[str, Any]:
        tools = [
            {
                "type": "function",
                "function": {"name": "Bash", "description": BASH["description"], "parameters": PARAMETERS},
            }
        ]
        more = {"stream": True, "stream_options": {"include_usage": True}} if self.stream else {}
        return {"model": "gpt-5.1", "messages": self.items, "tools": tools, **more}

    async def turn(self) -> list[str]:
        async with self.http.post(self.url + "/v1/chat/completions", json=self.body()) as answer:
            assert answer.status == 200, await answer.text()
            message = (
                self.assembled(await answer.text()) if self.stream else (await answer.json())["choices"][0]["message"]
            )
        self.items.append({name: one for name, one in message.items() if name != "refusal"})
        for call in message.get("tool_calls", ()):
            self.items.append({"role": "tool", "tool_call_id": call["id"], "content": OUTPUT})
        return [message["content"] or "", *(call["function"]["name"] for call in message.get("tool_calls", ()))]

    def assembled(self, text: str) -> dict[str, Any]:
        self.raw = text
        frames = [frame.removeprefix("data: ") for frame in text.split("\n\n") if frame]
        assert frames[-1] == "[DONE]"
        chunks = [json.loads(frame) for frame in frames[:-1]]
        stops = [one["choices"][0]["finish_reason"] for one in chunks if one["choices"]]
        assert [stop for stop in stops if stop] == [stops[-1]]
        assert [bool(one["choices"]) for one in chunks] == [True] * (len(chunks) - 1) + [False]
        said: dict[str, Any] = {"role": "assistant", "content": ""}
        calls: list[dict[str, Any]] = []
        for delta in (one["choices"][0]["delta"] for one in chunks[:-1]):
            said["content"] += delta.get("content") or ""
            for call in delta.get("tool_calls", ()):
                if call["index"] == len(calls):
                    calls.append({"id": call["id"], "type": "function", "function": dict(call["function"])})
                else:
                    calls[call["index"]]["function"]["arguments"] += call["function"]["arguments"]
        assert stops[-1] == ("tool_calls" if calls else "stop")
        return said | ({"tool_calls": calls} if calls else {})


@dataclass
class Responses:
    """A client of Responses, with items that it sends back."""

    url: str
    http: aiohttp.ClientSession
    stream: bool
    items: list[dict[str, Any]] = field(default_factory=lambda: [{"role": "user", "content": "build it"}])
    key = "input"

    def body(self) -> dict[str, Any]:
        tools = [
            {
                "type": "function",
                "name": "Bash",
                "description": BASH["description"],
                "parameters": PARAMETERS,
                "strict": False,
            }
        ]
        more = {"stream": True} if self.stream else {}
        include = ["reasoning.encrypted_content"]
        return {"model": "gpt-5.1", "input": self.items, "tools": tools, "store": False, "include": include, **more}

    async def turn(self) -> list[str]:
        async with self.http.post(self.url + "/v1/responses", json=self.body()) as answer:
            assert answer.status == 200, await answer.text()
            response = self.assembled(await answer.text()) if self.stream else await answer.json()
        self.items += response["output"]
        for item in response["output"]:
            if item["type"] == "function_call":
                self.items.append({"type": "function_call_output", "call_id": item["call_id"], "output": OUTPUT})
        said = {"message": lambda one: one["content"][0]["text"], "function_call": lambda one: one["name"]}
        return [said[one["type"]](one) for one in response["output"] if one["type"] in said]

    def assembled(self, text: str) -> dict[str, Any]:
        events = [json.loads(frame.partition("data: ")[2]) for frame in text.split("\n\n") if frame]
        assert [one["sequence_number"] for one in events] == list(range(len(events)))
        assert [one["type"] for one in events].count("response.created") == 1
        done = [one for one in events if one["type"] == "response.output_item.done"]
        assert [one["output_index"] for one in done] == list(range(len(done)))
        response: dict[str, Any] = events[-1]["response"]
        assert response["output"] == [one["item"] for one in done]
        return response


CLIENTS: list[Callable[..., Chat | Responses]] = [Chat, Responses]


@asynccontextmanager
async def stage(
    kind: Callable[..., Chat | Responses], script: object, folder: Path, *, stream: bool
) -> AsyncIterator[tuple[Chat | Responses, SimulatedProvider]]:
    async with SimulatedProvider(script) as provider:
        settings = GatewaySettings(anthropic=provider.url, openai=provider.url, port=0, grace=2, budget=60)
        curator = EngineCurator(wiring.open(folder / "s.pagein", settings=PREVIEWED))
        parts = GatewayParts(curator, None, Switch(folder / "off", {}), logger_to(io.StringIO()))
        async with Gateway(settings, parts) as gateway, aiohttp.ClientSession() as http:
            yield kind(gateway.url, http, stream), provider
            assert gateway.metrics.text().count(b'kind="splice"') == 0
        assert [record.refused for record in provider.requests if record.refused] == []


def names(body: dict[str, Any]) -> list[str]:
    return [one.get("function", one)["name"] for one in body["tools"]]


@pytest.mark.parametrize("kind", CLIENTS)
@pytest.mark.parametrize("stream", [True, False], ids=["stream", "whole"])
def test_a_recall_is_answered_within_one_answer(
    kind: Callable[..., Chat | Responses], stream: object, tmp_path: Path
) -> None:
    script: list[object] = [
        [CALL],
        [CAPTURE, {"text": "I must look again. "}, PEEK],
        [{"text": "It said what I thought."}],
        [{"text": "And all is well."}],
    ]

    async def go() -> None:
        async with stage(kind, script, tmp_path, stream=bool(stream)) as (client, provider):
            assert "Bash" in await client.turn()
            assert "".join(await client.turn()) == "I must look again. It said what I thought."
            assert len(provider.requests) == 3
            assert "line 198 of what make said" in json.dumps(provider.requests[2].body[client.key][-1])
            client.items.append({"role": "user", "content": "go on"})
            assert "".join(await client.turn()) == "And all is well."
            before, after = (record.body[client.key] for record in (provider.requests[2], provider.requests[3]))
            assert after[: len(before)] == before
            assert [names(record.body) for record in provider.requests] == [["Bash", "peek", "search"]] * 4

    run(go())


@pytest.mark.parametrize("kind", CLIENTS)
@pytest.mark.parametrize("stream", [True, False], ids=["stream", "whole"])
def test_a_recall_beside_a_call_of_the_clients_waits_for_the_client(
    kind: Callable[..., Chat | Responses], stream: object, tmp_path: Path
) -> None:
    script: list[object] = [[CALL], [CAPTURE, {"text": "both"}, PEEK, CALL], [{"text": "done"}]]

    async def go() -> None:
        async with stage(kind, script, tmp_path, stream=bool(stream)) as (client, provider):
            await client.turn()
            assert await client.turn() == ["both", "Bash"]
            assert "".join(await client.turn()) == "done"
            sent = json.dumps(provider.requests[-1].body[client.key])
            assert '"peek"' in sent
            assert "line 198 of what make said" in sent

    run(go())


@pytest.mark.parametrize("kind", CLIENTS)
def test_an_answer_without_a_recall_passes_as_the_very_bytes_it_came_as(
    kind: Callable[..., Chat | Responses], tmp_path: Path
) -> None:
    async def text(url: str, client: Chat | Responses) -> bytes:
        path = "/v1/chat/completions" if client.key == "messages" else "/v1/responses"
        async with client.http.post(url + path, json=client.body()) as answer:
            return await answer.read()

    async def go() -> None:
        async with stage(kind, [[{"text": "plain words"}, CALL]], tmp_path, stream=True) as (client, provider):
            through = await text(client.url, client)
            tools = provider.requests[-1].body["tools"]
            body = client.body() | {"tools": tools}
            path = "/v1/chat/completions" if client.key == "messages" else "/v1/responses"
            async with client.http.post(provider.url + path, json=body) as answer:
                direct = await answer.read()
            assert _still(through) == _still(direct)

    run(go())


def _still(text: bytes) -> list[str]:
    """The shape of a stream, without ids and times."""
    return [line.partition(b":")[0].decode() for line in text.split(b"\n")]
