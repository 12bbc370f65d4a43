"""Questions to the provider why a request missed its cache: asked only where allowed, named rightly, journaled, never twice refused."""

import io
import json
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from tests.gateway.test_serve import conversation
from tests.gateway.upstreams import run, until

from pagein import wiring
from pagein.gateway.curation.engine_curator import EngineCurator
from pagein.gateway.curation.keepalive_requests import SystemClock
from pagein.gateway.kill_switch import Switch
from pagein.gateway.pages.journal_calls import JournalCall, summary_of
from pagein.gateway.pages.json_logs import logger_to
from pagein.gateway.server import Gateway, GatewayParts
from pagein.gateway.settings import GatewaySettings
from pagein.simulator import SimulatedProvider
from pagein.simulator.model_call import ProviderCall
from pagein.simulator.records import Record

MARK = {"cache_control": {"type": "ephemeral"}}
SYSTEM = "you fix builds " * 900
AUTOMATIC = {"cache_control": {"type": "ephemeral"}, "system": SYSTEM}


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))


def turn(number: int, system: str = SYSTEM, **more: object) -> dict[str, Any]:
    """A request of a conversation with this many turns of the user, cached up to its end."""
    messages: list[dict[str, Any]] = []
    for place in range(number):
        messages += [{"role": "user", "content": f"step {place} " * 400}, {"role": "assistant", "content": "done"}]
    messages[-1:] = []
    messages[-1] = {"role": "user", "content": [{"type": "text", "text": messages[-1]["content"], **MARK}]}
    return {"model": "claude-sonnet-4-5", "max_tokens": 64, "system": system, "messages": messages, **more}


@dataclass
class LateClock(SystemClock):
    """The machine's clock, so many seconds later."""

    later: float

    def now(self) -> float:
        return super().now() + self.later


def asked(
    folder: Path, bodies: list[dict[str, Any]], provider: SimulatedProvider, *, is_on: bool = True, later: float = 0.0
) -> tuple[list[JournalCall], list[str]]:
    """What was journaled, and the notices, of a conversation through a new gateway."""

    async def go() -> list[str]:
        settings = GatewaySettings(anthropic=provider.url, port=0, grace=2, budget=60, ask_cache_misses=is_on)
        curator = EngineCurator(wiring.open(folder / "s.pagein"), recall=False, names_answers=is_on)
        log = logger_to(io.StringIO())
        parts = GatewayParts(curator, None, Switch(folder / "off", {}), log, LateClock(later))
        async with Gateway(settings, parts) as gateway, aiohttp.ClientSession() as http:
            for count, body in enumerate(bodies, 1):
                headers = {"x-session-id": "s"}
                async with http.post(f"{gateway.url}/v1/messages", json=body, headers=headers) as said:
                    assert said.status == 200, await said.text()
                    await said.read()
                await until(lambda: sum(one["calls"] for one in gateway.board.sessions()) == count)  # noqa: B023
            return list(gateway.board.notices)

    folder.mkdir(exist_ok=True)
    notices = run(go())
    with closing(wiring.open_for_upkeep(folder / "s.pagein")) as store:
        (name,) = [one.name for one in store.sessions()]
        return list(summary_of(store.entries(name)).calls), notices


def done(_: ProviderCall) -> object:
    return {"text": "done"}


def question(record: Record) -> object:
    return record.body.get("diagnostics", "none")


def test_each_request_names_the_answer_before_and_the_provider_s_reason_is_journaled(tmp_path: Path) -> None:
    with SimulatedProvider(done) as provider:
        bodies = [turn(1), turn(2), turn(3, "other " * 900), turn(4, "other " * 900)]
        calls, notices = asked(tmp_path, bodies, provider)
        names = [question(one) for one in provider.requests]
    assert names[0] == {"previous_message_id": None}
    assert all(str(one["previous_message_id"]).startswith("msg_") for one in names[1:] if isinstance(one, dict))
    assert [call.told.split(",")[0] for call in calls] == ["", "", "system changed", ""]
    assert (calls[2].cause, calls[2].who) == ("system", "client")
    assert "tokens" in calls[2].told
    assert not notices


def test_the_next_process_names_the_answer_too_and_says_itself_what_the_pause_cost(tmp_path: Path) -> None:
    with SimulatedProvider(done) as provider:
        asked(tmp_path, [turn(1), turn(2)], provider)
        provider.advance(4000)
        calls, _ = asked(tmp_path, [turn(3)], provider, later=4000)
        changed, _ = asked(tmp_path, [turn(4, "other " * 900)], provider, later=4001)
        names = [question(one) for one in provider.requests]
    assert all(str(one["previous_message_id"]).startswith("msg_") for one in names[1:] if isinstance(one, dict))
    assert (calls[2].cause, calls[2].who, calls[2].told) == ("expired", "nobody", "")
    assert calls[2].shortfall > 1000
    assert (changed[3].cause, changed[3].told.split(",")[0]) == ("system", "system changed")


@pytest.mark.parametrize("stream", [False, True])
def test_nothing_is_asked_unless_the_user_allows_it_nor_where_the_client_asks(tmp_path: Path, *, stream: bool) -> None:
    with SimulatedProvider(done) as provider:
        asked(tmp_path / "off", [turn(1, stream=stream)], provider, is_on=False)
        asked(tmp_path / "own", [turn(1, stream=stream, diagnostics={"previous_message_id": None})], provider)
        assert question(provider.requests[0]) == "none"
        assert json.dumps(provider.requests[1].body).count("diagnostics") == 1


def test_a_provider_that_refuses_the_question_gets_the_call_without_it_and_is_asked_no_more(tmp_path: Path) -> None:
    def answer(call: ProviderCall) -> object:
        return {"error": 400, "times": 9} if "diagnostics" in call.body else {"text": "done"}

    with SimulatedProvider(answer) as provider:
        _, notices = asked(tmp_path, [turn(1), turn(2)], provider)
        asked(tmp_path, [turn(3)], provider)
        assert [question(one) != "none" for one in provider.requests] == [True, False, False, False]
    assert "refused to be asked" in notices[0]


def test_a_request_that_is_refused_for_another_reason_does_not_end_the_questions(tmp_path: Path) -> None:
    failed: list[ProviderCall] = []

    def answer(call: ProviderCall) -> object:
        if len(call.messages) > 2 and len(failed) < 2:
            failed.append(call)
            return {"error": 400, "times": 9}
        return {"text": "done"}

    with SimulatedProvider(answer) as provider, pytest.raises(AssertionError):
        asked(tmp_path, [turn(1), turn(2)], provider)
    assert ["diagnostics" in one.body for one in failed] == [True, False]
    assert not (tmp_path / "data" / "pagein" / "no-cache-questions").exists()


def test_a_loss_that_pagein_uses_for_an_epoch_is_still_explained(tmp_path: Path) -> None:
    with SimulatedProvider(done) as provider:
        asked(tmp_path, [conversation(turns, lines=160) | AUTOMATIC for turns in (4, 5)], provider)
        provider.advance(4000)
        calls, _ = asked(tmp_path, [conversation(6, lines=160) | AUTOMATIC], provider, later=4000)
    assert calls[-1].epoch == "cold cache"
    assert (calls[-1].cause, calls[-1].who) == ("expired", "nobody")
