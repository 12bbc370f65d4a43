"""Pauses are bridged by one request of ours, where the user asked for that; never at more than was saved, and never by a login."""

import asyncio
import io
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from tests.gateway.upstreams import run

from pagein import wiring
from pagein.engine import expected_reports
from pagein.gateway.curation.engine_curator import EngineCurator
from pagein.gateway.kill_switch import Switch, turn_off
from pagein.gateway.pages.journal_calls import summary_of
from pagein.gateway.pages.json_logs import logger_to
from pagein.gateway.server import Gateway, GatewayParts
from pagein.gateway.settings import GatewaySettings
from pagein.model.cache_notes import CacheVerdictNote
from pagein.simulator import ProviderSettings, SimulatedProvider

MODEL = "claude-sonnet-4-6"
_FRONT = "sk-" + "ant-"
KEY = _FRONT + "api03-nobody-may-ever-see-this-0123456789"
LOGIN = _FRONT + "oat01-somebodys-login-0123456789"
BASH = {"name": "Bash", "description": "run " * 400, "input_schema": {"type": "object", "properties": {"command": {}}}}
HOUR = {"type": "ephemeral", "ttl": "1h"}
MINUTES = {"type": "ephemeral"}
SYSTEM = "You are an agent. " * 900
LOOK: list[object] = [
    [{"tool": "Bash", "args": {"command": "make"}}],
    [{"text": "I have seen it."}],
    [{"text": "That is long."}],
]
OUTPUT = "\n".join(f"line {number} of what a build has to say" for number in range(8000))
TALK: list[object] = [[{"text": f"answer number {number}"}] for number in range(40)]


@dataclass(frozen=True)
class Sleeper:
    at: float
    done: asyncio.Future[None]
    task: asyncio.Task[Any] | None


class HandClock:
    """A clock that stands still until it is moved; who waits for its hour is woken by that."""

    def __init__(self) -> None:
        self.time = 1_790_000_000.0
        self.waiting: list[Sleeper] = []

    def now(self) -> float:
        return self.time

    async def sleep(self, seconds: float) -> None:
        sleeper = Sleeper(self.time + seconds, asyncio.get_running_loop().create_future(), asyncio.current_task())
        self.waiting.append(sleeper)
        await sleeper.done

    async def advance(self, seconds: float) -> None:
        until = self.time + seconds
        while due := [one for one in self.waiting if one.at <= until and not one.done.done()]:
            self.time = min(one.at for one in due)
            woken = [one for one in due if one.at == self.time]
            for one in woken:
                one.done.set_result(None)
            await asyncio.wait([one.task for one in woken if one.task is not None])  # what they do then is done
        self.time = until


@dataclass
class Agent:
    """An agent that marks its requests and goes on after pauses."""

    gateway: Gateway
    http: aiohttp.ClientSession
    mark: dict[str, str] = field(default_factory=lambda: HOUR)
    headers: dict[str, str] = field(default_factory=lambda: {"x-api-key": KEY})
    extra: dict[str, Any] = field(default_factory=dict)
    messages: list[dict[str, Any]] = field(default_factory=list)
    stream: bool = True

    def body(self) -> dict[str, Any]:
        *before, last = self.messages
        content = [*last["content"][:-1], last["content"][-1] | {"cache_control": self.mark}]
        return {
            "model": MODEL,
            "max_tokens": 4000,
            "tools": [BASH],
            "system": [{"type": "text", "text": SYSTEM, "cache_control": self.mark}],
            "messages": [*before, last | {"content": content}],
            "stream": self.stream,
            **self.extra,
        }

    async def looks(self) -> None:
        """A big output enters as a preview, and from now on there is something in hand; what is said then is held for five minutes alone."""
        shown = await self.says("look at the build")
        call = next(one["id"] for one in shown["content"] if one["type"] == "tool_use")
        result = {"type": "tool_result", "tool_use_id": call, "content": OUTPUT}
        self.messages.append({"role": "user", "content": [result]})
        await self.sends()
        await self.says("what is to be done: " + "a long list of things, " * 2000)

    async def says(self, text: str) -> dict[str, Any]:
        self.messages.append({"role": "user", "content": [{"type": "text", "text": text}]})
        return await self.sends()

    async def sends(self) -> dict[str, Any]:
        headers = {"anthropic-version": "2023-06-01", "x-session-id": "s1", **self.headers}
        async with self.http.post(self.gateway.url + "/v1/messages", json=self.body(), headers=headers) as answer:
            text = (await answer.read()).decode()
            assert answer.status == 200, text
        content: list[dict[str, Any]] = []
        for frame in filter(None, text.split("\n\n")):
            event = json.loads(frame.partition("data: ")[2])
            if event["type"] == "content_block_start":
                content.append(
                    dict(event["content_block"]) | ({"input": {}} if "input" in event["content_block"] else {})
                )
            if event["type"] == "content_block_delta" and "text" in event["delta"]:
                content[event["index"]]["text"] += event["delta"]["text"]
        self.messages.append({"role": "assistant", "content": content})
        relay = self.gateway._relay
        assert relay is not None
        await relay.idle.wait()
        await relay.wait_for_reports()  # what is told of a call is told after its end
        return {"content": content}


