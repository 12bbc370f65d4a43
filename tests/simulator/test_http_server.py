import asyncio
import json
import threading
from pathlib import Path
from typing import Any
from urllib.request import Request, urlopen

import aiohttp
import pytest
from tests.simulator.raw_clients import APIS, PATHS, Wire, ask, begun, job, talk

from pagein.errors import BadInput
from pagein.providers.validity import Api
from pagein.simulator import ProviderCall, ProviderSettings, Say, Script, ScriptCall, ScriptTurn, SimulatedProvider


def test_many_conversations_at_once_each_get_their_own_turns() -> None:
    async def converse(provider: SimulatedProvider, session: aiohttp.ClientSession) -> list[list[str]]:
        def prompt(number: int) -> str:
            steps = [[{"text": f"{number}.{step}"}, {"tool": "read", "args": {}}] for step in range(number % 4)]
            return "SCRIPT:" + json.dumps([*steps, [{"text": f"end {number}"}]])

        jobs = [
            job(session, provider.url, APIS[number % 3], prompt(number), stream=number % 2 == 0) for number in range(40)
        ]
        return [words for _, words in await asyncio.gather(*jobs)]

    for number, words in enumerate(talk(None, converse)):
        assert words == [*(f"{number}.{step}" for step in range(number % 4)), f"end {number}"]


def test_ids_are_unique_among_all_answers() -> None:
    async def converse(provider: SimulatedProvider, session: aiohttp.ClientSession) -> list[str]:
        body = begun("anthropic", "go")
        heard = [await ask(session, provider.url, "anthropic", body) for _ in range(5)]
        return [one.body["id"] for one in heard] + [one.body["content"][0]["id"] for one in heard]

    ids = talk(lambda _: [{"tool": "read", "args": {}}], converse)
    assert len(set(ids)) == len(ids)


def post(url: str, body: Wire, **headers: str) -> Wire:
    told = {"Content-Type": "application/json", **headers}
    request = Request(url, json.dumps(body).encode(), told)  # noqa: S310 - our own
    with urlopen(request, timeout=120) as answer:  # noqa: S310 - our own
        found: Wire = json.loads(answer.read())
    return found


def get(url: str) -> Wire:
    with urlopen(url, timeout=120) as answer:  # noqa: S310 - our own
        found: Wire = json.loads(answer.read())
    return found


def test_it_runs_in_a_thread_of_its_own_and_leaves_none() -> None:
    before = threading.active_count()
    with SimulatedProvider([["hello"]]) as provider:
        body = post(provider.url + "/v1/messages", begun("anthropic", "hi"))
        assert body["content"] == [{"type": "text", "text": "hello"}]
        assert [record.outcome for record in provider.requests] == ["answered"]
        assert provider.bill().requests == 1
        address = provider.url
    assert threading.active_count() == before
    with pytest.raises(OSError, match=r"refused|reset"):
        post(address + "/v1/messages", begun("anthropic", "hi"))


def test_an_address_that_is_taken_is_an_error_and_leaves_no_thread() -> None:
    before = threading.active_count()
    with SimulatedProvider() as provider:
        port = int(provider.url.rpartition(":")[2])
        with pytest.raises(OSError, match="in use"), SimulatedProvider(None, ProviderSettings(port=port)):
            pass
    assert threading.active_count() == before


def test_a_script_may_be_values_or_a_function_of_what_was_asked() -> None:
    script = Script((ScriptTurn((Say("reading"), ScriptCall("read", {"path": "a"}))), ScriptTurn((Say("done"),))))
    with SimulatedProvider(script) as provider:
        content = post(provider.url + "/v1/messages", begun("anthropic", "hi"))["content"]
        assert [block["type"] for block in content] == ["text", "tool_use"]

    def echo(asked: ProviderCall) -> object:
        return [{"text": f"{asked.api} {asked.model} {len(asked.messages)} {asked.headers['x-probe']}"}]

    with SimulatedProvider(echo) as provider:
        told = post(provider.url + "/v1/chat/completions", begun("openai_chat", "hi"), **{"x-probe": "p"})
        assert told["choices"][0]["message"]["content"] == "openai_chat gpt-5.1 1 p"


def test_a_script_that_means_nothing_is_refused_at_the_start() -> None:
    with pytest.raises(BadInput, match="turn 1"):
        SimulatedProvider([["fine"], [{"txt": "not"}]])


def test_a_function_that_fails_is_the_providers_own_error() -> None:
    def fails(_asked: ProviderCall) -> object:
        raise RuntimeError("no idea")

    async def converse(provider: SimulatedProvider, session: aiohttp.ClientSession) -> tuple[int, str, str]:
        heard = await ask(session, provider.url, "anthropic", begun("anthropic", "hi"))
        return heard.status, heard.body["error"]["type"], provider.requests[-1].outcome

    assert talk(fails, converse) == (500, "api_error", "failed")


