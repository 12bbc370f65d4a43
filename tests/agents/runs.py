"""A job done by a real agent, with its provider on this machine, and the results."""

import os
import shutil
import signal
import subprocess
import time
from collections.abc import Iterator, Mapping
from contextlib import nullcontext, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from tests.agents.agent_drivers import Agent, search_path
from tests.agents.gateway_process import GatewayProcess
from tests.agents.jobs import Job, Screenplay, no_recall

from pagein.errors import HostError
from pagein.simulator import ProviderBill, Record, SimulatedProvider

_LONGEST: Final = 240.0
"""Seconds that an agent may take for one prompt."""
_TAIL: Final = 2000


@dataclass(frozen=True, slots=True)
class Place:
    """Where an agent works. folder: all of it is written anew for each run. commands: the folder of the agents' commands.

    owner: whose home it is, where several agents work in one workspace.
    """

    folder: Path
    commands: Path
    owner: str = ""

    @property
    def workspace(self) -> Path:
        """The folder that the agent works in: of the same name in all runs, for it stands in requests."""
        return self.folder / "workspace"

    @property
    def home(self) -> Path:
        """The agent's home."""
        return self.folder / "home" / self.owner if self.owner else self.folder / "home"


@dataclass(frozen=True, slots=True)
class Outcome:
    """What came of a job: the answer to each prompt, the workspace's files by path, what the provider received and charged, seconds."""

    answers: tuple[str, ...]
    files: Mapping[str, str]
    records: tuple[Record, ...]
    bill: ProviderBill
    seconds: float

    @property
    def calls(self) -> tuple[Record, ...]:
        """The model calls that the script answered. An agent's own titles and counts come at any time, and are left out."""
        return tuple(one for one in self.records if one.api is not None and one.turn >= 0)

    @property
    def last_body(self) -> Any:  # noqa: ANN401 - a request of any wire format
        """The body of the last of these calls."""
        return self.calls[-1].body


def work(agent: Agent, job: Job, place: Place, gateway: GatewayProcess | None = None, peek: str = "peek") -> Outcome:
    """Let an agent do a job, through a gateway or without. Raises HostError where it fails or takes too long.

    peek: the tool by which its model recalls.
    """
    for folder in (place.home, place.workspace):
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
    write_files(place.workspace, job.files)
    recalling = gateway.recalling if gateway else no_recall
    play = Screenplay(agent.speech, place.workspace, recalling, agent.thinks, agent.lists_tools, peek)
    with SimulatedProvider(play.scripts(job)) as provider:
        began = time.monotonic()
        with gateway.door(provider.url) if gateway else nullcontext(provider.url) as address:
            answers = tuple(_said(agent, job, place, address))
        seconds = time.monotonic() - began
        return Outcome(answers, _files(place.workspace), tuple(provider.requests), provider.bill(), seconds)


def _said(agent: Agent, job: Job, place: Place, address: str) -> Iterator[str]:
    """The answers, one prompt after the other."""
    setup = agent.settings(address)
    write_files(place.home, setup.files)
    given = {name: value.replace("{home}", str(place.home)) for name, value in setup.environment.items()}
    environment = {"PATH": search_path(place.commands), "HOME": str(place.home), "TERM": "dumb", **given}
    for ordinal, prompt in enumerate(job.prompts):
        command = agent.command(goes_on=ordinal > 0)
        yield agent.answer(run_prompt(command, prompt.words, place.workspace, environment))


def run_prompt(command: list[str], words: str, folder: Path, environment: Mapping[str, str]) -> str:
    """What a command printed that was given some words, alone in its process group, which ends with it."""
    program = shutil.which(command[0], path=environment["PATH"])
    if program is None:
        raise HostError(f"there is no {command[0]}: run `make clients`")
    with (
        subprocess.Popen(  # noqa: S603 -- an agent of scripts/clients
            [program, *command[1:]],
            cwd=folder,
            env=dict(environment),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        ) as process
    ):
        try:
            printed, complained = process.communicate(words, timeout=_LONGEST)
        except subprocess.TimeoutExpired as problem:
            raise HostError(f"{command[0]} took longer than {_LONGEST:.0f} s for one prompt") from problem
        finally:
            _end(process.pid)
    if process.returncode:
        raise HostError(f"{command[0]} ended with {process.returncode}: {(complained + printed)[-_TAIL:]}")
    return printed


def _end(group: int) -> None:
    """End what is left of a process group."""
    with suppress(ProcessLookupError):
        os.killpg(group, signal.SIGKILL)


def write_files(folder: Path, files: Mapping[str, str]) -> None:
    """Write files by path and text into a folder."""
    for name, text in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")


def _files(folder: Path) -> dict[str, str]:
    return {
        path.relative_to(folder).as_posix(): path.read_text(encoding="utf-8")
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }
