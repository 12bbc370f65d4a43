"""What a program may rely on when its client is wrapped: its settings, its time, and its answers when pagein fails."""

import gc
import json
import logging
import sqlite3
import subprocess
import sys
import time
from collections.abc import Generator, Iterator
from pathlib import Path
from threading import Event
from typing import Any

import anthropic
import httpx
import pytest

import pagein
from pagein.adapters.bounded_curator import BoundedCurator
from pagein.adapters.model_calls import SdkModelCalls
from pagein.engine.engine import Engine, Settings
from pagein.gateway.curation.guarded_curator import CuratedRequest, CurationRequest, PassThrough
from pagein.policy.eviction.residency import Residency
from pagein.simulator import SimulatedProvider

MODEL = "claude-sonnet-5-5"
URL = "https://api.anthropic.com/v1/messages"
KEY = {"x-api-key": "k"}
PREVIEWED = Settings(Residency(economics=None, batch_tokens=40_000))
BASH: Any = {"name": "Bash", "description": "run", "input_schema": {"type": "object", "properties": {"command": {}}}}
OUTPUT = "".join(f"line {number} of what make said at length\n" for number in range(400))
CALL: Any = {"type": "tool_use", "id": "toolu_1", "name": "Bash", "input": {"command": "make"}}
MESSAGES: Any = [
    {"role": "user", "content": "build it"},
    {"role": "assistant", "content": [CALL]},
    {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "toolu_1", "content": OUTPUT}]},
]
HELLO: Any = {"model": MODEL, "max_tokens": 9, "messages": [{"role": "user", "content": "hi"}]}
CAPTURE = {"capture": {"id": 'peek\\("(pg-[0-9a-f-]+)"\\)'}}
PEEK = {"tool": "peek", "args": {"id": "{{id}}", "line": 199, "lines": 2}}


@pytest.fixture
def engine(tmp_path: Path) -> Iterator[Engine]:
    with pagein.open(tmp_path / "s.pagein", workspace=tmp_path, settings=PREVIEWED) as made:
        yield made


def answering(seen: list[httpx.Request]) -> httpx.MockTransport:
    def answer(request: httpx.Request) -> httpx.Response:
        seen.append(request)
        if request.url.path == "/old/v1/messages":
            return httpx.Response(307, headers={"location": "/v1/messages"})
        return httpx.Response(200, json={"type": "message", "content": [], "usage": {}})

    return httpx.MockTransport(answer)


def claude(provider: SimulatedProvider, engine: Engine) -> anthropic.Anthropic:
    return pagein.wrap(
        anthropic.Anthropic(api_key="k", base_url=provider.url, max_retries=0), session="s", engine=engine
    )


def test_an_http_client_keeps_its_settings(engine: Engine) -> None:
    seen: list[httpx.Request] = []
    plain = httpx.Client(
        base_url="https://api.anthropic.com/old",
        headers={**KEY, "x-org": "o", "user-agent": "mine"},
        params={"beta": "1"},
        cookies={"a": "b"},
        transport=answering(seen),
    )
    client = pagein.wrap(plain, engine=engine)
    assert client.post("/v1/messages", json=HELLO).status_code == 307  # this client follows no redirects
    assert client.post("/v1/messages", json=HELLO, follow_redirects=True).status_code == 200
    assert [str(one.url) for one in seen] == [
        "https://api.anthropic.com/old/v1/messages?beta=1",
        "https://api.anthropic.com/old/v1/messages?beta=1",
        "https://api.anthropic.com/v1/messages",
    ]
    told = seen[0].headers
    assert [told[name] for name in ("x-org", "user-agent", "cookie", "x-api-key")] == ["o", "mine", "a=b", "k"]


def test_a_login_reaches_no_other_host(engine: Engine) -> None:
    seen: list[httpx.Request] = []

    def answer(request: httpx.Request) -> httpx.Response:
        seen.append(request)
        elsewhere = {"location": "https://elsewhere.example/v1/messages"}
        return httpx.Response(200, json={}) if len(seen) > 1 else httpx.Response(307, headers=elsewhere)

    plain = httpx.Client(auth=("me", "secret"), follow_redirects=True, transport=httpx.MockTransport(answer))
    assert pagein.wrap(plain, engine=engine).post(URL, json=HELLO).status_code == 200
    assert [(one.url.host, "authorization" in one.headers) for one in seen] == [
        ("api.anthropic.com", True),
        ("elsewhere.example", False),
    ]


