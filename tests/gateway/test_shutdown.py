"""A gateway ends on request, even if a part of it hangs."""

import asyncio
import json
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import aiohttp
import pytest
from tests.gateway.hanging_gateway import PARTS
from tests.gateway.processes import until
from tests.gateway.test_serve import refused
from tests.gateway.upstreams import Upstream, run, streams

ROOT = Path(__file__).resolve().parents[2]
BEGINS = b'event: content_block_start\ndata: {"type":"content_block_start","index":%d,"content_block":%b}\n\n'
PEEK = b'{"type":"tool_use","id":"toolu_1","name":"peek","input":{}}'
CALL = [
    b'event: message_start\ndata: {"type":"message_start","message":{"id":"m","usage":{"input_tokens":3}}}\n\n',
    BEGINS % (0, PEEK),
    b'event: content_block_stop\ndata: {"type":"content_block_stop","index":0}\n\n',
    b'event: message_delta\ndata: {"type":"message_delta","delta":{"stop_reason":"tool_use"},"usage":{"output_tokens":2}}\n\n',
    b'event: message_stop\ndata: {"type":"message_stop"}\n\n',
]
SAID = [
    CALL[0],
    BEGINS % (0, b'{"type":"text","text":"hm"}'),
    BEGINS % (1, PEEK),
    *CALL[2:],
]
BODY = b'{"model":"m","messages":[{"role":"user","content":"hello"}]}'


@contextmanager
def hanging_process(upstream: str, part: str) -> Iterator[tuple[str, "subprocess.Popen[str]", list[str]]]:
    """A gateway of which a part hangs, where it listens, and what it wrote."""
    command = [sys.executable, "-m", "tests.gateway.hanging_gateway", upstream, part]
    with subprocess.Popen(  # noqa: S603 -- our own
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=ROOT
    ) as process:
        told: list[str] = []
        stderr, stdout = process.stderr, process.stdout
        assert stderr is not None
        assert stdout is not None
        reading = threading.Thread(target=lambda: told.extend(iter(stderr.readline, "")))
        reading.start()
        try:
            line = stdout.readline()
            assert line, told
            yield json.loads(line)["url"], process, told
        finally:
            process.kill()
            reading.join()


async def provoked(url: str, part: str, told: list[str]) -> None:
    """Have the gateway come to the part that hangs; the client does not wait for it."""
    async with aiohttp.ClientSession() as client:
        with_type = {"Content-Type": "application/json"}

        async def call() -> None:
            async with client.post(url + "/v1/messages", data=BODY, headers=with_type) as answer:
                await answer.read()

        async def look() -> None:
            async with client.get(url + "/api/search?q=x") as answer:
                await answer.read()

        doing = asyncio.ensure_future(look() if part == "looker" else call())
        if part == "close":
            await doing
            return
        await asyncio.to_thread(until, lambda: f"hangs in {part}\n" in told)
        if part in ("prepare", "observe"):
            await doing  # the client has its answer all the same
        else:
            doing.cancel()
            await asyncio.gather(doing, return_exceptions=True)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("part", "often"), [*((part, 1) for part in PARTS), ("prepare", 2), ("observe", 2), ("spliced", 2)]
)
def test_it_ends_within_seconds_and_told_twice_at_once(part: str, often: int) -> None:
    async def go() -> None:
        upstream = Upstream(streams(CALL if part == "recall" else SAID))
        server = await asyncio.start_server(upstream.serve, "127.0.0.1", 0)
        upstream.port = server.sockets[0].getsockname()[1]
        with hanging_process(upstream.url, part) as (url, process, told):
            await provoked(url, part, told)
            for number in range(often):
                if number:
                    await refused(url)  # it has heard of the first one
                process.send_signal(signal.SIGTERM if often == 1 else signal.SIGINT)
            await asyncio.to_thread(process.wait, 60)
            assert "Traceback" not in "".join(told)
        server.close()

    run(go())
