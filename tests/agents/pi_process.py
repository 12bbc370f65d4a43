"""A real pi in RPC mode, with pagein's extension, and its provider on this machine."""

import json
import queue
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from tests.agents.agent_drivers import agent_named, search_path
from tests.agents.runs import write_files

from pagein.simulator import SimulatedProvider

EXTENSION: Final = Path(__file__).resolve().parents[2] / "extensions" / "pi"
AGENT: Final = agent_named("pi-anthropic")
_LONGEST: Final = 60.0
_SOURCE: Final = Path(__file__).resolve().parents[2] / "src"


@dataclass(frozen=True, slots=True)
class PiPlace:
    """Where pi works.

    launch: how pagein is started; None for pi without the extension.
    settings: further environment. compaction: pi's own settings of that name. is_new: whether the person never had pagein in pi.
    model: as pi names it, of a real provider; "" for the simulated one.
    """

    folder: Path
    commands: Path
    launch: Mapping[str, Any] | None = field(
        default_factory=lambda: {"command": [sys.executable, "-m", "pagein", "pi"]}
    )
    settings: Mapping[str, str] = field(default_factory=dict)
    compaction: Mapping[str, Any] = field(default_factory=dict)
    is_new: bool = False
    model: str = ""

    @property
    def workspace(self) -> Path:
        """The folder that pi works in."""
        return self.folder / "workspace"

    @property
    def home(self) -> Path:
        """pi's home."""
        return self.folder / "home"

    @property
    def extension(self) -> Path:
        """The folder of the installed extension."""
        return self.home / "pi" / "extensions" / "pagein"


def set_up(place: PiPlace, address: str) -> dict[str, str]:
    """Write pi's settings for a provider at this address, and return pi's environment."""
    setup = AGENT.settings(address)
    usual = json.loads(setup.files["pi/settings.json"])
    own = {"pi/settings.json": json.dumps({**usual, "compaction": dict(place.compaction)})}
    greeted = {} if place.is_new else {".local/share/pagein/pi.greeted": ""}
    files = {} if place.model else setup.files
    write_files(place.home, {**files, **own, **greeted})
    environment = {name: value.replace("{home}", str(place.home)) for name, value in setup.environment.items()}
    return environment | {
        "PATH": search_path(place.commands),
        "HOME": str(place.home),
        "TERM": "dumb",
        "PYTHONPATH": str(_SOURCE),
        **place.settings,
    }


