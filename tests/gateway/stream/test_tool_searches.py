"""Tools that a workspace does not use are deferred, the model finds them again, and the client sees nothing of it."""

import io
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from tests.gateway.stream.test_recalls import Client, said
from tests.gateway.upstreams import run

from pagein import wiring
from pagein.engine.engine import Settings
from pagein.gateway.curation.engine_curator import EngineCurator
from pagein.gateway.kill_switch import Switch
from pagein.gateway.pages.json_logs import logger_to
from pagein.gateway.server import Gateway, GatewayParts
from pagein.gateway.settings import GatewaySettings
from pagein.policy.economics.tool_deferral import LEAST_CALLS
from pagein.simulator import SimulatedProvider
from pagein.testing.recorded_time import SetClock

MODEL = "claude-sonnet-4-5"
SEARCH = "tool_search_tool_regex"
CALL = {"tool": "Bash", "args": {"command": "make all"}}
CRON = {"tool": "CronCreate", "args": {"command": "noon"}}
WORK: list[object] = [*([CALL] for _ in range(LEAST_CALLS)), [{"text": "worked"}]]


def tool(name: str, words: int = 1) -> dict[str, Any]:
    schema = {"type": "object", "properties": {"command": {"type": "string"}}}
    return {"name": name, "description": f"what {name} does " * words, "input_schema": schema}


TOOLS = [tool("Bash", 300), tool("CronCreate", 900), tool("CronDelete", 900), tool("Workflow", 900)]
DEFERRED = ["CronCreate", "CronDelete", "Workflow"]


@dataclass
class Agent(Client):
    """An agent with tools of its own choice."""

    tools: tuple[dict[str, Any], ...] = tuple(TOOLS)
    more: tuple[tuple[str, Any], ...] = ()
    headers: tuple[tuple[str, str], ...] = ()

    async def turn(self) -> dict[str, Any]:
        body = {"model": MODEL, "max_tokens": 4000, "tools": list(self.tools), "messages": self.messages}
        body |= dict(self.more) | ({"stream": True} if self.stream else {})
        headers = {"x-api-key": "k", **dict(self.headers)}
        async with self.http.post(self.url + "/v1/messages", json=body, headers=headers) as answer:
            assert answer.status == 200, await answer.text()
            if not self.stream:
                return self.said(await answer.json())
            text = (await answer.read()).decode()
        self.events = [json.loads(one.partition("data: ")[2]) for one in text.split("\n\n") if one]
        from tests.gateway.stream.test_recalls import assembled

        return self.said(assembled(self.events))

    def said(self, answer: dict[str, Any]) -> dict[str, Any]:
        self.messages.append({"role": "assistant", "content": answer["content"]})
        calls = [block for block in answer["content"] if block["type"] == "tool_use"]
        results = [{"type": "tool_result", "tool_use_id": call["id"], "content": "done"} for call in calls]
        if results:
            self.messages.append({"role": "user", "content": results})
        return answer

    async def job(self) -> None:
        """Work until the model calls no more tools."""
        while (await self.turn())["stop_reason"] == "tool_use":
            pass


@dataclass
class Stage:
    """A provider, a gateway and a client of it. on: whether floor paging is on."""

    provider: SimulatedProvider
    gateway: Gateway
    http: aiohttp.ClientSession
    stream: bool
    clock: SetClock

    def agent(self, words: str, script: object, **more: Any) -> Agent:  # noqa: ANN401 -- fields of Agent
        """An agent that says these words, in a conversation of its own, with a script for the model."""
        asked = [{"role": "user", "content": f"{words} SCRIPT:{json.dumps(script)}"}]
        return Agent(self.gateway.url, self.http, self.stream, asked, **more)

    def tools(self, place: int = -1) -> list[dict[str, Any]]:
        """The tools of a request as the provider got it."""
        return list(self.provider.requests[place].body["tools"])

    def deferred(self, place: int = -1) -> list[str]:
        return [one["name"] for one in self.tools(place) if one.get("defer_loading")]


