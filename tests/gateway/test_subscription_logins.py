"""Requests made with a subscription's login: untouched byte for byte, and parsed, measured, priced and shown all the same."""

import asyncio
import json
from pathlib import Path
from typing import Any

import aiohttp
import pytest
import zstandard
from tests.gateway.browser import browsing, needs_browser
from tests.gateway.pages.test_dashboard import asked, called, details
from tests.gateway.processes import gateway_process, logged, noted, token_in
from tests.gateway.stream.test_reply_reader import MESSAGES
from tests.gateway.test_relay import raw
from tests.gateway.test_serve import conversation, sent
from tests.gateway.upstreams import Stage, run, says, stage, streams, until

from pagein.gateway.curation.guarded_curator import CurationRequest
from pagein.gateway.http.addresses import with_token
from pagein.gateway.pages.call_meter import SESSIONS, Meter
from pagein.gateway.settings import CHATGPT, GatewaySettings
from pagein.providers.wire.streams.model_reply import NO_REPLY
from pagein.simulator import SimulatedProvider

CLAUDE = "Bearer sk-ant-oat01-abcdef"
CODEX = "Bearer eyJhbGciOiJI.eyJzdWIiOiIx.c2lnbmF0dXJl"
BODY = json.dumps(conversation(3, lines=20), indent=1).encode()


def marked(turns: int, system: str = "you fix builds " * 300) -> dict[str, Any]:
    body: dict[str, Any] = conversation(turns)
    last = body["messages"][-1]
    if isinstance(last["content"], str):
        last["content"] = [{"type": "text", "text": last["content"]}]
    last["content"][-1]["cache_control"] = {"type": "ephemeral"}
    return body | {"system": [{"type": "text", "text": system}]}


async def the_call(on: Stage) -> dict[str, Any]:
    (call,) = await on.calls()
    return call


@pytest.mark.parametrize("length", [True, False], ids=["length", "chunks"])
def test_a_request_with_a_login_arrives_as_it_stood_on_the_wire_and_its_model_and_session_are_known(
    length: bool,  # noqa: FBT001 -- a case
    tmp_path: Path,
) -> None:
    async def go() -> None:
        async with stage(streams(MESSAGES), tmp_path) as on:
            headers = f"Authorization: {CLAUDE}\r\nanthropic-beta: oauth-2025-04-20,b\r\nAccept-Encoding: br, gzip\r\nUser-Agent: claude-cli/2.1"
            framing = f"Content-Length: {len(BODY)}" if length else "Transfer-Encoding: chunked"
            head = f"POST /v1/messages?beta=true HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n{headers}\r\n{framing}\r\n\r\n"
            body = BODY if length else b"%x\r\n%s\r\n0\r\n\r\n" % (len(BODY), BODY)
            answer = await raw(on.gateway.port, head.encode() + body)
            assert b"".join(MESSAGES) in answer.replace(b"\r\n", b"\n") or b"message_stop" in answer
            (got,) = on.upstream.got
            assert got.body == BODY
            assert got.line == "POST /v1/messages?beta=true HTTP/1.1"
            told = {name: value for name, value in got.headers if name not in ("Host", "Connection")}
            assert told == dict(line.split(": ", 1) for line in [*headers.split("\r\n"), framing])
            call = await the_call(on)
            assert (call["passed"], call["model"]) == ("subscription", "claude-sonnet-4-5")
            assert call["session"].startswith("wire-")
            (one,) = on.gateway.board.sessions()
            assert one["unbilled"] > 0
            assert one["cost"] == 0, "a subscription bills no tokens"

    run(go())


def test_an_upload_with_a_login_streams_through_before_it_is_complete(tmp_path: Path) -> None:
    async def go() -> None:
        async with stage(says(b"{}"), tmp_path) as on:
            reader, writer = await asyncio.open_connection("127.0.0.1", on.gateway.port)
            head = f"POST /v1/messages HTTP/1.1\r\nHost: localhost\r\nAuthorization: {CLAUDE}\r\nConnection: close\r\nTransfer-Encoding: chunked\r\n\r\n"
            writer.write(head.encode() + b"3\r\nabc\r\n")
            await until(lambda: on.upstream.chunks == [b"abc"])
            writer.write(b"3\r\ndef\r\n0\r\n\r\n")
            await reader.read(-1)
            writer.close()
            assert on.upstream.got[0].body == b"abcdef"
            assert (await the_call(on))["model"] == ""  # no request, and nothing of ours failed
            assert not [line for line in on.logged() if line["event"] == "failure"]

    run(go())


def test_a_packed_request_of_a_chatgpt_login_goes_to_chatgpt_as_it_came_and_is_measured(tmp_path: Path) -> None:
    body = {"model": "gpt-5.1-codex", "prompt_cache_key": "s1", "input": [{"role": "user", "content": "hi"}]}
    packed = zstandard.ZstdCompressor().compress(json.dumps(body).encode())
    usage = {"input_tokens": 100, "input_tokens_details": {"cached_tokens": 60}, "output_tokens": 5}
    said = {"object": "response", "status": "completed", "output": [], "usage": usage}

    async def go() -> None:
        async with stage(says(json.dumps(said).encode(), "Content-Type: application/json"), tmp_path) as on:
            settings = GatewaySettings(openai=on.upstream.url, chatgpt=on.upstream.url + "/backend-api/codex")
            on.gateway._relay._settings = settings  # type: ignore[union-attr]
            login = {"Authorization": CODEX, "Chatgpt_Account_Id": "acc", "Content_Encoding": "zstd"}
            assert (await on.post("/v1/responses", packed, **login))[0] == 200
            await on.post("/v1/responses", b"{}", Authorization=CODEX)
            first, second = on.upstream.got
            assert (first.line, first.body) == ("POST /backend-api/codex/responses HTTP/1.1", packed)
            assert first.header("content-encoding") == ["zstd"]
            assert second.line == "POST /v1/responses HTTP/1.1"
            call = next(one for one in await on.calls() if one["session"] == "s1")
            assert (call["model"], call["read"]) == ("gpt-5.1-codex", 60)

    run(go())