@dataclass
class Stage:
    provider: SimulatedProvider
    gateway: Gateway
    agent: Agent
    clock: HandClock
    log: io.StringIO
    folder: Path

    async def pause(self, seconds: float) -> None:
        await self.clock.advance(seconds)

    @property
    def pings(self) -> list[Any]:
        return [one for one in self.provider.requests if one.body and one.body.get("max_tokens") == 1]

    def figure(self, line: str) -> float:
        text = self.gateway.metrics.text().decode()
        return next((float(one.rpartition(" ")[2]) for one in text.splitlines() if one.startswith(line)), 0.0)


@asynccontextmanager
async def stage(folder: Path, script: object = None, **settings: object) -> AsyncIterator[Stage]:
    """A gateway with keep-alive requests, whose store knows from an earlier session that the provider keeps entries."""
    looks = settings.pop("looks", True)
    clock, log = HandClock(), io.StringIO()
    script = [*(LOOK if looks else ()), *(script if isinstance(script, list) else TALK)]
    async with SimulatedProvider(script, ProviderSettings(now=clock.now)) as provider:
        given: dict[str, Any] = {"keep_alive": True, "recall": True} | settings
        told = GatewaySettings(anthropic=provider.url, openai=provider.url, port=0, grace=2, budget=60, **given)
        engine = wiring.open(folder / "s.pagein")
        engine.evidence.add(CacheVerdictNote(MODEL, "keep_alive", held=True, at=0.0))
        curator = EngineCurator(engine, recall=told.recall)
        parts = GatewayParts(curator, None, Switch(folder / "off", {}), logger_to(log), clock)
        async with Gateway(told, parts) as gateway, aiohttp.ClientSession() as http:
            on = Stage(provider, gateway, Agent(gateway, http), clock, log, folder)
            if looks:
                await on.agent.looks()
                await on.pause(20)
            yield on
        assert [(one.refused, one.message) for one in provider.requests if one.refused] == []


def step(number: int, count: int) -> str:
    """What a person says before a call; before the last one so much that losing it would cost more than a keep-alive request."""
    return f"step {number} " + "of a long task " * (200 if number < count - 1 else 8000)


async def worked(on: Stage, pauses: int = 3, calls: int = 8) -> None:
    """A session with pauses of half an hour."""
    for _ in range(pauses):
        for number in range(calls):
            await on.agent.says(step(number, calls))
            await on.pause(20)
        await on.pause(1800)
    await on.agent.says("and the end")


def test_a_pause_is_bridged_by_one_request_and_the_bill_is_lower(tmp_path: Path) -> None:
    async def bill(name: str, *, keep_alive: bool) -> tuple[float, int, int]:
        folder = tmp_path / name
        folder.mkdir()
        async with stage(folder, keep_alive=keep_alive) as on:
            await worked(on)
            last = on.provider.requests[-1].usage
            assert last is not None
            return on.provider.bill().bit, len(on.pings), last.read

    async def scene() -> None:
        without, none, read = await bill("without", keep_alive=False)
        kept, pings, still_read = await bill("with", keep_alive=True)
        assert none == 0
        assert pings == 3  # each pause follows a long message that no hour's entry holds
        assert still_read >= read * 0.95
        assert kept < 0.95 * without

    run(scene())