class Signature(httpx.Auth):
    """A login that signs the body."""

    requires_request_body = True

    def auth_flow(self, request: httpx.Request) -> Generator[httpx.Request, httpx.Response, None]:
        """Add the signature."""
        request.headers["authorization"] = f"Signature {len(request.content)}"
        yield request


def test_a_signed_body_stays(engine: Engine) -> None:
    seen: list[httpx.Request] = []
    client = pagein.wrap(httpx.Client(auth=Signature(), transport=answering(seen)), session="s", engine=engine)
    client.post(URL, json={**HELLO, "messages": MESSAGES, "tools": [BASH]})
    assert OUTPUT in json.loads(seen[0].content)["messages"][2]["content"][0]["content"]
    assert seen[0].headers["authorization"] == f"Signature {len(seen[0].content)}"


def test_an_answer_can_be_read_as_from_the_network(engine: Engine) -> None:
    client = pagein.wrap(httpx.Client(transport=answering([])), engine=engine)
    answer = client.post(URL, json=HELLO, headers=KEY)
    assert answer.is_closed
    assert answer.elapsed.total_seconds() > 0
    assert answer.num_bytes_downloaded == len(answer.content) == int(answer.headers["content-length"])
    with client.stream("POST", URL, json=HELLO, headers=KEY) as raw:
        assert b"".join(raw.iter_raw()) == answer.content


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("name", ["behind", "splice_answer"])
def test_a_failing_recall_fails_no_call(
    engine: Engine, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, name: str, *, stream: bool
) -> None:
    def fail(*_: object, **__: object) -> None:
        raise RuntimeError("line 7 of what make said")

    monkeypatch.setattr(Engine, name, fail)
    with SimulatedProvider([[], [CAPTURE, PEEK], [{"text": "done"}]]) as provider, claude(provider, engine) as client:
        asked: Any = {"model": MODEL, "max_tokens": 4000, "tools": [BASH], "messages": MESSAGES}
        if stream:
            with client.messages.stream(**asked) as answer:
                said = answer.get_final_message()
        else:
            said = client.messages.create(**asked)
        assert [block.text for block in said.content if block.type == "text"] == ["done"]
        assert len(provider.requests) == 2
    assert "RuntimeError" in caplog.text
    assert "make said" not in caplog.text


def test_recalls_without_end_are_no_regular_answer(engine: Engine) -> None:
    with SimulatedProvider([[], [CAPTURE, PEEK], *([PEEK] for _ in range(20))]) as provider:
        with claude(provider, engine) as client, pytest.raises(anthropic.APIConnectionError):
            client.messages.create(model=MODEL, max_tokens=4000, tools=[BASH], messages=MESSAGES)
        assert len(provider.requests) == 10


def test_a_locked_store_delays_a_call_for_a_limited_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PAGEIN_STORE", str(tmp_path / "s.pagein"))
    client = pagein.wrap(httpx.Client(transport=answering([])), session="s")
    with client:
        client.post(URL, json=HELLO, headers=KEY)
        with sqlite3.connect(tmp_path / "s.pagein", isolation_level=None) as other:
            other.execute("BEGIN IMMEDIATE")
            start = time.monotonic()
            assert client.post(URL, json=HELLO, headers=KEY).status_code == 200
            assert time.monotonic() - start < 3
            other.execute("ROLLBACK")
        other.close()


class Stuck(PassThrough):
    """A curator that hangs."""

    def __init__(self) -> None:
        self.free = Event()

    def prepare(self, asked: CurationRequest) -> CuratedRequest:
        """Return after the test."""
        self.free.wait(60)
        return CuratedRequest(b"too late")