def test_a_login_goes_where_openai_was_pointed_to_and_else_to_chatgpt() -> None:
    own = GatewaySettings(openai="https://llm.example.com/v1")
    assert own.address("openai", "/v1/responses", has_chatgpt_login=True) == "https://llm.example.com/v1/responses"
    there = GatewaySettings().address("openai", "/v1/models?a=1", has_chatgpt_login=True)
    assert there == f"{CHATGPT}/models?a=1"
    assert GatewaySettings().address("openai", "/v1/responses") == "https://api.openai.com/v1/responses"
    assert GatewaySettings().address("anthropic", "/v1/messages", has_chatgpt_login=True).startswith("https://api.a")


@pytest.mark.parametrize("measures", [False, True], ids=["login", "--measure"])
def test_what_only_passes_is_measured_explained_and_priced_and_nothing_of_it_is_stored(
    measures: bool,  # noqa: FBT001 -- a case
    tmp_path: Path,
) -> None:
    credential = {"x_api_key": "k"} if measures else {"Authorization": CLAUDE, "x_api_key": ""}

    def served(url: str) -> Any:  # noqa: ANN401 -- what a context manager gives
        return gateway_process(url, tmp_path, *(("--measure",) if measures else ()))

    with SimulatedProvider() as provider, served(provider.url) as (plain, _):
        url = with_token(plain, token_in(tmp_path))
        for turns in range(12):
            body = marked(turns, "you write builds " * 300) if turns == 11 else marked(turns)
            assert run(sent(url, body, X_Session_Id="s", **credential))[0] == 200
            assert provider.requests[-1].body == body
            noted(tmp_path, turns + 1)
        one = run(called(url, "s", 12))
        found, _ = run(asked(url + details("s")))
        bill = provider.bill()
        assert one["model"] == "claude-sonnet-4-5"
        assert one["saved"] == 0
        assert one["cost" if measures else "unbilled"] == pytest.approx(bill.bit, rel=0.01)
        assert one["unbilled" if measures else "cost"] == 0
        assert one["read"] > 0
        inside = found["inside"]
        assert inside["window"]["results"] == sum(len(item["content"][0]["content"]) for item in body["messages"][2::2])
        assert len(inside["objects"]) == 11
        assert {item["tool"] for item in inside["objects"]} == {"Bash"}
        short = [call for call in found["calls"] if call["shortfall"]]
        assert [(call["cause"], call["who"]) for call in short] == [("system", "client")]
    calls = logged(tmp_path, "call")
    assert {call["passed"] for call in calls} == {"" if measures else "subscription"}
    assert not logged(tmp_path, "failure")
    for file in tmp_path.rglob("*"):
        if file.is_file() and "gateway" not in file.name:
            assert b"says line 100 of its output" not in file.read_bytes(), file


def test_what_is_held_to_measure_is_bounded() -> None:
    meter = Meter()
    for number in range(SESSIONS + 10):
        said = [{"role": "user", "content": f"job {number}"}]
        body = json.dumps({"model": "claude-sonnet-4-5", "messages": said}).encode()
        measured = meter.measure(CurationRequest(body, "anthropic", None, float(number)), NO_REPLY)
        inside = meter.inside(measured.session)
        assert inside is not None
        assert inside["window"] == {"user": len(f"job {number}")}
    assert len(meter._sessions) == SESSIONS
    assert meter.inside("wire-unknown") is None


@needs_browser
def test_a_subscriber_sees_what_fills_the_window_and_what_a_key_would_cost(tmp_path: Path) -> None:
    async def go(url: str) -> None:
        for turns in range(3):
            await sent(url, marked(turns), X_Session_Id="mine", Authorization=CLAUDE, x_api_key="")
        await called(url, "mine", 3)
        async with browsing(f"{url}/#mine", tmp_path / "browser") as page:
            await page.until("document.querySelector('#inside svg.window') !== null")
            text = await page.text()
            for told in (
                "With an API key these calls would have cost",
                "BIT that a key would have cost, on subscriptions",
                "The window now",
                "What each call sent",
                "passed untouched: subscription",
            ):
                assert told in text, told
            assert "Epochs" not in text
            assert page.problems == []

    with SimulatedProvider() as provider, gateway_process(provider.url, tmp_path) as (url, _):
        run(go(with_token(url, token_in(tmp_path))))


def test_an_answer_that_no_reader_understands_costs_nobody_anything(tmp_path: Path) -> None:
    async def go() -> None:
        async with stage(says(b"\xff\x00", "Content-Encoding: br"), tmp_path) as on:
            async with aiohttp.ClientSession(auto_decompress=False) as client:
                headers = {"Authorization": CLAUDE, "Content-Type": "application/json"}
                async with client.post(on.url + "/v1/messages", data=BODY, headers=headers) as answer:
                    assert await answer.read() == b"\xff\x00"
            call = await the_call(on)
            assert (call["unread"], call["read"], call["model"]) == ("coding", None, "claude-sonnet-4-5")

    run(go())
