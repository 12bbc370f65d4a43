import asyncio
from collections.abc import Callable

import aiohttp
import pytest
from tests.simulator.raw_clients import APIS, Heard, ask, begun, talk

from pagein.providers.validity import Api
from pagein.simulator import Record, SimulatedProvider

TEXT = "words that take a few events to stream"


def asked(api: Api, script: object, times: int = 1, *, stream: bool = False) -> tuple[list[Heard], list[Record]]:
    async def converse(provider: SimulatedProvider, session: aiohttp.ClientSession) -> tuple[list[Heard], list[Record]]:
        heard = [await ask(session, provider.url, api, begun(api, "go", stream=stream)) for _ in range(times)]
        return heard, provider.requests

    return talk(script, converse)


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("api", APIS)
@pytest.mark.parametrize("status", [400, 429, 500, 529])
def test_a_turn_fails_as_it_is_told_and_then_answers(api: Api, status: int, *, stream: bool) -> None:
    turn = [{"text": TEXT}, {"error": status, "retry_after": 2, "times": 2}]
    heard, records = asked(api, [turn], 3, stream=stream)
    assert [one.status for one in heard] == [status, status, 200]
    assert [one.headers.get("retry-after") for one in heard] == ["2", "2", None]
    assert [record.outcome for record in records] == ["failed", "failed", "answered"]
    assert [record.usage is None for record in records] == [True, True, False]
    assert heard[0].body["error"]["message"]


@pytest.mark.parametrize(
    ("api", "status", "kind"),
    [
        ("anthropic", 429, "rate_limit_error"),
        ("anthropic", 529, "overloaded_error"),
        ("anthropic", 400, "invalid_request_error"),
        ("anthropic", 502, "api_error"),
        ("openai_chat", 429, "requests"),
        ("openai_responses", 500, "server_error"),
    ],
)
def test_an_error_has_the_type_that_its_status_has_there(api: Api, status: int, kind: str) -> None:
    assert asked(api, [[{"error": status}]])[0][0].body["error"]["type"] == kind


def test_an_error_may_have_words_of_its_own() -> None:
    full = {"error": 400, "message": "prompt is too long: 210000 tokens > 200000 maximum"}
    assert asked("anthropic", [[full]])[0][0].body["error"]["message"] == full["message"]
    code = {"error": 400, "kind": "context_length_exceeded", "message": "too long"}
    assert asked("openai_chat", [[code]])[0][0].body["error"]["code"] == "context_length_exceeded"


def test_an_error_without_an_end_fails_every_time() -> None:
    heard, _ = asked("anthropic", [[{"error": 529, "times": 0}]], 4)
    assert [one.status for one in heard] == [529] * 4


def test_failures_are_counted_for_each_request_alone() -> None:
    async def converse(provider: SimulatedProvider, session: aiohttp.ClientSession) -> list[int]:
        bodies = [begun("anthropic", "one"), begun("anthropic", "two")]
        bodies.append({**bodies[0], "messages": [{"role": "user", "content": [{"type": "text", "text": "one"}]}]})
        return [(await ask(session, provider.url, "anthropic", body)).status for body in bodies]

    # the third is the first, written in another way: a client that tries again
    assert talk([[{"text": TEXT}, {"error": 429}]], converse) == [429, 429, 200]


@pytest.mark.parametrize("api", APIS)
def test_a_stream_breaks_behind_the_events_that_it_was_told_to_send(api: Api) -> None:
    (broken, whole), records = asked(api, [[{"text": TEXT}, {"break": 4}]], 2, stream=True)
    assert (broken.status, broken.broken, len(broken.events)) == (200, True, 4)
    assert not whole.broken
    assert len(whole.events) > 4
    assert [record.outcome for record in records] == ["broken", "answered"]
    # what was sent had reached the model, and is paid for
    assert all(record.usage is not None for record in records)


@pytest.mark.parametrize("stream", [False, True])
def test_a_connection_may_end_before_any_answer(*, stream: bool) -> None:
    async def converse(provider: SimulatedProvider, session: aiohttp.ClientSession) -> list[Record]:
        with pytest.raises(aiohttp.ServerDisconnectedError):
            # asked over a connection of its own: a client tries again by itself where an old one is closed
            await ask(session, provider.url, "anthropic", begun("anthropic", "go", stream=stream))
        return provider.requests

    assert talk([[{"text": TEXT}, {"break": None}]], converse)[-1].outcome == "broken"


@pytest.mark.parametrize(("api", "name"), [("anthropic", "error"), ("openai_chat", ""), ("openai_responses", "error")])
def test_an_error_may_come_in_the_middle_of_a_stream(api: Api, name: str) -> None:
    turn = [{"text": TEXT}, {"error": 529, "after": 3, "message": "Overloaded"}]
    (heard,), records = asked(api, [turn], stream=True)
    assert (heard.status, heard.broken, len(heard.events)) == (200, False, 4)
    last = heard.events[-1]
    assert heard.names[-1] == name
    assert last.get("error", last)["message"] == "Overloaded"
    assert records[-1].outcome == "broken"


async def until(true: Callable[[], bool]) -> None:
    for _ in range(12_000):
        if true():
            return
        await asyncio.sleep(0.01)
    raise AssertionError("it never came true")


def test_a_client_that_goes_away_ends_what_was_begun_for_it() -> None:
    async def converse(provider: SimulatedProvider, _session: aiohttp.ClientSession) -> list[Record]:
        async with aiohttp.ClientSession() as leaving:
            body = begun("anthropic", "go", stream=True)
            async with leaving.post(provider.url + "/v1/messages", json=body) as answer:
                await answer.content.readline()
        await until(lambda: provider.requests[-1].outcome != "pending")
        return provider.requests

    records = talk([[{"text": TEXT * 50}, {"delay": 0.02}]], converse)
    assert [record.outcome for record in records] == ["gone"]


def test_a_provider_ends_while_it_is_asked() -> None:
    async def both() -> float:
        clock = asyncio.get_running_loop().time
        began = clock()
        async with aiohttp.ClientSession() as session:
            async with SimulatedProvider([[{"text": TEXT}, {"wait": 60}]]) as provider:
                asking = asyncio.create_task(ask(session, provider.url, "anthropic", begun("anthropic", "go")))
                await until(lambda: bool(provider.requests))
            with pytest.raises(aiohttp.ClientError):
                await asking
        return clock() - began

    assert asyncio.run(both()) < 20
