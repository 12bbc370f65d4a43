"""Real coding agents are asked once, through a gateway: what they answered is found afterwards, and once after the next prompt."""

import json
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final

import pytest
from tests.agents import Agent, GatewayProcess, Place, agent_named, commands_folder
from tests.agents.branching_runs import AgentDesk
from tests.agents.jobs import Job, JobPrompt, ReadStep, SayStep, Screenplay
from tests.agents.runs import write_files

from pagein.simulator import SimulatedProvider

pytestmark = pytest.mark.clients

_ANSWER: Final = "The bergamot ledger is closed."
_BETWEEN: Final = "First I open the quince."
_JOB: Final = Job(
    "answer",
    {"src/ledger.py": "OPENED = False\n"},
    (
        JobPrompt("answer-1", "Is it closed?", ((SayStep(_BETWEEN), ReadStep("src/ledger.py")), (SayStep(_ANSWER),))),
        JobPrompt("answer-2", "And now?", ((SayStep("It is still closed."),),)),
    ),
)


class Asked:
    """An agent behind a gateway, and commands of its user."""

    def __init__(self, agent: Agent, place: Place, gateway: GatewayProcess, address: str) -> None:
        self._place, self._gateway = place, gateway
        self._desk = AgentDesk(agent, place, address)

    def ask(self, prompt: JobPrompt) -> str:
        return self._desk.ask(prompt.words, "main")

    def command(self, *arguments: str) -> Any:  # noqa: ANN401 - JSON
        done = self._gateway.command(*arguments, "--json", folder=self._place.workspace)
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout.splitlines()[0]) if arguments[0] == "sessions" else done.stdout


@pytest.fixture(params=["claude-code", "codex", "pi-chat", "opencode-anthropic"])
def asked(request: pytest.FixtureRequest) -> Iterator[Asked]:
    commands = commands_folder()
    if commands is None:
        pytest.skip("coding agents are not installed: make clients")
    agent = agent_named(request.param)
    with ExitStack() as stack:
        folder = Path(stack.enter_context(TemporaryDirectory(prefix="pagein-answers-"))).resolve()
        place = Place(folder, commands)
        place.home.mkdir(parents=True)
        write_files(place.workspace, _JOB.files)
        play = Screenplay(agent.speech, place.workspace, thinks=agent.thinks, by_tool=agent.lists_tools)
        provider = stack.enter_context(SimulatedProvider(play.scripts(_JOB)))
        gateway = GatewayProcess(folder / "gateway")
        yield Asked(agent, place, gateway, stack.enter_context(gateway.door(provider.url)))


def test_the_only_answer_of_a_run_is_found_and_stands_once_when_the_session_goes_on(asked: Asked) -> None:
    first, second = _JOB.prompts
    assert asked.ask(first) == _ANSWER
    assert "bergamot" in asked.command("search", "bergamot"), "while the gateway runs, and without a further request"
    told = asked.command("chat")
    assert (told.count(_ANSWER), told.count(_BETWEEN)) == (2, 2), "once as text and once as words"
    steps = asked.command("sessions")["sessions"][0]["steps"]
    assert steps >= 3, "two answers and a call"
    assert asked.ask(second) == "It is still closed."
    told = asked.command("chat")
    assert [told.count(words) for words in (_ANSWER, _BETWEEN, "It is still closed.")] == [2, 2, 2]
    assert asked.command("sessions")["sessions"][0]["steps"] == steps + 1