# --- what it says about itself ---


def test_requests_and_the_bill_are_served_as_json() -> None:
    with SimulatedProvider(["a", "b"], ProviderSettings(prices="generic:r=.1,w=1,in=3")) as provider:
        for text in ("one", "two"):
            post(provider.url + "/v1/messages", begun("anthropic", text))
        served: Any = get(provider.url + "/__provider/requests")
        assert [record["body"]["messages"][0]["content"] for record in served] == ["one", "two"]
        assert len(get(provider.url + "/__provider/requests?from=1")) == 1
        bill = get(provider.url + "/__provider/bill")
        assert bill == json.loads(json.dumps(provider.bill().as_json()))
        assert bill["bit"] == bill["usage"]["fresh"] + 5 * bill["usage"]["output"]
        assert bill["usd"] == pytest.approx(bill["bit"] * 3e-6)
        assert bill["models"] == {"claude-opus-5-5": bill["bit"]}


@pytest.mark.parametrize(("api", "name"), [("anthropic", "x-api-key"), ("openai_chat", "Authorization")])
def test_credentials_are_in_no_record(api: Api, name: str, tmp_path: Path) -> None:
    path = tmp_path / "requests.jsonl"
    with SimulatedProvider(None, ProviderSettings(record=path)) as provider:
        headers = {name: "Bearer hush-hush", "Cookie": "hush-hush", "X-Other": "kept"}
        post(provider.url + PATHS[api], begun(api, "hi"), **headers)
        shown = json.dumps(get(provider.url + "/__provider/requests")) + repr(provider.requests)
        assert provider.requests[0].headers["x-other"] == "kept"
    assert "hush-hush" not in shown + path.read_text()
    assert "hush-hush" not in shown


def test_records_are_written_to_a_file_one_a_line(tmp_path: Path) -> None:
    path = tmp_path / "requests.jsonl"
    with SimulatedProvider(["x"], ProviderSettings(record=path)) as provider:
        post(provider.url + "/v1/messages?beta=true", begun("anthropic", "hi"))
    (row,) = (json.loads(line) for line in path.read_text().splitlines())
    assert (row["path"], row["outcome"], row["api"], row["turn"]) == (
        "/v1/messages?beta=true",
        "answered",
        "anthropic",
        0,
    )


def test_bodies_are_left_out_of_records_where_that_is_asked_for() -> None:
    with SimulatedProvider(None, ProviderSettings(keeps_bodies=False)) as provider:
        post(provider.url + "/v1/messages", begun("anthropic", "hi"))
        assert provider.requests[0].body is None


# --- the other endpoints ---


async def _status(session: aiohttp.ClientSession, method: str, url: str, **headers: str) -> tuple[int, bytes]:
    async with session.request(method, url, headers=headers) as answer:
        return answer.status, await answer.read()


def test_probes_are_answered() -> None:
    async def converse(provider: SimulatedProvider, session: aiohttp.ClientSession) -> None:
        assert await _status(session, "HEAD", provider.url + "/api/hello") == (200, b"")
        assert (await _status(session, "GET", provider.url + "/api/hello"))[0] == 200
        status, body = await _status(session, "GET", provider.url + "/v1/models?limit=1000")
        assert status == 200
        assert "claude-sonnet-4-5" in [row["id"] for row in json.loads(body)["data"]]
        assert provider.bill().requests == 0

    talk(None, converse)


def test_a_websocket_is_told_to_come_back_over_http() -> None:
    async def converse(provider: SimulatedProvider, session: aiohttp.ClientSession) -> int:
        with pytest.raises(aiohttp.WSServerHandshakeError) as refused:
            await session.ws_connect(provider.url + "/v1/responses")
        return refused.value.status

    assert talk(None, converse) == 426


def test_tokens_are_counted_as_they_are_billed_and_counting_is_free() -> None:
    async def converse(provider: SimulatedProvider, session: aiohttp.ClientSession) -> tuple[int, int, int]:
        body = begun("anthropic", "how many tokens are these?")
        bare = {name: value for name, value in body.items() if name != "max_tokens"}
        async with session.post(provider.url + "/v1/messages/count_tokens?beta=true", json=bare) as answer:
            counted = (await answer.json())["input_tokens"]
        heard = await ask(session, provider.url, "anthropic", body)
        return counted, heard.body["usage"]["input_tokens"], provider.bill().requests

    counted, billed, requests = talk(None, converse)
    assert counted == billed > 10
    assert requests == 1


def test_counting_the_tokens_of_an_invalid_request_is_refused() -> None:
    async def converse(provider: SimulatedProvider, session: aiohttp.ClientSession) -> int:
        body = {"model": "claude-opus-5-5", "messages": [{"role": "assistant", "content": "x"}]}
        async with session.post(provider.url + "/v1/messages/count_tokens", json=body) as answer:
            return answer.status

    assert talk(None, converse) == 400
