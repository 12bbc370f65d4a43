"""An upstream that shows each byte it was sent and answers with the bytes it is told to; and a gateway in front of it."""

import asyncio
import io
import json
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, TypeVar

import aiohttp

from pagein.gateway.curation.guarded_curator import Curator, PassThrough
from pagein.gateway.http.access import Handler
from pagein.gateway.http.headers import PROOF
from pagein.gateway.kill_switch import Switch
from pagein.gateway.pages.json_logs import logger_to
from pagein.gateway.server import Gateway, GatewayParts
from pagein.gateway.settings import GatewaySettings

T = TypeVar("T")
Answer = Callable[["Got", asyncio.StreamWriter], Awaitable[None]]
_PATIENCE = 300.0
"""Seconds after which nobody waits any more: no test is to be told from another by how fast the machine is."""


@dataclass(frozen=True)
class Got:
    """One request as it arrived: the head as it stood on the wire, and the body out of its transfer coding."""

    line: str
    headers: list[tuple[str, str]]
    body: bytes

    def header(self, name: str) -> list[str]:
        return [value for key, value in self.headers if key.lower() == name]


@dataclass
class Upstream:
    """A server on raw sockets, so that nothing is put right before a test can see it. chunks: of bodies, as they come."""

    answer: Answer
    got: list[Got] = field(default_factory=list)
    gone: asyncio.Event = field(default_factory=asyncio.Event)
    chunks: list[bytes] = field(default_factory=list)
    port: int = 0

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while (got := await read_request(reader, self.chunks)) is not None:
                self.got.append(got)
                answering = asyncio.ensure_future(self.answer(got, writer))
                watching = asyncio.ensure_future(reader.read(1))
                await asyncio.wait([answering, watching], return_when=asyncio.FIRST_COMPLETED)
                if watching.done():
                    self.gone.set()
                    answering.cancel()
                    break
                watching.cancel()
                await asyncio.gather(watching, return_exceptions=True)
                if answering.exception() is not None or writer.is_closing():
                    break
        except (ConnectionError, asyncio.IncompleteReadError):
            self.gone.set()
        finally:
            writer.close()


async def read_request(reader: asyncio.StreamReader, chunks: list[bytes]) -> Got | None:
    try:
        head = await reader.readuntil(b"\r\n\r\n")
    except asyncio.IncompleteReadError:
        return None
    line, *rest = head.decode("latin-1").rstrip("\r\n").split("\r\n")
    headers = [(name, value.strip()) for name, _, value in (one.partition(":") for one in rest)]
    low = {name.lower(): value for name, value in headers}
    if low.get("transfer-encoding") == "chunked":
        first = len(chunks)
        while size := int(await reader.readline(), 16):
            chunks.append(await reader.readexactly(size))
            await reader.readexactly(2)
        await reader.readexactly(2)
        body = b"".join(chunks[first:])
    else:
        body = await reader.readexactly(int(low.get("content-length", "0")))
    return Got(line, headers, body)


def says(body: bytes, *headers: str, status: str = "200 OK") -> Answer:
    """An answer of known length."""

    async def answer(_: Got, writer: asyncio.StreamWriter) -> None:
        head = [f"HTTP/1.1 {status}", *headers, f"Content-Length: {len(body)}"]
        writer.write("\r\n".join(head).encode("latin-1") + b"\r\n\r\n" + body)
        await writer.drain()

    return answer


def streams(
    parts: list[bytes], *headers: str, pause: float = 0.0, end: bool = True, hold: asyncio.Event | None = None
) -> Answer:
    """An answer in chunks, each written by itself; without its end where a break is wanted. hold: what the last chunk waits for."""

    async def answer(_: Got, writer: asyncio.StreamWriter) -> None:
        head = ["HTTP/1.1 200 OK", "Content-Type: text/event-stream", "Transfer-Encoding: chunked", *headers]
        writer.write("\r\n".join(head).encode() + b"\r\n\r\n")
        for number, part in enumerate(parts, 1):
            if hold is not None and number == len(parts):
                await hold.wait()
            writer.write(b"%x\r\n%b\r\n" % (len(part), part))
            await writer.drain()
            await asyncio.sleep(pause)
        if end:
            writer.write(b"0\r\n\r\n")
            await writer.drain()
        else:
            writer.close()

    return answer


@dataclass
class Stage:
    """A gateway between a client and an upstream."""

    gateway: Gateway
    upstream: Upstream
    client: aiohttp.ClientSession
    log: io.StringIO

    @property
    def url(self) -> str:
        return self.gateway.url

    @property
    def shown(self) -> dict[str, str]:
        """The header that shows the token."""
        return {PROOF: self.gateway.token}

    async def post(self, path: str, body: bytes, **headers: str) -> tuple[int, bytes]:
        named = {"Content-Type": "application/json"} | {
            name.replace("_", "-"): value for name, value in headers.items()
        }
        async with self.client.post(self.url + path, data=body, headers=named) as answer:
            return answer.status, await answer.read()

    async def direct(self, url: str, body: bytes) -> tuple[int, bytes]:
        """What is answered without the gateway."""
        headers = {"Content-Type": "application/json", "x-api-key": "k"}
        async with self.client.post(url, data=body, headers=headers) as answer:
            return answer.status, await answer.read()

    def logged(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in self.log.getvalue().splitlines()]

    async def calls(self) -> list[dict[str, Any]]:
        """What was told of calls so far, when all has been told."""
        assert self.gateway._relay is not None
        await self.gateway._relay.idle.wait()
        await self.gateway._relay.wait_for_reports()
        return [line for line in self.logged() if line["event"] == "call"]


@asynccontextmanager
async def stage(
    answer: Answer,
    tmp_path: Path,
    *,
    curator: Curator | None = None,
    settings: GatewaySettings | None = None,
    environment: dict[str, str] | None = None,
    services: Mapping[str, Handler] | None = None,
) -> AsyncIterator[Stage]:
    upstream = Upstream(answer)
    server = await asyncio.start_server(upstream.serve, "127.0.0.1", 0, limit=1 << 20)
    upstream.port = server.sockets[0].getsockname()[1]
    base = settings if settings is not None else GatewaySettings(grace=2, budget=60)
    chosen = replace(base, anthropic=upstream.url, openai=upstream.url, google=upstream.url, port=0)
    log = io.StringIO()
    switch, logger = Switch(tmp_path / "off", environment or {}), logger_to(log, logging.INFO)
    parts = GatewayParts(curator or PassThrough(), None, switch, logger, services=services or {})
    async with Gateway(chosen, parts) as gateway, aiohttp.ClientSession() as client:
        yield Stage(gateway, upstream, client, log)
    server.close()
    await server.wait_closed()


@asynccontextmanager
async def gateway_to(url: str, tmp_path: Path, curator: Curator) -> AsyncIterator[Stage]:
    """A gateway in front of a provider."""
    log = io.StringIO()
    parts = GatewayParts(curator, None, Switch(tmp_path / "off", {}), logger_to(log, logging.INFO))
    chosen = GatewaySettings(anthropic=url, openai=url, google=url, port=0, grace=2, budget=60)
    async with Gateway(chosen, parts) as gateway, aiohttp.ClientSession() as client:
        yield Stage(gateway, Upstream(says(b"")), client, log)


def run(doing: Coroutine[Any, Any, T]) -> T:
    async def timed() -> T:
        return await asyncio.wait_for(doing, _PATIENCE)

    return asyncio.run(timed())


async def until(true: Callable[[], object]) -> None:
    """Wait for what is about to be."""
    while not true():  # noqa: ASYNC110 -- others tell by what they have become
        await asyncio.sleep(0.01)
