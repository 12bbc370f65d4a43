"""The memory job done by real agents, each in a folder of one workspace, with a git history kept beside it."""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from itertools import cycle
from pathlib import Path
from typing import Any, Final

from tests.agents.agent_drivers import Agent
from tests.agents.branching_runs import AgentDesk
from tests.agents.gateway_process import GatewayProcess
from tests.agents.jobs import Job, JobPrompt, Screenplay
from tests.agents.memory_job import FORK, MAIN, memory_job
from tests.agents.runs import Place, write_files
from tests.agents.workspace_git import WorkspaceGit

from pagein.providers.validity import Api
from pagein.simulator import ProviderCall, SimulatedProvider
from pagein.simulator.script import scripts_from
from pagein.simulator.turn_choice import choose_turn

_MARK: Final = re.compile(r"SCRIPT@([\w.-]+)")
_COMPACTS_BY_COMMAND: Final = "claude"
NAMES_SESSIONS: Final = frozenset({"claude", "codex", "opencode"})
"""Programs that tell the gateway the id of a conversation."""


@dataclass(slots=True)
class MemoryRun:
    """What was done. conversations: ids by program, and by name of the conversation. answers: by name of the prompt.

    bodies: what the provider was asked, with the name of the prompt and the wire format.
    """

    agents: Sequence[Agent]
    workspace: Path
    git: WorkspaceGit
    jobs: Mapping[str, Job]
    conversations: dict[str, dict[str, str]] = field(default_factory=dict)
    answers: dict[str, str] = field(default_factory=dict)
    bodies: list[tuple[str, Api, Mapping[str, Any]]] = field(default_factory=list)

    @property
    def prompts(self) -> dict[str, JobPrompt]:
        """All prompts by name."""
        return {prompt.name: prompt for job in self.jobs.values() for prompt in job.prompts}

    def conversation_of(self, prompt: str) -> str:
        """The id of the conversation in which a prompt was answered, also where the agent does not tell it."""
        program, _, part = prompt.rpartition("-")
        return self.conversations[program][FORK if part == FORK else MAIN]

    def sessions_of(self, prompt: str) -> set[str]:
        """The sessions in which a prompt was answered, where their agent tells."""
        is_named = prompt.rpartition("-")[0] in NAMES_SESSIONS
        return {self.conversation_of(prompt)} if is_named else set()


@contextmanager
def done_memory_job(
    teams: Sequence[tuple[Sequence[Agent], Sequence[GatewayProcess]]], place: Place
) -> Iterator[MemoryRun]:
    """Let teams of agents do the job at the same time, each team through its gateways, which still run in the context.

    The agents of a team work one after the other, and each asks its gateways in turn, another one for the next prompt.
    Teams may share a gateway.
    """
    agents = [agent for team, _ in teams for agent in team]
    jobs = {agent.program: memory_job(agent.program) for agent in agents}
    for job in jobs.values():
        write_files(place.workspace, job.files)
    git = WorkspaceGit(place.folder / "history.git", place.workspace)
    scripts: dict[str, object] = {}
    for agent in agents:
        play = Screenplay(agent.speech, place.workspace, thinks=agent.thinks, by_tool=agent.lists_tools)
        scripts |= play.scripts(jobs[agent.program])
    parsed = scripts_from(scripts)

    def answer(call: ProviderCall) -> object:
        marks = _MARK.findall(json.dumps(call.body))
        name = marks[-1] if marks else ""
        git.commit(name, call.body, name.rpartition("-")[0] or ".")
        run.bodies.append((name, call.api, call.body))
        return choose_turn(call, parsed).turn

    run = MemoryRun(agents, place.workspace, git, jobs)
    with SimulatedProvider(answer) as provider, ExitStack() as doors:
        gateways = {id(one): one for _, those in teams for one in those}
        addresses = {name: doors.enter_context(one.door(provider.url)) for name, one in gateways.items()}
        with ThreadPoolExecutor(len(teams)) as pool:
            work = [
                pool.submit(_work, team, run, place, [addresses[id(one)] for one in those]) for team, those in teams
            ]
            for done in work:
                done.result()
        yield run


def _work(team: Sequence[Agent], run: MemoryRun, place: Place, addresses: Sequence[str]) -> None:
    for agent in team:
        home = Place(place.folder, place.commands, agent.program)
        home.home.mkdir(parents=True)
        conversations: dict[str, str] = {}
        for prompt, address in zip(run.jobs[agent.program].prompts, cycle(addresses), strict=False):
            desk = AgentDesk(agent, home, address, conversations)
            is_fork = prompt.name.endswith(f"-{FORK}")
            run.answers[prompt.name] = desk.ask(
                prompt.words, FORK if is_fork else MAIN, fork_of=MAIN if is_fork else ""
            )
            if prompt.name == f"{_COMPACTS_BY_COMMAND}-2":
                desk.ask("/compact", MAIN)
        run.conversations[agent.program] = conversations
