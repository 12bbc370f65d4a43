"""Real agents in several conversations: one is gone on with, another begins as a fork of it. Each is named by the agent's own id."""

import json
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from tests.agents.agent_drivers import Agent, search_path
from tests.agents.runs import Place, run_prompt, write_files

from pagein.errors import HostError

_THREAD: Final = re.compile(r'"(?:session_id|thread_id|sessionID)":\s*"([^"]+)"')


@dataclass(slots=True)
class AgentDesk:
    """An agent with its home and its provider, for one prompt after the other.

    conversations: id of each conversation by its name.
    """

    agent: Agent
    place: Place
    address: str
    conversations: dict[str, str] = field(default_factory=dict)
    _environment: dict[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        setup = self.agent.settings(self.address)
        write_files(self.place.home, setup.files)
        given = {name: value.replace("{home}", str(self.place.home)) for name, value in setup.environment.items()}
        path = search_path(self.place.commands)
        self._environment = {"PATH": path, "HOME": str(self.place.home), "TERM": "dumb", **given}

    def ask(self, words: str, conversation: str, *, fork_of: str = "") -> str:
        """The answer to a prompt in a conversation, which begins with it, also as a fork of another one."""
        known = self.conversations.get(fork_of or conversation, "")
        command = _command(self.agent, known, forks=bool(fork_of))
        before = self._files()
        printed = run_prompt(command, words, self.place.workspace, self._environment)
        if conversation not in self.conversations:
            self.conversations[conversation] = self._id(printed, before)
        return self.agent.answer(printed)

    def _files(self) -> set[Path]:
        return set((self.place.home / "pi").glob("sessions/**/*.jsonl"))

    def _id(self, printed: str, before: set[Path]) -> str:
        if self.agent.program == "pi":
            (made,) = self._files() - before
            return str(json.loads(made.read_text(encoding="utf-8").splitlines()[0])["id"])
        found = _THREAD.search(printed)
        if found is None:
            raise HostError(f"{self.agent.name} does not name its conversation: {printed[:400]}")
        return found[1]


def _command(agent: Agent, known: str, *, forks: bool) -> list[str]:
    command = agent.command(goes_on=False)
    return [*_OPENINGS[agent.program](command, known, forks)] if known else command


def _claude(command: list[str], known: str, forks: bool) -> Sequence[str]:  # noqa: FBT001 - the shape of all of these
    return [command[0], "--resume", known, *(["--fork-session"] if forks else []), *command[1:]]


def _codex(command: list[str], known: str, forks: bool) -> Sequence[str]:  # noqa: FBT001
    return [*command[:-1], "fork" if forks else "resume", known, "-"]


def _opencode(command: list[str], known: str, forks: bool) -> Sequence[str]:  # noqa: FBT001
    return [*command, "--session", known, *(["--fork"] if forks else [])]


def _pi(command: list[str], known: str, forks: bool) -> Sequence[str]:  # noqa: FBT001
    return [command[0], "--fork" if forks else "--session", known, *command[1:]]


_OPENINGS: Final[dict[str, Callable[[list[str], str, bool], Sequence[str]]]] = {
    "claude": _claude,
    "codex": _codex,
    "opencode": _opencode,
    "pi": _pi,
}
