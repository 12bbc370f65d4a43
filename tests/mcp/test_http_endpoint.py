"""MCP over HTTP in `pagein serve`, with the official SDK's own client in both eras of the protocol, and request by request."""

import asyncio
import json
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Awaitable, Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

import pytest
from aiohttp import ClientSession, web
from tests.gateway.processes import gateway_process, token_in

from pagein.engine.reads.session_reads import ReadResult
from pagein.mcp.first_answers import STATELESS, VERSION_FIELD, FirstAnswers
from pagein.mcp.http_endpoint import PATH, HttpEndpoint
from pagein.mcp.tool_answers import Caller, ToolAnswers
from pagein.ports import Signal

if TYPE_CHECKING:
    from mcp import Client

LINES = "".join(f"value_{number} = compute({number})\n" for number in range(60))
MARKER = "[readcache: unchanged, 61 lines]"


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, str]]:
    """Address and token of a running gateway."""
    folder = tmp_path_factory.mktemp("served")
    (folder / "a.py").write_text(LINES)
    with gateway_process("http://127.0.0.1:9", folder, "--workspace", str(folder)) as (url, _):
        yield url + PATH, token_in(folder)


def post(served: tuple[str, str], body: object, method: str = "POST", **headers: str) -> tuple[int, Any]:
    """The status and the JSON of an answer."""
    url, token = served
    data = body if isinstance(body, bytes) else json.dumps(body).encode()
    given = {"Authorization": f"Bearer {token}", "Content-Type": "application/json"}
    given |= {name.replace("_", "-"): value for name, value in headers.items()}
    request = urllib.request.Request(url, data if method == "POST" else None, given, method=method)  # noqa: S310 - ours
    try:
        with urllib.request.urlopen(request, timeout=30) as answer:  # noqa: S310
            status, text = answer.status, answer.read()
    except urllib.error.HTTPError as problem:
        status, text = problem.code, problem.read()
    return status, json.loads(text) if text else None


def with_clients(served: tuple[str, str], era: str, count: int, job: Callable[["Client"], Awaitable[None]]) -> None:
    import httpx2
    from mcp import Client
    from mcp.client.streamable_http import streamable_http_client

    async def one() -> None:
        async with (
            httpx2.AsyncClient(headers={"Authorization": f"Bearer {served[1]}"}, timeout=60) as http,
            Client(streamable_http_client(served[0], http_client=http), mode=era) as client,
        ):
            await job(client)

    async def run() -> None:
        await asyncio.gather(*(one() for _ in range(count)))

    asyncio.run(run())


async def read_twice(client: "Client") -> None:
    from mcp.types import TextContent

    assert [one.name for one in (await client.list_tools()).tools] == ["peek", "read", "search"]
    first = (await client.call_tool("read", {"mode": "file", "target": "a.py"})).content[0]
    assert isinstance(first, TextContent)
    text, _, receipt = first.text.rpartition("\n[known=")
    assert text == LINES
    again = (
        await client.call_tool("read", {"mode": "file", "target": "a.py", "known": [receipt.removesuffix("]")]})
    ).content[0]
    assert isinstance(again, TextContent)
    assert again.text == MARKER
    assert (await client.call_tool("stats", {})).is_error


@pytest.mark.parametrize("era", ["auto", "legacy"])
def test_the_sdks_client_reads_again_by_receipt(served: tuple[str, str], era: str) -> None:
    with_clients(served, era, 1, read_twice)


def test_twenty_clients_are_served_at_once(served: tuple[str, str]) -> None:
    with_clients(served, "auto", 20, read_twice)


