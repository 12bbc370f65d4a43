import asyncio
import gzip
import io
import json
import socket
from pathlib import Path

import aiohttp
import pytest
from tests.gateway.upstreams import Got, run, says, stage, until

from pagein.gateway.settings import GatewaySettings, join_address

BODY = b'{ "model":"m",  "messages":[{"role":"user","content":"h\\u00e9 \xf0\x9f\x98\x80"}],"n":1.0,"big":9007199254740993,"x":null}'
JSON = {"Content-Type": "application/json"}
PATHS = ["/v1/messages?beta=true", "/v1/chat/completions", "/v1/responses"]


async def raw(port: int, request: bytes) -> bytes:
    """What stands on the wire in answer to these bytes."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(request)
    await writer.drain()
    answer = await reader.read(-1)
    writer.close()
    return answer


@pytest.mark.parametrize("path", PATHS)
def test_a_body_that_nobody_edits_arrives_byte_for_byte(path: str, tmp_path: Path) -> None:
    async def go() -> None:
        async with stage(says(b"{}", "Content-Type: application/json"), tmp_path) as on:
            await on.post(path, BODY)
            assert on.upstream.got[0].body == BODY
            assert on.upstream.got[0].line == f"POST {path} HTTP/1.1"

    run(go())


def test_headers_arrive_as_they_were_sent_and_none_is_added(tmp_path: Path) -> None:
    sent = [
        ("X-Api-Key", "sk-test-key"),
        ("anthropic-beta", "b-2, a-1"),
        ("Anthropic-Beta", "c-3"),
        ("X-Unknown", "  spaced value"),
        ("accept-encoding", "gzip, deflate"),
    ]

    async def go() -> None:
        async with stage(says(b"{}"), tmp_path) as on:
            head = "".join(f"{name}: {value}\r\n" for name, value in sent)
            request = f"POST /v1/messages HTTP/1.1\r\nHost: localhost\r\nConnection: close, X-Private\r\nX-Private: 1\r\nKeep-Alive: 3\r\nTE: trailers\r\nx-pagein-session: s\r\n{head}Content-Length: {len(BODY)}\r\n\r\n"
            await raw(on.gateway.port, request.encode() + BODY)
            got = [
                (name, value)
                for name, value in on.upstream.got[0].headers
                if name.lower() not in ("host", "content-length")
            ]
            # a name that is repeated gets its first spelling
            assert got == [(name.replace("Anthropic-Beta", "anthropic-beta"), value.strip()) for name, value in sent]
            assert on.upstream.got[0].header("host") == [f"127.0.0.1:{on.upstream.port}"]
            assert on.upstream.got[0].header("content-length") == [str(len(BODY))]

    run(go())


def test_answers_come_back_with_their_headers_repeated_ones_included_and_none_added(tmp_path: Path) -> None:
    told = [
        "Set-Cookie: a=1",
        "Set-Cookie: b=2",
        "request-id: req_1",
        "retry-after: 7",
        "anthropic-ratelimit-tokens-remaining: 9",
    ]

    async def go() -> None:
        async with stage(says(b'{"type":"error"}', *told, status="529 Overloaded Indeed"), tmp_path) as on:
            answer = await raw(
                on.gateway.port, b"GET /v1/files HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"
            )
            head, _, body = answer.partition(b"\r\n\r\n")
            lines = head.decode().split("\r\n")
            assert lines[0] == "HTTP/1.1 529 Overloaded Indeed"
            assert lines[1:] == [*told, "Content-Length: 16", "Connection: close"]
            assert body == b'{"type":"error"}'

    run(go())


def test_cookies_of_one_client_are_not_given_to_the_next(tmp_path: Path) -> None:
    async def go() -> None:
        async with stage(says(b"{}", "Set-Cookie: a=1; Path=/"), tmp_path) as on:
            for _ in range(2):
                await raw(on.gateway.port, b"GET /v1/files HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
            assert on.upstream.got[1].header("cookie") == []

    run(go())


@pytest.mark.parametrize(
    "target", ["/v1/x%41+b?q=%41+%2f&&a=1;b", "//v1//x/../y", "/v1/models?limit=1000&before_id=%20"]
)
def test_the_path_and_query_stay_as_they_were_written(target: str, tmp_path: Path) -> None:
    async def go() -> None:
        async with stage(says(b"{}"), tmp_path) as on:
            await raw(
                on.gateway.port, f"GET {target} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n".encode()
            )
            assert on.upstream.got[0].line == f"GET {target} HTTP/1.1"

    run(go())


@pytest.mark.parametrize("method", ["GET", "HEAD", "DELETE", "PUT", "PATCH", "OPTIONS", "POST", "PROPFIND"])
def test_every_method_passes(method: str, tmp_path: Path) -> None:
    async def go() -> None:
        async with stage(says(b"" if method == "HEAD" else b"{}"), tmp_path) as on:
            async with on.client.request(method, on.url + "/api/hello") as answer:
                assert answer.status == 200
            assert on.upstream.got[0].line == f"{method} /api/hello HTTP/1.1"

    run(go())


def test_a_head_request_keeps_the_length_that_it_was_told(tmp_path: Path) -> None:
    async def answer(_: Got, writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 77\r\n\r\n")
        await writer.drain()

    async def go() -> None:
        async with stage(answer, tmp_path) as on:
            head = await raw(
                on.gateway.port, b"HEAD /api/hello HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"
            )
            assert b"Content-Length: 77\r\n" in head

    run(go())


def test_a_redirect_is_the_clients_to_follow(tmp_path: Path) -> None:
    async def go() -> None:
        async with stage(says(b"", "Location: https://example.com/", status="307 Temporary Redirect"), tmp_path) as on:
            async with on.client.get(on.url + "/v1/files", allow_redirects=False) as answer:
                assert (answer.status, answer.headers["Location"]) == (307, "https://example.com/")
            assert len(on.upstream.got) == 1

    run(go())


def test_what_is_packed_stays_packed_both_ways(tmp_path: Path) -> None:
    packed = gzip.compress(b'{"type":"message","usage":{"input_tokens":3,"output_tokens":4}}')

    async def go() -> None:
        answer = says(packed, "Content-Type: application/json", "Content-Encoding: gzip")
        async with stage(answer, tmp_path) as on:
            headers = {"Content-Encoding": "gzip", "Content-Type": "application/json"}
            body = gzip.compress(BODY)
            async with (
                aiohttp.ClientSession(auto_decompress=False) as client,
                client.post(on.url + "/v1/messages", data=body, headers=headers) as got,
            ):
                assert await got.read() == packed
                assert got.headers["Content-Encoding"] == "gzip"
            assert on.upstream.got[0].body == body
            assert (await on.calls())[0]["output"] == 4

    run(go())


def test_the_upstream_may_only_choose_a_coding_that_can_be_read(tmp_path: Path) -> None:
    async def go() -> None:
        async with stage(says(b"{}"), tmp_path) as on:
            for told in ("gzip, deflate, br, zstd", "br", "gzip;q=0.5, identity"):
                await on.post("/v1/messages", BODY, Accept_Encoding=told)
            await on.post("/v1/files", BODY, Accept_Encoding="br")
            found = [got.header("accept-encoding")[0] for got in on.upstream.got]
            assert found == ["gzip, deflate, zstd", "identity", "gzip;q=0.5, identity", "br"]

    run(go())


def test_a_websocket_is_refused_so_that_codex_posts_at_once(tmp_path: Path) -> None:
    async def go() -> None:
        async with stage(says(b"{}"), tmp_path) as on:
            with pytest.raises(aiohttp.WSServerHandshakeError) as refused:
                await on.client.ws_connect(on.url + "/v1/responses")
            assert refused.value.status == 426
            assert on.upstream.got == []

    run(go())


@pytest.mark.parametrize(
    ("path", "limit_type"), [("/v1/messages", "request_too_large"), ("/v1/responses", "invalid_request_error")]
)
def test_a_body_over_the_limit_is_413_in_the_vendors_form(path: str, limit_type: str, tmp_path: Path) -> None:
    async def go() -> None:
        async with stage(says(b"{}"), tmp_path, settings=GatewaySettings(body_limit=1000, grace=1)) as on:
            status, body = await on.post(path, b'{"messages":"' + b"x" * 2000 + b'"}')
            assert status == 413
            assert json.loads(body)["error"]["type"] == limit_type
            assert on.upstream.got == []

    run(go())


def test_fifty_megabytes_pass(tmp_path: Path) -> None:
    async def go() -> None:
        async with stage(says(b"{}"), tmp_path) as on:
            body = b'{"messages":"' + b"x" * 50_000_000 + b'"}'
            async with on.client.post(on.url + "/v1/messages", data=io.BytesIO(body), headers=JSON) as answer:
                assert answer.status == 200
            assert on.upstream.got[0].body == body

    run(go())


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"{",
        b"[1,2",
        b"null",
        b'"text"',
        b"\xff\xfe\x00",
        b"[" * 100_000,
        b'{"messages":' * 50_000,
        b'{"messages":7}',
    ],
    ids=lambda body: body[:12].decode("latin-1"),
)
@pytest.mark.parametrize("path", PATHS)
def test_what_is_no_request_is_the_upstreams_to_refuse(path: str, body: bytes, tmp_path: Path) -> None:
    async def go() -> None:
        async with stage(says(b'{"type":"error"}', status="400 Bad Request"), tmp_path) as on:
            assert await on.post(path, body) == (400, b'{"type":"error"}')
            assert on.upstream.got[0].body == body
            assert not [line for line in on.logged() if "exception" in line]

    run(go())


def test_another_content_type_passes_untouched(tmp_path: Path) -> None:
    async def go() -> None:
        async with stage(says(b"{}"), tmp_path) as on:
            await on.post("/v1/messages", b"a=b", Content_Type="application/x-www-form-urlencoded")
            assert on.upstream.got[0].body == b"a=b"
            assert (await on.calls())[0]["passed"] == "content_type"

    run(go())


def test_an_upload_streams_through_before_it_is_complete(tmp_path: Path) -> None:
    async def go() -> None:
        async with stage(says(b"{}"), tmp_path) as on:
            reader, writer = await asyncio.open_connection("127.0.0.1", on.gateway.port)
            writer.write(
                b"POST /v1/files HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\nConnection: close\r\n\r\n3\r\nabc\r\n"
            )
            await until(lambda: on.upstream.chunks == [b"abc"])
            writer.write(b"3\r\ndef\r\n0\r\n\r\n")
            await reader.read(-1)
            writer.close()
            assert on.upstream.got[0].body == b"abcdef"

    run(go())


def test_an_upstream_that_cannot_be_reached_is_an_error_of_the_vendors_kind(tmp_path: Path) -> None:
    async def go() -> None:
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            async with stage(says(b"{}"), tmp_path) as on:
                on.gateway._relay._settings = GatewaySettings(anthropic=f"http://127.0.0.1:{free.getsockname()[1]}")  # type: ignore[union-attr]
                async with on.client.post(on.url + "/v1/messages", json={}) as answer:
                    assert answer.status == 502
                    assert (await answer.json())["error"]["type"] == "api_error"
                    assert answer.headers["x-pagein-warning"] == "upstream"

    run(go())


def test_an_upstream_that_resets_before_it_answers_is_no_clean_turn(tmp_path: Path) -> None:
    async def answer(_: Got, writer: asyncio.StreamWriter) -> None:
        writer.transport.abort()

    async def go() -> None:
        async with stage(answer, tmp_path) as on:
            status, body = await on.post("/v1/responses", BODY)
            assert status == 502
            assert json.loads(body)["error"]["type"] == "server_error"
            assert len(on.upstream.got) == 1

    run(go())


def test_a_silent_upstream_is_given_up_where_that_is_set(tmp_path: Path) -> None:
    async def answer(_: Got, __: asyncio.StreamWriter) -> None:
        await asyncio.Event().wait()

    async def go() -> None:
        async with stage(answer, tmp_path, settings=GatewaySettings(silence=0.2, grace=1)) as on:
            assert (await on.post("/v1/messages", BODY))[0] == 504

    run(go())


@pytest.mark.parametrize(
    ("base", "path", "address"),
    [
        ("https://a.example", "/v1/messages?beta=true", "https://a.example/v1/messages?beta=true"),
        ("https://a.example/v1", "/v1/messages", "https://a.example/v1/messages"),
        ("https://a.example/api/v4/", "/v1/chat/completions", "https://a.example/api/v4/chat/completions"),
        ("https://a.example/api", "/v1/responses", "https://a.example/api/v1/responses"),
        ("https://a.example/v1", "/api/hello", "https://a.example/v1/api/hello"),
    ],
)
def test_an_upstreams_base_address_may_have_a_path(base: str, path: str, address: str) -> None:
    assert join_address(base, path) == address


def test_requests_can_name_the_upstream_in_their_path(tmp_path: Path) -> None:
    async def go() -> None:
        async with stage(says(b"{}"), tmp_path) as on:
            await on.post("/anthropic/v1/messages?beta=true", BODY)
            assert on.upstream.got[0].line == "POST /v1/messages?beta=true HTTP/1.1"

    run(go())


def test_a_request_whose_client_waits_for_leave_to_send_is_given_it(tmp_path: Path) -> None:
    async def go() -> None:
        async with stage(says(b"{}"), tmp_path) as on:
            async with on.client.post(on.url + "/v1/messages", data=BODY, expect100=True) as answer:
                assert answer.status == 200
            assert on.upstream.got[0].header("expect") == []
            assert on.upstream.got[0].body == BODY

    run(go())