@asynccontextmanager
async def stage(tmp_path: Path, *, stream: bool = True, on: bool = True, recall: bool = True) -> AsyncIterator[Stage]:
    async with SimulatedProvider([["hi"]]) as provider:
        settings = GatewaySettings(anthropic=provider.url, openai=provider.url, port=0, grace=2, budget=60)
        engine = wiring.open(tmp_path / "s.pagein", settings=Settings(floor_paging="always" if on else "never"))
        curator = EngineCurator(engine, recall=recall)
        clock = SetClock()
        clock.set(1_790_000_000.0)
        parts = GatewayParts(curator, None, Switch(tmp_path / "off", {}), logger_to(io.StringIO()), clock=clock)
        async with Gateway(settings, parts) as gateway, aiohttp.ClientSession() as http:
            yield Stage(provider, gateway, http, stream, clock)
            assert b"pagein_failures_total{" not in gateway.metrics.text()
        assert [record.message for record in provider.requests if record.refused] == []


def test_a_tool_that_the_first_session_did_not_use_is_deferred_in_the_second(tmp_path: Path) -> None:
    async def go() -> None:
        async with stage(tmp_path) as at:
            await at.agent("first", WORK).job()
            assert at.deferred() == []
            await at.agent("second", WORK).job()
            assert at.deferred() == DEFERRED
            names = [one["name"] for one in at.tools()]
            assert names == [*(one["name"] for one in TOOLS), "peek", "search", SEARCH]
            begun = [one.usage for one in at.provider.requests if len(one.body["messages"]) == 1]
            assert begun[0] is not None
            assert begun[1] is not None
            assert begun[1].prompt < 0.5 * begun[0].prompt

    run(go())


def test_all_requests_of_a_session_defer_the_same_tools_and_read_the_same_prefix(tmp_path: Path) -> None:
    async def go() -> None:
        async with stage(tmp_path) as at:
            mark = {"cache_control": {"type": "ephemeral"}}
            await at.agent("first", WORK).job()
            before = len(at.provider.requests)
            agent = at.agent(
                "second", [*WORK[:3], [CRON], [CALL], [CRON], [{"text": "well"}]], more=tuple(mark.items())
            )
            await agent.job()
            calls = at.provider.requests[before:]
            assert len({json.dumps(one.body["tools"]) for one in calls}) == 1
            written = [one.usage.written for one in calls[1:] if one.usage is not None]
            assert sorted(written)[-2] < 100, "nothing but news, but for the definition that the search found"

    run(go())


@pytest.mark.parametrize("stream", [True, False])
def test_a_client_sees_no_search_and_the_provider_gets_it_back(tmp_path: Path, stream: bool) -> None:  # noqa: FBT001
    async def go() -> None:
        async with stage(tmp_path, stream=stream) as at:
            await at.agent("first", WORK).job()
            agent = at.agent("second", [[{"text": "I plan. "}, CRON], [CALL, CRON], [{"text": "planned"}]])
            answer = await agent.turn()
            assert said(answer) == ["I plan. ", "CronCreate"]
            assert answer["stop_reason"] == "tool_use"
            if stream:
                assert answer["usage"].get("cache_read_input_tokens", 0) == 0, "the prompt once, as the client's window"
            assert said(await agent.turn()) == ["Bash", "CronCreate"]
            assert said(await agent.turn()) == ["planned"]
            said_first = at.provider.requests[-1].body["messages"][1]["content"]
            kinds = [one["type"] for one in said_first]
            assert kinds == ["text", "server_tool_use", "tool_search_tool_result", "tool_use"]
            assert [one["type"] for one in at.provider.requests[-1].body["messages"][3]["content"]] == ["tool_use"] * 2

    run(go())


