"""Client and upstream see the same through the gateway as without it, in any notation."""

import asyncio
import gzip
import json
from pathlib import Path

import pytest
import zstandard
from tests.gateway.curation.test_guarded_curator import Scripted
from tests.gateway.stream.test_long_answers import DELTA, offering, plain
from tests.gateway.test_shutdown import BEGINS, CALL
from tests.gateway.upstreams import Answer, Got, gateway_to, run, stage, streams

BODY = json.dumps({"model": "m", "stream": True, "messages": [{"role": "user", "content": "hé" * 40_000}]}).encode()
WORDS = "hé😀, e\u0301 — 你好".encode()
TEXT = b"".join([CALL[0], BEGINS % (0, b'{"type":"text","text":""}'), DELTA.replace(b"word", WORDS) * 3, *CALL[2:]])
TEXT = TEXT.replace(b"tool_use", b"end_turn")
BYTES = [TEXT[place : place + 1] for place in range(len(TEXT))]
HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nrequest-id: req_1\r\n"


def raw(text: bytes, *, ends: bool = True) -> Answer:
    """An answer as it stands on the wire; the connection ends with it or not."""

    async def answer(_: Got, writer: asyncio.StreamWriter) -> None:
        writer.write(text)
        await writer.drain()
        if ends:
            writer.close()

    return answer


STREAMS: dict[str, Answer] = {
    "LF": streams([TEXT]),
    "CRLF": streams([TEXT.replace(b"\n", b"\r\n")]),
    "CR": streams([TEXT.replace(b"\n", b"\r")]),
    "LF and CRLF": streams([TEXT.replace(b"\n\nevent: content", b"\n\r\nevent: content")]),
    "byte by byte": streams(BYTES),
    "CRLF byte by byte": streams([one.replace(b"\n", b"\r\n") for one in BYTES]),
    "byte order mark": streams([b"\xef\xbb\xbf" + TEXT]),
    "comments": streams([b": well\n\n" + TEXT.replace(b"\n\n", b"\n: so\n\n: and so\n\n")]),
    "trailing spaces": streams([TEXT.replace(b"}\n\n", b"}  \n\n")]),
    "data in lines": streams([TEXT.replace(b',"index"', b',\ndata: "index"')]),
    "other fields": streams([b"id: 1\nretry: 100\nwhat: ever\n" + TEXT]),
    "until the connection ends": raw(HEAD + b"Connection: close\r\n\r\n" + TEXT),
    "an older protocol": raw(HEAD.replace(b"1.1", b"1.0") + b"\r\n" + TEXT),
    "hints first": raw(b"HTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\n" + HEAD + b"\r\n" + TEXT),
}
BREAKS: dict[str, Answer] = {
    "in a frame": streams([TEXT[:-40]], end=False),
    "in a chunk": raw(HEAD + b"Transfer-Encoding: chunked\r\n\r\n99\r\n" + TEXT[:50]),
    "in a body": raw(
        HEAD.replace(b"event-stream", b"json").replace(b"text", b"application") + b"Content-Length: 99\r\n\r\n{"
    ),
}
ways = pytest.mark.parametrize("prepare", [plain, offering], ids=["beside", "woven"])


def request(*headers: str, body: bytes = BODY, line: str = "POST /v1/messages HTTP/1.1", length: bool = True) -> bytes:
    told = ["Host: 127.0.0.1", "Content-Type: application/json", *headers]
    told += [f"Content-Length: {len(body)}"] if length else []
    return "\r\n".join([line, *told]).encode() + b"\r\n\r\n" + body


def chunked(body: bytes, size: int) -> bytes:
    parts = [body[start : start + size] for start in range(0, len(body), size)]
    return b"".join(b"%x;what=ever\r\n%b\r\n" % (len(part), part) for part in parts) + b"0\r\n\r\n"


async def seen(url: str, sent: bytes) -> bytes:
    """Whatever comes back for these bytes until the answer or the connection is over."""
    reader, writer = await asyncio.open_connection("127.0.0.1", int(url.rpartition(":")[2]), limit=1 << 22)
    try:
        writer.write(sent)
        head = (await reader.readuntil(b"\r\n\r\n")).lower()
        if b"100 continue" in head:
            head = (await reader.readuntil(b"\r\n\r\n")).lower()
        text = b""
        if b"transfer-encoding: chunked" in head:
            while size := int(await reader.readline(), 16):
                text += await reader.readexactly(size + 2)
                text = text[:-2]
            return text
        if b"content-length" in head:
            return await reader.readexactly(int(head.split(b"content-length:")[1].split()[0]))
        return await reader.read()
    except (asyncio.IncompleteReadError, ValueError) as problem:
        return text + getattr(problem, "partial", b"") + b" -- and broke off"
    finally:
        writer.transport.abort()  # what is not sent yet is not wanted any more
        await asyncio.sleep(0)


