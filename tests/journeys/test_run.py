"""`pagein run` with an agent of a few lines: a gateway comes with it, is shared, and goes away with the last one."""

import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from pagein.gateway.announced_store import AnnouncedStore, running_stores
from pagein.simulator import SimulatedProvider

_PATIENCE = 60.0
_AGENT = """#!{python}
import json, os, sys, urllib.request
def ask():
    body = {{"model": "claude-sonnet-4-5", "max_tokens": 9, "messages": [{{"role": "user", "content": "hello"}}]}}
    headers = {{"x-api-key": "k", "anthropic-version": "2023-06-01", "content-type": "application/json"}}
    url = os.environ["ANTHROPIC_BASE_URL"] + "/v1/messages"
    with urllib.request.urlopen(urllib.request.Request(url, json.dumps(body).encode(), headers)) as answer:
        return json.load(answer)["content"][0]["text"]
print(ask(), sys.argv[1:], flush=True)
for line in sys.stdin:
    print(ask() if line == "ask\\n" else line, flush=True)
sys.exit(5)
"""


@dataclass(frozen=True, slots=True)
class Room:
    """A user's home with an agent in it. port: where the user's settings expect a gateway."""

    home: Path
    port: int
    provider: SimulatedProvider

    def environment(self) -> dict[str, str]:
        kept = {name: value for name, value in os.environ.items() if not name.startswith(("PAGEIN_", "ANTHROPIC_"))}
        folders = {"HOME": str(self.home), "XDG_DATA_HOME": str(self.home / "data"), "XDG_STATE_HOME": str(self.home)}
        path = f"{self.home / 'bin'}{os.pathsep}{os.environ['PATH']}"
        return {**kept, **folders, "PATH": path, "PAGEIN_PORT": str(self.port), "ANTHROPIC_BASE_URL": self.provider.url}

    def start(self, *arguments: str) -> "subprocess.Popen[str]":
        return subprocess.Popen(  # noqa: S603 -- ourselves
            [sys.executable, "-m", "pagein", *arguments],
            cwd=self.home / "work",
            env=self.environment(),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def gateways(self) -> list[AnnouncedStore]:
        return list(running_stores(self.home / "data" / "pagein" / "gateways"))


@pytest.fixture
def room(tmp_path: Path) -> Iterator[Room]:
    for name in ("bin", "work"):
        (tmp_path / name).mkdir()
    agent = tmp_path / "bin" / "claude"
    agent.write_text(_AGENT.format(python=sys.executable))
    agent.chmod(0o755)
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    with SimulatedProvider([[{"text": "well"}]] * 20) as provider:
        yield Room(tmp_path, port, provider)


def test_agents_share_a_gateway_that_survives_its_death_and_goes_with_the_last_of_them(room: Room) -> None:
    first = room.start("run", "claude", "-p", "--help")
    assert _line(first) == "well ['-p', '--help']\n"
    second = room.start("run", "claude")
    assert _line(second) == "well []\n"
    [gateway] = room.gateways()
    assert gateway.url == f"http://127.0.0.1:{room.port}"
    os.kill(_process_of(gateway), signal.SIGKILL)
    _until(lambda: room.gateways() not in ([], [gateway]))
    assert _said(first, "ask\n", 5)[0] == "well\n"
    time.sleep(1)  # longer than a gateway takes to see that nobody needs it
    assert [one.url for one in room.gateways()] == [gateway.url]
    printed, complained = _said(second, "ask\n", 5)
    assert printed == "well\n"
    assert complained.count("pagein: ") == complained.count("\n") == 1
    _until(lambda: room.gateways() == [])
    assert len(room.provider.requests) == 4


def test_a_gateway_that_the_user_started_is_used_and_left_running(room: Room) -> None:
    serving = room.start("serve", "--anthropic", room.provider.url)
    _until(lambda: bool(room.gateways()))
    _, complained = _said(room.start("run", "claude"), "", 5)
    assert "was running" in complained
    shown = room.start("run", "--json", "claude", "-c")
    told = json.loads(shown.communicate(timeout=_PATIENCE)[0])
    assert told["running"]
    assert told["environment"]["ANTHROPIC_BASE_URL"] == told["gateway"] == f"http://127.0.0.1:{room.port}"
    assert told["command"] == ["claude", "-c"]
    assert len(room.gateways()) == 1
    serving.send_signal(signal.SIGTERM)
    serving.communicate(timeout=_PATIENCE)


def test_an_agent_is_not_started_without_a_gateway(room: Room) -> None:
    (room.home / "data").write_text("no folder")
    process = room.start("run", "claude")
    printed, complained = process.communicate(timeout=_PATIENCE)
    assert process.returncode == 2
    assert printed == ""
    assert complained.startswith("pagein: ")
    assert room.provider.requests == []


def _line(process: "subprocess.Popen[str]") -> str:
    assert process.stdout is not None
    line = process.stdout.readline()
    assert line, process.communicate()[1]
    return line


def _said(process: "subprocess.Popen[str]", words: str, status: int) -> tuple[str, str]:
    printed, complained = process.communicate(words, timeout=_PATIENCE)
    assert process.returncode == status, complained
    return printed, complained


def _process_of(gateway: AnnouncedStore) -> int:
    """The process of a gateway, which has its lease file on its command line."""
    for one in Path("/proc").glob("[0-9]*/cmdline"):
        words = one.read_bytes().split(b"\0")
        if b"serve" in words and gateway.lease.encode() in words:
            return int(one.parent.name)
    raise AssertionError(f"no process holds {gateway.lease}")


def _until(true: Callable[[], bool]) -> None:
    limit = time.monotonic() + _PATIENCE
    while not true():
        assert time.monotonic() < limit
        time.sleep(0.05)
