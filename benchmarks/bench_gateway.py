"""The time that the gateway adds to a call, beside a plain relay on the same stack and in the same run.

The relay is the least that forwards a request: no headers looked at, nothing read along. Upstream, relay, gateway and client are
processes of their own on loopback. `python benchmarks/bench_gateway.py upstream|relay URL` are the first two; `memory` measures only what
memory costs a call.
"""

import asyncio
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, Final

from aiohttp import ClientSession, ClientTimeout, DummyCookieJar, TCPConnector, web
from multidict import CIMultiDict
from yarl import URL

_ROUNDS: Final = 40
_PAUSE: Final = 0.2
"""Seconds between two calls, as an agent's tool takes."""
_EVENTS: Final = 20_000
_IDLE: Final = 200
_REQUESTS: Final = 30_000
_GROUP: Final = 500
_HEADERS: Final = {"Content-Type": "application/json", "x-api-key": "none", "anthropic-version": "2023-06-01"}
_TOOL: Final = {"name": "Bash", "description": "run", "input_schema": {"type": "object", "properties": {}}}
_DROPPED: Final = {
    "host",
    "connection",
    "transfer-encoding",
    "content-length",
    "keep-alive",
    "upgrade",
    "te",
    "trailer",
}


_BESIDE: Final = 60
"""Rounds of the comparison with and without memory, for each pause."""
_OPENING: Final = 4
"""The first rounds, which open the session and are not counted."""
_PAUSES: Final = {"calls at once": 0.05, "calls after pauses": 1.2}
"""Seconds between two rounds: without and with time to bring memory up."""


def measure_memory() -> dict[str, float]:
    """What memory costs a call, in both orders."""
    with ExitStack() as stack:
        upstream, _ = stack.enter_context(_process(__file__, "upstream"))
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        serve: tuple[str, ...] = ("-m", "pagein", "serve", "--port", "0", "--json", "--log", os.devnull)
        serve += ("--anthropic", upstream, "--openai", upstream)
        remembers, _ = stack.enter_context(_process(*serve, "--store", str(folder / "with.pagein")))
        forgets, _ = stack.enter_context(_process(*serve, "--store", str(folder / "without.pagein"), memory="false"))
        return asyncio.run(_asked_both(remembers, forgets))


async def _asked_both(remembers: str, forgets: str) -> dict[str, float]:
    async with ClientSession(connector=TCPConnector(limit=0)) as client:
        return await _beside(client, remembers, forgets)


def measure() -> dict[str, float]:
    with ExitStack() as stack:
        upstream, _ = stack.enter_context(_process(__file__, "upstream"))
        relay, _ = stack.enter_context(_process(__file__, "relay", upstream))
        folder = stack.enter_context(tempfile.TemporaryDirectory())
        store = str(Path(folder) / "store.pagein")
        serve: tuple[str, ...] = ("-m", "pagein", "serve", "--port", "0", "--json", "--log", os.devnull)
        serve += ("--anthropic", upstream, "--openai", upstream)
        gateway, pid = stack.enter_context(_process(*serve, "--store", store))
        measuring, _ = stack.enter_context(_process(*serve, "--measure"))
        other = str(Path(folder) / "other.pagein")
        forgetful, _ = stack.enter_context(_process(*serve, "--store", other, memory="false"))
        return asyncio.run(_measured(relay, gateway, measuring, forgetful, pid))


async def _measured(relay: str, gateway: str, measuring: str, forgetful: str, pid: int) -> dict[str, float]:
    figures: dict[str, float] = {}
    async with ClientSession(connector=TCPConnector(limit=0)) as client:
        figures |= await _latency(client, relay, gateway, forgetful)
        figures |= await _beside(client, gateway, forgetful)
        figures |= await _first_byte(client, relay, gateway, measuring)
        figures |= await _throughput(client, relay, gateway)
        figures |= await _idle(client, gateway, pid)
        figures |= await _memory(client, gateway, pid)
    return figures


async def _latency(client: ClientSession, relay: str, gateway: str, forgetful: str) -> dict[str, float]:
    """Milliseconds for a request of 1 MB and a short answer, of a session that grows call by call.

    forgetful: a gateway that makes no objects from its journals (setting `memory`)
    """
    session = _session("latency", 1_000_000)
    plain, ours, without = [], [], []
    for number in range(_ROUNDS):
        body = json.dumps(session).encode()
        plain.append(await _timed(client, relay, body))
        ours.append(await _timed(client, gateway, body))
        without.append(await _timed(client, forgetful, body))
        _grow(session, number)
        await asyncio.sleep(_PAUSE)
    plain, ours, without = plain[3:], ours[3:], without[3:]
    return {
        "1 MB request, gateway without memory, ms, median": statistics.median(without),
        "1 MB request, plain relay, ms, median": statistics.median(plain),
        "1 MB request, gateway, ms, median": statistics.median(ours),
        "1 MB request, added, ms, median": statistics.median(one - two for one, two in zip(ours, plain, strict=True)),
    }


