"""Clients of the three wire formats that keep a history, run `Bash` and send back what they saw; and a gateway that offers recall."""

import io
import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import aiohttp
from tests.gateway.stream.test_recalls import BASH, OUTPUT, PREVIEWED, assembled
from tests.gateway.stream.test_recalls_openai import Chat, Responses

from pagein import wiring
from pagein.gateway.curation.engine_curator import EngineCurator, ToolTerms
from pagein.gateway.kill_switch import Switch
from pagein.gateway.pages.json_logs import logger_to
from pagein.gateway.server import Gateway, GatewayParts
from pagein.gateway.settings import GatewaySettings
from pagein.simulator import SimulatedProvider

MARK = {"cache_control": {"type": "ephemeral"}}


@dataclass
class Messages:
    """A client of Messages that marks its prompt and the end of its last message, as coding agents do."""

    url: str
    http: aiohttp.ClientSession
    stream: bool
    items: list[dict[str, Any]] = field(default_factory=lambda: [{"role": "user", "content": "build it"}])
    key = "messages"
    usage: dict[str, Any] = field(default_factory=dict)

    def body(self) -> dict[str, Any]:
        *before, last = self.items
        content = [{"type": "text", "text": last["content"]}] if isinstance(last["content"], str) else last["content"]
        marked = {**last, "content": [*content[:-1], {**content[-1], **MARK}]}
        system = [{"type": "text", "text": "You build. " * 300, **MARK}]
        more: dict[str, Any] = {"stream": True} if self.stream else {}
        thinks = any(one.get("type") == "thinking" for item in before for one in _blocks(item))
        more |= {"thinking": {"type": "enabled", "budget_tokens": 2000}} if thinks else {}
        head = {"model": "claude-sonnet-4-5", "max_tokens": 4000, "system": system, "tools": [BASH]}
        return {**head, "messages": [*before, marked], **more}

    async def turn(self) -> list[str]:
        headers = {"x-api-key": "k", "anthropic-version": "2023-06-01"}
        async with self.http.post(self.url + "/v1/messages", json=self.body(), headers=headers) as answer:
            assert answer.status == 200, await answer.text()
            if self.stream:
                frames = [frame for frame in (await answer.text()).split("\n\n") if frame]
                message = assembled([json.loads(frame.partition("data: ")[2]) for frame in frames])
            else:
                message = await answer.json()
        self.usage = message["usage"]
        self.items.append({"role": "assistant", "content": message["content"]})
        calls = [one for one in message["content"] if one["type"] == "tool_use"]
        if calls:
            results = [{"type": "tool_result", "tool_use_id": one["id"], "content": OUTPUT} for one in calls]
            self.items.append({"role": "user", "content": results})
        shown = ("text", "name")
        return [next(one[name] for name in shown if name in one) for one in message["content"] if "thinking" not in one]


Client = Messages | Chat | Responses
Kind = Callable[..., Client]
KINDS: list[Kind] = [Messages, Chat, Responses]
PATHS = {"Messages": "/v1/messages", "Chat": "/v1/chat/completions", "Responses": "/v1/responses"}


@dataclass
class Stage:
    """A client, a gateway and a provider, the gateway's store kept in a folder."""

    client: Client
    provider: SimulatedProvider
    gateway: Gateway

    def sent(self) -> list[list[dict[str, Any]]]:
        """The messages of each request that the provider got, cache marks aside."""
        return [unmarked(record.body[self.client.key]) for record in self.provider.requests]

    def calls_of(self, number: int) -> list[str]:
        """The results of ours in the last message of a request."""
        return [json.dumps(one) for one in self.sent()[number]]

    async def raw(self) -> tuple[int, str]:
        """One request, and the status and text that come back; raises where the answer breaks off."""
        path = PATHS[type(self.client).__name__]
        headers = {"x-api-key": "k", "anthropic-version": "2023-06-01"}
        async with self.client.http.post(self.client.url + path, json=self.client.body(), headers=headers) as answer:
            return answer.status, await answer.text()


@asynccontextmanager
async def gateway_on(
    provider: SimulatedProvider, folder: Path, *, recall: bool = True, recalls: int = 8, everything: bool = False
) -> AsyncIterator[Gateway]:
    url = provider.url
    settings = GatewaySettings(anthropic=url, openai=url, google=url, port=0, grace=2, budget=60, recalls=recalls)
    curator = EngineCurator(
        wiring.open(folder / "s.pagein", settings=PREVIEWED), recall=recall, tools=ToolTerms(everything=everything)
    )
    async with Gateway(
        settings, GatewayParts(curator, None, Switch(folder / "off", {}), logger_to(io.StringIO()))
    ) as gateway:
        yield gateway


@asynccontextmanager
async def stage(
    kind: Kind, script: object, folder: Path, *, stream: bool, recalls: int = 8, everything: bool = False
) -> AsyncIterator[Stage]:
    async with (
        SimulatedProvider(script) as provider,
        gateway_on(provider, folder, recalls=recalls, everything=everything) as gateway,
        aiohttp.ClientSession() as http,
    ):
        yield Stage(kind(gateway.url, http, stream), provider, gateway)
        assert 'kind="splice"' not in gateway.metrics.text().decode()
        assert [record.refused for record in provider.requests if record.refused] == []


def unmarked(items: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Messages without cache marks, and strings written out as what they are short for."""
    made = []
    for item in items:
        content = item.get("content")
        blocks = [{"type": "text", "text": content}] if isinstance(content, str) else content
        if isinstance(blocks, list):
            plain = [{name: value for name, value in one.items() if name != "cache_control"} for one in blocks]
            made.append({**item, "content": plain})
        else:
            made.append(item)
    return made


def _blocks(item: dict[str, Any]) -> list[dict[str, Any]]:
    return item["content"] if isinstance(item["content"], list) else []