@ways
@pytest.mark.parametrize("form", STREAMS)
def test_a_stream_is_the_same_however_it_is_written(form: str, prepare: object, tmp_path: Path) -> None:
    async def go() -> None:
        async with stage(STREAMS[form], tmp_path, curator=Scripted(prepare)) as on:  # type: ignore[arg-type]
            async with on.client.post(on.upstream.url, data=BODY) as answer:
                direct = await answer.read()
            assert await seen(on.url, request()) == direct
            (call,) = await on.calls()
            assert (call["finished"], call["unread"], call["output"]) == (True, "", 2)

    run(go())


@ways
@pytest.mark.parametrize("form", BREAKS)
def test_what_broke_off_breaks_off_behind_the_same_bytes(form: str, prepare: object, tmp_path: Path) -> None:
    async def go() -> None:
        async with stage(BREAKS[form], tmp_path, curator=Scripted(prepare)) as on:  # type: ignore[arg-type]
            told = await seen(on.url, request())
            came = {"in a frame": TEXT[:-40], "in a chunk": TEXT[:50], "in a body": b"{"}[form]
            assert told == came + b" -- and broke off"

    run(go())


@ways
@pytest.mark.parametrize(
    "sent",
    [
        request("Transfer-Encoding: chunked", length=False, body=b"") + chunked(BODY, 1000),
        request("Expect: 100-continue"),
        request(line="POST /v1/messages HTTP/1.0"),
        request("Connection: close"),
        request("Content-Encoding: gzip", body=gzip.compress(BODY)),
        request("Content-Encoding: zstd", body=zstandard.compress(BODY)),
        request("X-Long: " + "long " * 6000),
    ],
    ids=["chunks", "expect", "1.0", "close", "gzip", "zstd", "long header"],
)
def test_a_request_is_the_same_however_it_is_written(sent: bytes, prepare: object, tmp_path: Path) -> None:
    async def go() -> None:
        async with stage(streams([TEXT]), tmp_path, curator=Scripted(prepare)) as on:  # type: ignore[arg-type]
            assert await seen(on.url, sent) == TEXT
            (got,) = on.upstream.got
            coding = got.header("content-encoding")
            body = gzip.decompress(got.body) if coding == ["gzip"] else got.body
            assert (zstandard.decompress(body) if coding == ["zstd"] else body) == BODY

    run(go())


@pytest.mark.parametrize("method", ["HEAD", "OPTIONS", "GET", "DELETE", "PUT", "PATCH"])
@pytest.mark.parametrize("path", ["/v1/messages", "/v1/models", "/v1/files/a%2Fb?x=%20+"])
def test_other_methods_pass_as_they_are(method: str, path: str, tmp_path: Path) -> None:
    async def go() -> None:
        answer = raw(
            b"HTTP/1.1 405 No\r\nAllow: POST\r\nAccess-Control-Allow-Origin: *\r\nContent-Length: 0\r\n\r\n", ends=False
        )
        async with stage(answer, tmp_path, curator=Scripted(offering)) as on:
            assert await seen(on.url, request("Origin: http://x", line=f"{method} {path} HTTP/1.1", body=b"")) == b""
            (got,) = on.upstream.got
            assert got.line == f"{method} {path} HTTP/1.1"
            assert got.header("origin") == ["http://x"]

    run(go())


def test_an_answer_that_comes_before_the_body_was_read_is_the_clients(tmp_path: Path) -> None:
    gone = asyncio.Event()

    async def early(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 413 Too Large\r\nContent-Length: 2\r\nConnection: close\r\n\r\nno")
        await writer.drain()
        await gone.wait()  # servers linger, so that what was sent meanwhile does not cost the sender the answer
        writer.transport.abort()

    async def go() -> None:
        server = await asyncio.start_server(early, "127.0.0.1", 0)
        url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
        async with gateway_to(url, tmp_path, Scripted(plain)) as on:
            for path in ("/v1/messages", "/v1/files"):
                sent = request(line=f"POST {path} HTTP/1.1", body=b'{"a":"' + b"x" * (6 << 20) + b'"}')
                assert await seen(on.url, sent) == b"no"
            gone.set()
            await asyncio.sleep(0.05)
        server.close()

    run(go())


def test_a_connection_goes_on_where_the_upstream_hangs_up_behind_each_answer(tmp_path: Path) -> None:
    async def go() -> None:
        answer = raw(b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 2\r\n\r\n{}")
        async with stage(answer, tmp_path, curator=Scripted(plain)) as on:
            for _ in range(30):
                assert await on.post("/v1/messages", BODY) == (200, b"{}")

    run(go())