class PiProcess:
    """pi in RPC mode. The provider says what is in the scripts of the prompts."""

    def __init__(self, place: PiPlace, address: str, arguments: Sequence[str] = ()) -> None:
        self.events: list[dict[str, Any]] = []
        environment = set_up(place, address)
        command = [
            str(place.commands / "pi"),
            "--model",
            place.model or f"simulated/{AGENT.model}",
            "--mode",
            "rpc",
            *arguments,
        ]
        self._process = subprocess.Popen(  # noqa: S603 -- an agent of scripts/clients
            command,
            cwd=place.workspace,
            env=environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            start_new_session=True,
        )
        self._lines: queue.SimpleQueue[dict[str, Any] | None] = queue.SimpleQueue()
        threading.Thread(target=self._read, daemon=True).start()
        self._number = self._scripts = 0

    def command(self, kind: str, **fields: Any) -> dict[str, Any]:  # noqa: ANN401 - the fields of any command
        """Send a command and return its response."""
        self._number += 1
        name = f"r{self._number}"
        self._send({"id": name, "type": kind, **fields})
        return self.wait(lambda one: one.get("type") == "response" and one.get("id") == name)

    def prompt(self, *turns: list[dict[str, Any]], words: str = "", usage: int | None = None) -> list[dict[str, Any]]:
        """Let the model act by a script. Returns the events up to the end of its work.

        usage: input tokens that the provider reports with the last answer.
        """
        self._scripts += 1
        first = len(self.events)
        told = [*turns, [{"text": f"done {self._scripts}"}, *([] if usage is None else [{"usage": usage}])]]
        response = self.command("prompt", message=f"{words}SCRIPT:{json.dumps(told)}")
        assert response["success"], response
        self.wait(lambda one: one.get("type") == "agent_end")
        return self.events[first:]

    def order(self, words: str) -> str:
        """Give a slash command, and return what it tells."""
        first = len(self.events)
        response = self.command("prompt", message=words)
        assert response["success"], response
        told = [one for one in self.events[first:] if one.get("method") == "notify"]
        return str(told[-1]["message"]) if told else ""

    def results(self) -> list[dict[str, Any]]:
        """The results of tools in pi's own session, oldest first."""
        messages = self.command("get_messages")["data"]["messages"]
        return [one for one in messages if one["role"] == "toolResult"]

    def answers(self) -> list[str]:
        """The texts of these results."""
        return ["".join(part.get("text", "") for part in one["content"]) for one in self.results()]

    def branch(self) -> list[dict[str, Any]]:
        """The entries of pi's branch, from its root on. Needs the extension of tests/fixtures/pi."""
        found: list[dict[str, Any]] = json.loads(self.order("/branch"))
        return found

    def notices(self) -> list[str]:
        """What was told to the person."""
        return [str(one["message"]) for one in self.events if one.get("method") == "notify"]

    def children(self) -> list[int]:
        """The processes that pi has started and that run."""
        path = Path(f"/proc/{self._process.pid}/task/{self._process.pid}/children")
        return [int(one) for one in path.read_text(encoding="ascii").split()]

    def wait(self, wanted: Callable[[dict[str, Any]], bool], seconds: float = _LONGEST) -> dict[str, Any]:
        """Return the first further event that is wanted. seconds: the longest time between two events."""
        while True:
            one = self._lines.get(timeout=seconds)
            assert one is not None, f"pi ended: {self.complaint()}"
            self.events.append(one)
            if wanted(one):
                return one

    def complaint(self) -> str:
        """What an ended pi printed to standard error."""
        assert self._process.stderr is not None
        return self._process.stderr.read().decode(errors="replace")

    def close(self) -> int:
        """Let pi end, and return its exit status."""
        assert self._process.stdin is not None
        self._process.stdin.close()
        try:
            return self._process.wait(_LONGEST)
        finally:
            self._process.kill()
            for stream in (self._process.stdout, self._process.stderr):
                if stream is not None:
                    stream.close()

    def _send(self, message: Mapping[str, Any]) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps(message).encode() + b"\n")
        self._process.stdin.flush()

    def _read(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            self._lines.put(json.loads(line))
        self._lines.put(None)


def put_extension(place: PiPlace) -> None:
    """Put the extension of this checkout into pi's folder, with the command that starts pagein."""
    files = {path.name: path.read_text(encoding="utf-8") for path in EXTENSION.glob("*.ts")}
    write_files(place.extension, {**files, "launch.json": json.dumps(place.launch)})


@contextmanager
def running_pi(place: PiPlace, provider: SimulatedProvider, *arguments: str, address: str = "") -> Iterator[PiProcess]:
    """A pi for the time of a `with` block. address: of what stands between it and its provider; "" for nothing."""
    if place.launch is not None and not place.extension.is_dir():
        put_extension(place)
    pi = PiProcess(place, address or provider.url, arguments)
    try:
        yield pi
    finally:
        pi.close()


def shown_results(provider: SimulatedProvider, number: int = -1) -> list[str]:
    """The texts of the tool results that a request showed the model, oldest first."""
    body = provider.requests[number].body
    assert isinstance(body, dict)
    found = []
    for message in body["messages"]:
        if isinstance(message["content"], list):
            for block in message["content"]:
                if block.get("type") == "tool_result":
                    content = block["content"]
                    found.append(
                        content if isinstance(content, str) else "".join(part.get("text", "") for part in content)
                    )
    return found