def test_behind_the_pause_the_window_and_the_answer_are_read(tmp_path: Path) -> None:
    async def scene() -> None:
        async with stage(tmp_path) as on:
            await worked(on, pauses=1)
            (ping,) = on.pings
            before, after = on.provider.requests[-3], on.provider.requests[-1]
            assert ping.usage is not None
            assert before.usage is not None
            assert ping.usage.read >= before.usage.prompt - 10
            assert ping.usage.written == ping.usage.written_1h < 60
            assert after.usage is not None
            assert after.usage.read >= ping.usage.read + ping.usage.written
            assert "stream" not in ping.body or ping.body["stream"] is False
            assert {"tools", "system"} <= set(ping.body)
            assert before.body["system"][0]["cache_control"] == HOUR, (
                "all in front of the long message has the long TTL"
            )
            assert before.body["messages"][-2]["content"][-1]["cache_control"] == HOUR
            assert before.body["messages"][-1]["content"][-1]["cache_control"] == MINUTES

    run(scene())


def test_a_client_that_asks_for_five_minutes_is_kept_alive_once_it_came_back_from_a_pause(tmp_path: Path) -> None:
    async def scene() -> None:
        async with stage(tmp_path) as on:
            on.agent.mark = MINUTES
            # something has to be saved before anything is risked: outputs that enter as previews, say
            on.agent.messages.append({"role": "user", "content": [{"type": "text", "text": "go"}]})
            call = {"type": "tool_use", "id": "toolu_1", "name": "Bash", "input": {}}
            on.agent.messages.append({"role": "assistant", "content": [call]})
            output = "".join(f"line {number} of a long output\n" for number in range(4000))
            result = {"type": "tool_result", "tool_use_id": "toolu_1", "content": output}
            on.agent.messages.append({"role": "user", "content": [result]})
            await on.agent.sends()
            await worked(on, pauses=3, calls=8)
            assert on.provider.requests.index(on.pings[0]) > 12  # behind the first pause

    run(scene())


def test_pings_of_calls_that_wait_for_tools_are_whole_requests(tmp_path: Path) -> None:
    script = [*TALK[:6], [{"text": "now"}, {"tool": "Bash", "args": {}}, {"tool": "Bash", "args": {"a": 1}}], *TALK]

    async def scene() -> None:
        async with stage(tmp_path, script) as on:
            for number in range(7):
                await on.agent.says(step(number, 7))
            await on.pause(1000)
            (ping,) = on.pings
            results = ping.body["messages"][-1]["content"]
            assert [one["type"] for one in results] == ["tool_result", "tool_result"]
            calls = [one for one in on.agent.messages[-1]["content"] if one["type"] == "tool_use"]
            on.agent.messages.append(
                {
                    "role": "user",
                    "content": [{"type": "tool_result", "tool_use_id": one["id"], "content": "done"} for one in calls],
                }
            )
            for block, sent in zip(calls, [{}, {"a": 1}], strict=True):
                block["input"] = sent
            await on.agent.sends()
            last = on.provider.requests[-1].usage
            assert last is not None
            assert last.read >= ping.usage.prompt - 40

    run(scene())


def test_no_more_is_sent_than_the_caps_allow(tmp_path: Path) -> None:
    async def scene(**caps: int) -> None:
        folder = tmp_path / "-".join(caps)
        folder.mkdir()
        async with stage(folder, **caps) as on:
            await worked(on)
            assert len(on.pings) == 1
            # where none can be sent, nothing rests on it: the client's own lifetime holds
            assert on.provider.requests[-1].body["system"][0]["cache_control"] == HOUR

    run(scene(keep_alive_session=1))
    run(scene(keep_alive_hour=1, keep_alive_session=1))


def test_none_is_sent_beyond_what_they_may_cost(tmp_path: Path) -> None:
    async def scene() -> None:
        bills = []
        for name, asked in (("without", False), ("with", True)):
            (tmp_path / name).mkdir()
            async with stage(tmp_path / name, keep_alive=asked, keep_alive_hour_bit=100.0) as on:
                await worked(on)
                assert on.pings == []
                bills.append(on.provider.bill().bit)
        assert bills[1] == pytest.approx(bills[0])

    run(scene())


@pytest.mark.parametrize(
    ("headers", "extra", "settings"),
    [
        ({"authorization": f"Bearer {LOGIN}"}, {}, {"subscriptions": True}),
        ({}, {"thinking": {"type": "enabled", "budget_tokens": 2000}}, {}),
        ({"x-claude-code-agent-id": "a1", "x-claude-code-session-id": "c1"}, {}, {}),
        ({}, {}, {"keep_alive": False}),
        ({}, {"tools": []}, {}),
    ],
    ids=["a login", "a budget of thinking", "a sub-agent at its end", "not asked for", "no agent"],
)
def test_these_are_left_alone(
    tmp_path: Path, headers: dict[str, str], extra: dict[str, Any], settings: dict[str, Any]
) -> None:
    async def scene() -> None:
        async with stage(tmp_path, TALK if extra else [*LOOK, *TALK], looks=False, **settings) as on:
            on.agent.headers = ({} if "authorization" in headers else {"x-api-key": KEY}) | headers
            on.agent.extra = extra
            if not extra:
                await on.agent.looks()
            await worked(on, pauses=2)
            assert on.pings == []

    run(scene())


def test_nothing_is_sent_while_the_switch_is_off(tmp_path: Path) -> None:
    async def scene() -> None:
        async with stage(tmp_path) as on:
            for number in range(8):
                await on.agent.says(step(number, 8))
            turn_off(tmp_path / "off")
            await on.pause(1000)
            assert on.pings == []

    run(scene())


def test_a_request_that_comes_ends_the_pause(tmp_path: Path) -> None:
    async def scene() -> None:
        async with stage(tmp_path) as on:
            for number in range(12):
                await on.agent.says(f"step {number} " + "of a long task " * 200)
                await on.pause(270)
            assert on.pings == []

    run(scene())


def test_a_keep_alive_request_that_fails_harms_nothing(tmp_path: Path) -> None:
    script = [*TALK[:8], [{"error": 529}], *TALK]

    async def scene() -> None:
        async with stage(tmp_path, script) as on:
            for number in range(8):
                await on.agent.says(step(number, 8))
            await on.pause(1800)
            assert on.figure('pagein_keep_alives_total{result="refused"}') == 1
            with pytest.raises(AssertionError, match="overloaded"):  # the script fails whoever is next
                await on.agent.says("and the end")
            await on.agent.sends()
            assert on.provider.requests[-1].status == 200

    run(scene())


def test_what_was_spent_stands_in_figures_log_and_board_and_no_key_anywhere(tmp_path: Path) -> None:
    async def scene() -> None:
        async with stage(tmp_path) as on:
            await worked(on, pauses=1)
            (ping,) = on.pings
            assert on.figure('pagein_keep_alives_total{result="kept"}') == 1
            assert on.figure("pagein_keep_alive_bit_total") == pytest.approx(ping.bit)
            (session,) = on.gateway.board.sessions()
            assert session["keep_alives"] == 1
            assert session["keep_alive_cost"] == pytest.approx(ping.bit)
            assert session["cost"] == pytest.approx(on.provider.bill().bit)
            told = [json.loads(line) for line in on.log.getvalue().splitlines()]
            (line,) = [one for one in told if one["event"] == "keep_alive"]
            assert line["result"] == "kept"
            assert KEY not in on.log.getvalue()
        with closing(wiring.open_for_upkeep(tmp_path / "s.pagein")) as store:
            calls = summary_of(store.entries(session["name"])).calls
        assert sum(call.keeping for call in calls) == pytest.approx(ping.bit)
        assert sum(call.cost or 0.0 for call in calls) == pytest.approx(on.provider.bill().bit)

    run(scene())
    found = [one for one in tmp_path.rglob("*") if one.is_file()]
    assert found
    assert [one for one in found if KEY.encode() in one.read_bytes()] == []


def test_a_gateway_that_ends_sends_nothing_and_keeps_no_login(tmp_path: Path) -> None:
    async def scene() -> None:
        async with stage(tmp_path) as on:
            for number in range(8):
                await on.agent.says(step(number, 8))
            relay = on.gateway._relay
            assert relay is not None
            assert len(relay.keep_alive._pauses) == 1
            await on.gateway.drain(1)
            assert len(relay.keep_alive._pauses) == 0
            await on.pause(1000)
            assert on.pings == []

    run(scene())


def test_two_lines_of_a_conversation_leave_one_pause(tmp_path: Path) -> None:
    async def scene() -> None:
        async with stage(tmp_path) as on:
            await begin(on)
            on.agent.messages = on.agent.messages[:-3]
            await on.agent.says("another way " + "from here " * 200)
            assert on.gateway._relay is not None
            assert len(on.gateway._relay.keep_alive._pauses) == 1

    run(scene())


def test_nothing_is_sent_while_another_answer_of_the_conversation_streams(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(expected_reports, "_PATIENCE", 0.01)  # the client goes on with half of the answer
    slow: list[object] = [{"text": "this takes its time"}, {"delay": 0.1}]

    async def scene() -> None:
        async with stage(tmp_path, [*TALK[:7], slow, *TALK]) as on:
            for number in range(7):
                await on.agent.says(step(number, 8))
            relay = on.gateway._relay
            assert relay is not None
            headers = {"anthropic-version": "2023-06-01", "x-session-id": "s1", "x-api-key": KEY}
            on.agent.messages.append({"role": "user", "content": [{"type": "text", "text": "slowly"}]})
            async with on.agent.http.post(
                on.gateway.url + "/v1/messages", json=on.agent.body(), headers=headers
            ) as answer:
                on.clock.time += 1.0
                on.agent.messages += [
                    {"role": "assistant", "content": [{"type": "text", "text": "so far"}]},
                    {"role": "user", "content": [{"type": "text", "text": step(7, 8)}]},
                ]
                async with on.agent.http.post(
                    on.gateway.url + "/v1/messages", json=on.agent.body(), headers=headers
                ) as beside:
                    await beside.read()
                await relay.wait_for_reports()
                assert relay.under_way == 1, "the slow answer still streams"
                assert len(relay.keep_alive._pauses) == 0
                await answer.read()
            await relay.idle.wait()
            await relay.wait_for_reports()
            assert len(relay.keep_alive._pauses) == 1

    run(scene())


def test_nothing_is_sent_behind_a_failed_request_that_the_client_repeats(tmp_path: Path) -> None:
    async def scene() -> None:
        async with stage(tmp_path, [*TALK[:8], [{"error": 529}], *TALK]) as on:
            for number in range(8):
                await on.agent.says(step(number, 8))
            relay = on.gateway._relay
            assert relay is not None
            assert len(relay.keep_alive._pauses) == 1
            with pytest.raises(AssertionError, match="overloaded"):
                await on.agent.says("go on")
            await relay.wait_for_reports()
            assert len(relay.keep_alive._pauses) == 0
            await on.pause(1000)
            assert on.pings == []

    run(scene())


def test_a_restart_goes_on_with_the_lease(tmp_path: Path) -> None:
    async def go_on(on: Stage) -> list[object]:
        for _ in range(2):
            await on.agent.says("and on " + "with it " * 200)
        return [one.body["messages"][-1]["content"][-1]["cache_control"] for one in on.provider.requests[-2:]]

    async def scene() -> None:
        whole, broken = tmp_path / "whole", tmp_path / "broken"
        whole.mkdir()
        broken.mkdir()
        async with stage(whole) as on:
            await begin(on)
            on.clock.time += 10
            unbroken = await go_on(on)
        async with stage(broken) as on:
            await begin(on)
            talk, until = on.agent.messages, on.clock.time
        async with stage(broken) as on:
            on.clock.time = until + 10
            on.agent.messages = talk
            # what was saved, and what pauses would have cost, is known as without a restart
            assert await go_on(on) == unbroken == [MINUTES, MINUTES]

    run(scene())


async def begin(on: Stage) -> None:
    for number in range(8):
        await on.agent.says(f"step {number} " + "of a long task " * 200)
