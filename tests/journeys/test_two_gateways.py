"""Two gateways on one PostgreSQL database, one of them killed repeatedly: no content is lost, and no byte of a branch
changes.
"""

import asyncio
import contextlib
import itertools
import os
import signal
import subprocess
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from urllib.parse import quote

import aiohttp
import psycopg
from tests.gateway.processes import gateway_process
from tests.gateway.test_serve import conversation, sent
from tests.gateway.upstreams import run

from pagein import wiring
from pagein.simulator import SimulatedProvider
from pagein.store.postgres.postgres_database import PostgresDatabase

_NUMBERS = itertools.count()
_DELAYS = (0.0, 0.03, 0.07, 0.12)
"""Seconds after which each request is cut short by a death."""


@contextmanager
def database(server: str) -> Iterator[str]:
    """A database of its own on this server."""
    name = f"gateways_{os.getpid()}_{next(_NUMBERS)}"
    with psycopg.connect(server, autocommit=True) as admin:
        admin.execute(f'CREATE DATABASE "{name}"')
        parts = psycopg.conninfo.conninfo_to_dict(server)
        yield f"postgresql://{parts['user']}@/{name}?host={quote(str(parts['host']), safe='')}"


def test_two_gateways_on_one_database_go_on_with_the_same_bytes_while_one_is_killed(
    postgres: str, tmp_path: Path
) -> None:
    def started(stack: ExitStack, upstream: str, address: str) -> tuple[str, "subprocess.Popen[str]"]:
        folder = tmp_path / f"gateway-{next(numbers)}"
        folder.mkdir()
        return stack.enter_context(gateway_process(upstream, folder, "--store", address, "--budget", "20"))

    numbers = itertools.count()
    bodies: list[list[object]] = []
    with SimulatedProvider() as provider, database(postgres) as address, ExitStack() as stack:
        steady, _ = started(stack, provider.url, address)
        shaky, process = started(stack, provider.url, address)
        for turns in range(12):
            asked = conversation(turns) | {"cache_control": {"type": "ephemeral"}}
            assert run(sent(steady, asked))[0] == 200
            if turns % 3 == 2 and turns // 3 < len(_DELAYS):
                killer = threading.Timer(_DELAYS[turns // 3], process.send_signal, (signal.SIGKILL,))
                killer.start()
                with contextlib.suppress(aiohttp.ClientError):  # it dies in the middle of it
                    run(sent(shaky, asked))
                killer.join()
                process.wait(10)
                shaky, process = started(stack, provider.url, address)
            assert run(sent(shaky, asked))[0] == 200
            assert provider.requests[-1].body == provider.requests[-2].body
            bodies.append(provider.requests[-1].body["messages"])
        assert [record.refused for record in provider.requests if record.refused] == []
        assert all(after[: len(before)] == before for before, after in itertools.pairwise(bodies))
        originals = [message["content"][0]["content"] for message in conversation(11)["messages"][2::2]]  # type: ignore[index]
        results = [message["content"][0]["content"] for message in bodies[-1][2::2]]  # type: ignore[index]
        changed = [(now, before) for now, before in zip(results, originals, strict=True) if now != before]
        assert changed
        with wiring.open(address) as engine:
            for now, before in changed:
                found = [word.strip(".,;:()[]\"'") for word in now.split()]
                assert engine.recall(next(word for word in found if word.startswith("pg-"))) == before


def test_gateways_work_without_their_database(tmp_path: Path) -> None:
    address = "postgresql://nobody@127.0.0.1:1/none"
    with (
        SimulatedProvider() as provider,
        gateway_process(provider.url, tmp_path, "--store", address, "--budget", "1") as (url, _),
    ):
        for turns in range(2):
            assert run(sent(url, conversation(turns)))[0] == 200
            assert provider.requests[-1].body["messages"] == conversation(turns)["messages"]


def _said(folder: Path) -> str:
    """What the gateway told in its log of operations."""
    return (folder / "gateway.jsonl").read_text()


async def _talk(url: str, name: str, turns: int) -> list[int]:
    return [(await sent(url, conversation(turn, name)))[0] for turn in range(turns)]


async def _talk_at_once(urls: list[str], sessions: int, turns: int) -> list[list[int]]:
    talks = [_talk(url, f"task {number} at {url}", turns) for url in urls for number in range(sessions)]
    return await asyncio.gather(*talks)


def test_two_gateways_under_load_meet_no_lock_timeout(postgres: str, tmp_path: Path) -> None:
    """Three sessions at once through each: their writers queue for one lock, and none waits so long that its agent goes without."""
    folders = [tmp_path / name for name in ("one", "other")]
    with SimulatedProvider() as provider, database(postgres) as address, ExitStack() as stack:
        urls: list[str] = []
        for folder in folders:
            folder.mkdir()
            process = gateway_process(provider.url, folder, "--store", address, "--budget", "20")
            urls.append(stack.enter_context(process)[0])
        answers = run(_talk_at_once(urls, 3, 6))
        assert answers == [[200] * 6] * 6
        assert [record.refused for record in provider.requests if record.refused] == []
    for folder in folders:
        assert "lock timeout" not in _said(folder)
        assert "others are at work" not in _said(folder)


def test_a_gateway_that_cannot_have_the_lock_sends_what_its_client_sent_and_says_so(
    postgres: str, tmp_path: Path
) -> None:
    with (
        SimulatedProvider() as provider,
        database(postgres) as address,
        gateway_process(provider.url, tmp_path, "--store", address, "--budget", "2") as (url, _),
        psycopg.connect(address, autocommit=True) as other,
    ):
        assert run(sent(url, conversation(0)))[0] == 200
        key = PostgresDatabase(address)._key
        other.execute("SELECT pg_advisory_lock(%s)", (key,))
        assert run(sent(url, conversation(1)))[0] == 200
        assert provider.requests[-1].body["messages"] == conversation(1)["messages"]
        assert "lock timeout" in _said(tmp_path)
        other.execute("SELECT pg_advisory_unlock(%s)", (key,))
        assert run(sent(url, conversation(2)))[0] == 200