def test_nobody_waits_when_every_thread_hangs() -> None:
    stuck = Stuck()
    curator = BoundedCurator(stuck, is_owner=True, budget=0.01)
    for _ in range(8):
        assert curator.prepare(CurationRequest(b"{}", "anthropic", None, 1.0)).body == b"{}"
    hurried = BoundedCurator(stuck, is_owner=False, budget=60)
    hurried._deciding = curator._deciding
    start = time.monotonic()
    assert hurried.prepare(CurationRequest(b"{}", "anthropic", None, 1.0)).body == b"{}"
    assert time.monotonic() - start < 5
    stuck.free.set()
    curator.close()


def test_nothing_is_printed_about_a_failure() -> None:
    logger = logging.getLogger("pagein.adapters")
    assert any(isinstance(one, logging.NullHandler) for one in logger.handlers)


def test_requests_that_pass_carry_no_header_of_pagein(engine: Engine) -> None:
    seen: list[httpx.Request] = []
    client = pagein.wrap(httpx.Client(transport=answering(seen)), engine=engine)
    client.post(URL, json=HELLO, headers={**KEY, "x-pagein": "off", "x-pagein-session": "s"})
    client.post("https://api.anthropic.com/v1/files", headers={**KEY, "x-pagein-session": "s"})
    assert [name for one in seen for name in one.headers if "pagein" in name] == []
    assert json.loads(seen[0].content) == HELLO


@pytest.mark.parametrize(
    ("path", "headers", "wanted"),
    [
        ("/v1/account/gateway/anthropic/v1/messages", KEY, True),
        ("/v1/account/gateway/openai/responses", KEY, True),
        ("/api/openai/v1/chat/completions", KEY, True),
        ("/upload?next=/v1/messages", KEY, False),
        ("/upload#/v1/messages", KEY, False),
        ("/v1/projects/p/locations/l/publishers/anthropic/models/claude:streamRawPredict", KEY, False),
        ("/model/claude/invoke", KEY, False),
        ("/anthropic/v1/messages", {"authorization": "AWS4-HMAC-SHA256 Credential=x"}, False),
        ("/anthropic/v1/messages", {"authorization": "Bearer of-a-proxy"}, True),
    ],
)
def test_only_requests_that_may_change_are_model_calls(
    engine: Engine, path: str, headers: dict[str, str], *, wanted: bool
) -> None:
    calls = SdkModelCalls(engine, None, recall=True)
    assert calls.is_one("POST", "https://host.example" + path, list(headers.items())) is wanted


def test_a_client_that_nobody_uses_closes_its_store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    closed: list[Engine] = []
    monkeypatch.setenv("PAGEIN_STORE", str(tmp_path / "s.pagein"))
    close = Engine.close

    def note(self: Engine) -> None:
        closed.append(self)
        close(self)

    monkeypatch.setattr(Engine, "close", note)
    client: Any = pagein.wrap(httpx.Client(transport=answering([])), session="s")
    answer = client.send(client.build_request("POST", URL, json=HELLO, headers=KEY), stream=True)
    gc.collect()
    assert not closed
    answer.read()
    del client, answer
    gc.collect()
    assert len(closed) == 1


FORKING = """
import os, sys, httpx, pagein

seen = []


def answer(request):
    seen.append(request.headers["accept-encoding"] == "identity")
    return httpx.Response(200, json={"type": "message", "content": [], "usage": {}})


body = b'{"model":"claude-sonnet-5-5","max_tokens":9,"messages":[{"role":"user","content":"hi"}]}'
with pagein.open(sys.argv[1]) as engine:
    client = pagein.wrap(httpx.Client(transport=httpx.MockTransport(answer)), session="s", engine=engine)
    ask = lambda: client.post("https://api.anthropic.com/v1/messages", content=body, headers={"x-api-key": "k"})
    ask()
    if not (child := os.fork()):
        ask()
        client.close()
        os._exit(0 if seen == [True, False] else 1)
    print(os.waitpid(child, 0)[1])
    print(ask().status_code)
"""


@pytest.mark.skipif(sys.platform == "win32", reason="there is no fork")
def test_a_forked_child_leaves_the_store_alone(tmp_path: Path) -> None:
    done = subprocess.run(  # noqa: S603 -- this interpreter
        [sys.executable, "-c", FORKING, str(tmp_path / "s.pagein")],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert (done.stdout.split(), done.stderr) == (["0", "200"], "")