async def _beside(client: ClientSession, remembers: str, forgets: str) -> dict[str, float]:
    """Milliseconds for a request of 1 MB with memory and without, in turn first and second in a round."""
    figures: dict[str, float] = {}
    ways = {"with memory": remembers, "without memory": forgets}
    for name, pause in _PAUSES.items():
        session, took = _session(name, 1_000_000), {(way, place): list[float]() for way in ways for place in (1, 2)}
        for number in range(_BESIDE + _OPENING):
            body = json.dumps(session).encode()
            for place, way in enumerate(sorted(ways, reverse=bool(number % 2)), 1):
                took[way, place].append(await _timed(client, ways[way], body))
            _grow(session, number)
            await asyncio.sleep(pause)
        found = {key: times[_OPENING // 2 :] for key, times in took.items()}
        for (way, place), times in found.items():
            figures[f"{name}, {way}, asked {place}., ms, median"] = statistics.median(times)
        for way in ways:
            figures[f"{name}, {way}, ms, median"] = statistics.median(found[way, 1] + found[way, 2])
    return figures


async def _first_byte(client: ClientSession, relay: str, gateway: str, measuring: str) -> dict[str, float]:
    """Milliseconds until the first byte of a stream, for a turn of a session of about 10 KB; and where nothing is decided."""
    took: dict[str, list[float]] = {relay: [], gateway: [], measuring: []}
    for number in range(_ROUNDS):
        session = _session(f"first {number}", 4_000) | {"stream": True, "events": 3}
        for turn in range(4):
            body = json.dumps(session).encode()
            for address in sorted(
                took, key=lambda one: hash((number, turn, one))
            ):  # who follows whom makes a difference
                found = await _timed(client, address, body, whole=False)
                if turn:  # the first one opens the session
                    took[address].append(found)
            _grow(session, f"{number} {turn}")
    plain, ours, bare = took.values()
    return {
        "first byte, plain relay, ms, median": statistics.median(plain),
        "first byte, added, ms, median": statistics.median(one - two for one, two in zip(ours, plain, strict=True)),
        "first byte, added where nothing is decided, ms, median": statistics.median(
            one - two for one, two in zip(bare, plain, strict=True)
        ),
    }


async def _throughput(client: ClientSession, relay: str, gateway: str) -> dict[str, float]:
    """Events a second of one long stream, the best of several in turn."""
    plain, offering = (_session(name, 1_000) | {"stream": True, "events": _EVENTS} for name in ("events", "watched"))
    bodies = [json.dumps(one).encode() for one in (plain, offering | {"tools": [_TOOL]})]
    ways = {
        "relay": (relay, bodies[0]),
        "ours": (gateway, bodies[0]),
        "again": (relay, bodies[1]),
        "watched": (gateway, bodies[1]),
    }
    rates: dict[str, list[float]] = {name: [] for name in ways}
    for _ in range(5):
        # in turn: the gateway reads an answer when it is over, beside the next
        for name, (address, body) in ways.items():
            rates[name].append(_EVENTS * 1000 / await _timed(client, address, body))
    plain_rate, ours, watched = (max(rates[name]) for name in ("relay", "ours", "watched"))
    return {
        "events a second, gateway that watches for recalls / relay": watched / plain_rate,
        "events a second, plain relay": plain_rate,
        "events a second, gateway": ours,
        "events a second, gateway / relay": ours / plain_rate,
    }


async def _idle(client: ClientSession, gateway: str, pid: int) -> dict[str, float]:
    """Many streams that say something now and then."""
    body = json.dumps(_session("idle", 1_000) | {"stream": True, "events": 20, "pause": 0.1}).encode()
    before = _resident(pid)
    answers = asyncio.gather(*(_answer(client, gateway, body) for _ in range(_IDLE)))
    await asyncio.sleep(1)
    during = _resident(pid)
    whole = sum(answer.endswith(_STOP) for answer in await answers)
    return {f"{_IDLE} idle streams, whole": float(whole), f"{_IDLE} idle streams, MB more": during - before}


async def _memory(client: ClientSession, gateway: str, pid: int) -> dict[str, float]:
    """Memory after many requests of many sessions: it grows until what is kept at hand is full, and no more."""
    sent, resident = 0, dict[int, float]()
    began = time.perf_counter()
    while sent < _REQUESTS:
        sessions = [_session(f"memory {sent} {number}", 4_000) for number in range(10)]
        for turn in range(_GROUP // 10):
            await asyncio.gather(*(_answer(client, gateway, json.dumps(one).encode()) for one in sessions))
            for one in sessions:
                _grow(one, turn)
        sent += _GROUP
        resident[sent] = _resident(pid)
    third = _REQUESTS // 3
    return {f"{count} requests, MB": resident[count] for count in (third, 2 * third, _REQUESTS)} | {
        f"{sent} requests, a second": sent / (time.perf_counter() - began),
        f"{sent} requests, MB / MB after {2 * third}": resident[_REQUESTS] / resident[2 * third],
    }


def _session(name: str, size: int) -> dict[str, Any]:
    """A request of a session with results of 4 KB."""
    messages: list[dict[str, Any]] = [{"role": "user", "content": f"fix {name}"}]
    body = {"model": "claude-sonnet-4-5", "max_tokens": 100, "messages": messages}
    for number in range(max(size // 4_200, 1)):
        _grow(body, f"{name} {number}")
    return body


def _grow(body: dict[str, Any], number: object) -> None:
    call = f"toolu_{len(body['messages'])}"
    text = "".join(f"{number} line {line}: some text of a file that was read\n" for line in range(65))
    use = {"type": "tool_use", "id": call, "name": "Bash", "input": {"command": f"cat file-{number}.txt"}}
    body["messages"] += [
        {"role": "assistant", "content": [{"type": "text", "text": "looking"}, use]},
        {"role": "user", "content": [{"type": "tool_result", "tool_use_id": call, "content": text}]},
    ]


async def _timed(client: ClientSession, address: str, body: bytes, *, whole: bool = True) -> float:
    began = time.perf_counter()
    async with client.post(address + "/v1/messages", data=body, headers=_HEADERS) as answer:
        await answer.content.readany()
        took = time.perf_counter() - began
        while await answer.content.readany():
            pass
    return 1000 * (time.perf_counter() - began if whole else took)


async def _answer(client: ClientSession, address: str, body: bytes) -> bytes:
    async with client.post(address + "/v1/messages", data=body, headers=_HEADERS) as answer:
        return await answer.read()


def _resident(pid: int) -> float:
    """Megabytes in memory."""
    for line in Path(f"/proc/{pid}/status").read_text(encoding="ascii").splitlines():
        if line.startswith("VmRSS:"):
            return int(line.split()[1]) / 1024
    return 0.0


@contextmanager
def _process(*arguments: str, memory: str = "true") -> Iterator[tuple[str, int]]:
    """A process that prints where it listens, and its id.

    memory: the setting `memory` of a gateway
    """
    settings = {**os.environ, "PAGEIN_MEMORY": memory}
    with subprocess.Popen([sys.executable, *arguments], stdout=subprocess.PIPE, text=True, env=settings) as process:
        try:
            line = process.stdout.readline() if process.stdout is not None else ""
            yield json.loads(line)["url"], process.pid
        finally:
            process.terminate()


# --- the processes ---------------------------------------------------------------------------------------------------

_START: Final = (
    b'event: message_start\ndata: {"type":"message_start","message":{"usage":{"input_tokens":9,"output_tokens":1}}}\n\n'
)
_DELTA: Final = b'event: content_block_delta\ndata: {"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"a few words"}}\n\n'
_STOP: Final = b'event: message_stop\ndata: {"type":"message_stop"}\n\n'
_WHOLE: Final = b'{"type":"message","role":"assistant","content":[],"stop_reason":"end_turn","usage":{"input_tokens":9,"output_tokens":1}}'


async def _upstream(request: web.Request) -> web.StreamResponse:
    body = await request.read()
    if b'"stream"' not in body:
        return web.Response(body=_WHOLE, content_type="application/json")
    asked = json.loads(body)
    answer = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
    await answer.prepare(request)
    await answer.write(_START)
    for _ in range(asked.get("events", 1)):
        await answer.write(_DELTA)
        if pause := asked.get("pause"):
            await asyncio.sleep(pause)
    await answer.write(_STOP)
    return answer


def _relay(upstream: str, client: ClientSession) -> Callable[[web.Request], Awaitable[web.StreamResponse]]:
    async def relay(request: web.Request) -> web.StreamResponse:
        async with client.request(
            request.method,
            URL(upstream + request.raw_path, encoded=True),
            headers=CIMultiDict(
                (name, value) for name, value in request.headers.items() if name.lower() not in _DROPPED
            ),
            data=await request.read() or None,
            allow_redirects=False,
        ) as got:
            kept = CIMultiDict((name, value) for name, value in got.headers.items() if name.lower() not in _DROPPED)
            answer = web.StreamResponse(status=got.status, headers=kept)
            await answer.prepare(request)
            async for part in got.content.iter_any():
                await answer.write(part)
            return answer

    return relay


async def _served(upstream: str | None) -> None:
    client = ClientSession(
        auto_decompress=False,
        cookie_jar=DummyCookieJar(),
        connector=TCPConnector(limit=0),
        timeout=ClientTimeout(total=None),
    )
    app = web.Application(client_max_size=1 << 28)
    app.router.add_route("*", "/{path:.*}", _upstream if upstream is None else _relay(upstream, client))
    runner = web.AppRunner(app, handler_cancellation=True, access_log=None)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    sys.stdout.write(json.dumps({"url": f"http://127.0.0.1:{runner.addresses[0][1]}"}) + "\n")
    sys.stdout.flush()
    await asyncio.Event().wait()


if __name__ == "__main__":
    if sys.argv[1] == "memory":
        for told, figure in measure_memory().items():
            sys.stdout.write(f"{told}: {figure:.2f}\n")
        sys.exit()
    import uvloop

    uvloop.run(_served(sys.argv[2] if sys.argv[1] == "relay" else None))