def call(**params: object) -> dict[str, object]:
    return {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"Authorization": "Bearer wrong"}, 401),
        ({"Authorization": "", "Cookie": "pagein=1"}, 401),
        ({"Origin": "https://elsewhere.example"}, 403),
        ({"Host": "elsewhere.example"}, 403),
        ({"Sec_Fetch_Site": "cross-site"}, 403),
        ({}, 200),
    ],
)
def test_strangers_are_refused(served: tuple[str, str], headers: dict[str, str], status: int) -> None:
    answer = post(served, {"jsonrpc": "2.0", "id": 1, "method": "tools/list"}, **headers)
    assert answer[0] == status
    assert ("Authorization: Bearer" in str(answer[1])) == (status == 401)


@pytest.mark.parametrize(
    ("body", "status", "code"),
    [
        (b"{broken", 400, -32700),
        ([call()], 400, -32600),
        ({"id": 1, "method": "tools/list"}, 400, -32600),
        ({"jsonrpc": "2.0", "id": None, "method": "tools/list"}, 400, -32600),
        ({"jsonrpc": "2.0", "id": 1, "method": 7}, 400, -32600),
        ({"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": [1]}, 400, -32600),
        ({"jsonrpc": "2.0", "id": 1, "method": "resources/read", "params": {"uri": 7}}, 400, -32602),
        (call(name="read", _meta=7), 400, -32602),
        (call(name=7, arguments={}), 400, -32602),
        (call(name="read", arguments=[]), 400, -32602),
        ({"jsonrpc": "2.0", "id": 1, "method": "no/such"}, 200, -32601),
        (
            {"jsonrpc": "2.0", "id": 1, "method": "no/such", "params": {"_meta": {VERSION_FIELD: STATELESS[0]}}},
            404,
            -32601,
        ),
        (
            {"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {"_meta": {VERSION_FIELD: "1999-01-01"}}},
            400,
            -32022,
        ),
    ],
)
def test_wrong_messages_get_the_protocols_own_errors(
    served: tuple[str, str], body: object, status: int, code: int
) -> None:
    got, answer = post(served, body)
    assert (got, answer["error"]["code"]) == (status, code)


def test_a_header_that_contradicts_the_body_is_refused(served: tuple[str, str]) -> None:
    got, answer = post(served, call(name="read", arguments={"mode": "file", "target": "a.py"}), Mcp_Name="search")
    assert (got, answer["error"]["code"]) == (400, -32020)


def test_notifications_are_taken_and_other_methods_are_not(served: tuple[str, str]) -> None:
    assert post(served, {"jsonrpc": "2.0", "method": "notifications/initialized"}) == (202, None)
    assert post(served, b"", "GET")[0] == 405
    assert post(served, b"", "DELETE")[0] == 405


def test_too_long_a_message_is_refused(served: tuple[str, str]) -> None:
    assert post(served, b" " * (16 * 1024 * 1024 + 1))[0] == 413


class _Waiting(ToolAnswers):
    """Answers that take until they are cancelled."""

    def __init__(self) -> None:
        self.began, self.ended = threading.Event(), threading.Event()

    def answer(self, name: str, arguments: Mapping[str, object], caller: Caller, signal: Signal) -> ReadResult:
        del name, arguments, caller
        self.began.set()
        while not signal.is_set():
            time.sleep(0.01)
        self.ended.set()
        return ReadResult("cancelled")


def test_a_client_that_hangs_up_cancels_its_call() -> None:
    answers = _Waiting()

    async def run() -> None:
        app = web.Application()
        app.router.add_route("*", PATH, HttpEndpoint(FirstAnswers(()), answers).handle)
        runner = web.AppRunner(app, handler_cancellation=True)  # as the gateway's
        await runner.setup()
        site = web.TCPSite(runner, "127.0.0.1", 0)
        await site.start()
        try:
            host, port = runner.addresses[0][:2]
            async with ClientSession() as http:
                asked = asyncio.ensure_future(
                    http.post(f"http://{host}:{port}{PATH}", json=call(name="read", arguments={}))
                )
                assert await asyncio.to_thread(answers.began.wait, 30)
                asked.cancel()
            assert await asyncio.to_thread(answers.ended.wait, 30)
        finally:
            await runner.cleanup()

    asyncio.run(run())