def test_a_tool_that_was_used_is_offered_again_in_the_next_session(tmp_path: Path) -> None:
    async def go() -> None:
        async with stage(tmp_path) as at:
            await at.agent("first", WORK).job()
            await at.agent("second", [[CRON], *WORK]).job()
            assert at.deferred() == DEFERRED, "frozen within the session"
            await at.agent("third", WORK).job()
            assert at.deferred() == [], "the cache still holds the front of the first session's prompt"
            at.clock.set(1_790_010_000.0)
            await at.agent("fourth", WORK).job()
            assert at.deferred() == ["CronDelete", "Workflow"]

    run(go())


def test_a_restarted_gateway_defers_what_it_deferred(tmp_path: Path) -> None:
    async def go() -> None:
        async with stage(tmp_path) as at:
            await at.agent("first", WORK).job()
            agent = at.agent("second", [[CRON], [CALL], [{"text": "well"}]])
            await agent.turn()
            tools, messages = at.tools(), agent.messages
        async with stage(tmp_path, on=False) as at:  # also where the setting was changed since
            again = Agent(at.gateway.url, at.http, stream=True, messages=messages)
            assert said(await again.turn()) == ["Bash"]
            assert at.tools() == tools
            assert "tool_search_tool_result" in str(at.provider.requests[-1].body["messages"])
            await at.agent("third", WORK).job()
            assert at.deferred() == []

    run(go())


def test_without_the_setting_and_for_others_nothing_is_deferred(tmp_path: Path) -> None:
    own = ({"type": "tool_search_tool_bm25_20251119", "name": "find"}, *TOOLS[:2], {**TOOLS[2], "defer_loading": True})
    searching = (*TOOLS, tool("ToolSearch"))
    examples = ({**TOOLS[0], "input_examples": [{"command": "x"}]}, *TOOLS[1:])
    forced = (("tool_choice", {"type": "tool", "name": "Workflow"}),)

    async def go() -> None:
        async with stage(tmp_path) as at:
            await at.agent("first", WORK).job()
            for agent in (
                at.agent("own", [[{"text": "well"}]], tools=own),
                at.agent("searching", [[{"text": "well"}]], tools=searching),
                at.agent("examples", [[{"text": "well"}]], tools=examples),
                at.agent("forced", [[{"text": "well"}]], more=forced),
            ):
                await agent.turn()
                assert SEARCH not in [one["name"] for one in at.tools()]
                assert at.deferred() == [one["name"] for one in agent.tools if one.get("defer_loading")]
            login = (("x-api-key", ""), ("Authorization", "Bearer sk-ant-oat01-abc"))
            await at.agent("login", [[{"text": "well"}]], headers=login).turn()
            assert at.tools() == TOOLS
        async with stage(tmp_path / "off", on=False) as at:
            await at.agent("first", WORK).job()
            await at.agent("second", WORK).job()
            assert at.deferred() == []

    (tmp_path / "off").mkdir()
    run(go())


def test_tools_are_deferred_without_recall_tools_too(tmp_path: Path) -> None:
    async def go() -> None:
        async with stage(tmp_path, recall=False) as at:
            await at.agent("first", WORK).job()
            agent = at.agent("second", [[CRON], [{"text": "well"}]])
            assert said(await agent.turn()) == ["CronCreate"]
            assert said(await agent.turn()) == ["well"]
            assert [one["name"] for one in at.tools()] == [*(one["name"] for one in TOOLS), SEARCH]

    run(go())


def test_what_the_client_does_to_its_tools_later_changes_no_choice(tmp_path: Path) -> None:
    lazy = {**tool("Late", 900), "defer_loading": True}

    async def go() -> None:
        async with stage(tmp_path) as at:
            await at.agent("first", WORK).job()
            agent = at.agent("second", [[CRON], [CALL], [CALL], [{"text": "well"}]])
            await agent.turn()
            agent.tools = (*TOOLS, lazy)
            await agent.turn()
            assert at.deferred() == [*DEFERRED, "Late"]
            agent.tools = (TOOLS[0], *TOOLS[2:])  # the tool that was found is gone
            agent.more = (("tool_choice", {"type": "tool", "name": "Workflow"}),)
            await agent.turn()
            assert at.deferred() == ["CronDelete"]

    run(go())
