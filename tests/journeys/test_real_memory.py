"""Real coding agents edit, rename and delete files through a gateway; what pagein remembers of it is compared with git."""

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from tests.agents import GatewayProcess, Place, agent_named, commands_folder
from tests.agents.memory_oracle import MemoryOracle
from tests.agents.memory_runs import MemoryRun, done_memory_job
from tests.journeys.test_followed_files import wait_for
from tests.journeys.test_two_gateways import database
from typer.testing import CliRunner

from pagein import wiring
from pagein.cli.cli import app

pytestmark = pytest.mark.clients

_QUICK = ("claude-code", "codex", "pi-chat")
_SLOW = ("opencode-anthropic",)
_OF_THE_INDEX = ("looked_into",)
"""What a search tells of its own work, which is less once everything is indexed."""


@dataclass(frozen=True, slots=True)
class DoneJob:
    run: MemoryRun
    ask: Callable[..., str]
    by_process: dict[tuple[str, ...], str]
    place: Place


@pytest.fixture(scope="module")
def done() -> Iterator[DoneJob]:
    """The job of all four agents through one gateway, and a few answers from before the gateway stopped."""
    with workplace() as place:
        gateway = GatewayProcess(place.folder / "gateway")
        teams = [([agent_named(name) for name in names], [gateway]) for names in (_QUICK, _SLOW)]
        with done_memory_job(teams, place) as run:
            questions = [("sessions",), ("history", "codex/cart.py"), ("show", "codex/cart.py@1")]
            questions += [("diff", "codex/cart.py"), ("backlinks", "codex/cart.py"), ("blame", "codex/cart.py")]
            questions += [("chat", run.conversations["codex"]["main"]), ("search", "bergamot")]
            live = {one: by_process(gateway, place)(*one, "--json") for one in questions}
            assert all(told.startswith("{") for told in live.values())
        yield DoneJob(run, in_process(gateway.store, place), live, place)


def workplace() -> "TemporaryPlace":
    commands = commands_folder()
    if commands is None:
        pytest.skip("coding agents are not installed: make clients")
    return TemporaryPlace(commands)


class TemporaryPlace:
    """A place of its own: not pytest's folder, whose name stands in what the agents send."""

    def __init__(self, commands: Path) -> None:
        self._folder = TemporaryDirectory(prefix="pagein-memory-")
        self._commands = commands

    def __enter__(self) -> Place:
        place = Place(Path(self._folder.__enter__()).resolve(), self._commands)
        place.workspace.mkdir()
        return place

    def __exit__(self, *problem: object) -> None:
        self._folder.cleanup()


def by_process(gateway: GatewayProcess, place: Place) -> Callable[..., str]:
    """The command line as a person runs it while the gateway runs, which finds its store by itself."""

    def ask(*arguments: str) -> str:
        ran = gateway.command(*arguments, folder=place.workspace)
        assert ran.returncode == 0, (arguments, ran.stderr)
        return ran.stdout

    return ask


def in_process(store: str | Path, place: Place) -> Callable[..., str]:
    """The same commands on a store, without a process for each."""

    def ask(*arguments: str) -> str:
        with pytest.MonkeyPatch.context() as patch:
            patch.chdir(place.workspace)
            ran = CliRunner().invoke(app, [*arguments, "--store", str(store)])
        assert ran.exit_code == 0, (arguments, ran.output, ran.exception)
        return ran.stdout

    return ask


def test_every_agent_did_its_job(done: DoneJob) -> None:
    assert done.run.answers.keys() == done.run.prompts.keys()


def test_all_answers_are_what_git_and_the_scripts_say(done: DoneJob) -> None:
    counts = MemoryOracle(done.run, done.ask, done.place.folder / "scratch").check()
    assert counts["whole"] >= 40
    assert counts["lines"] >= 30


def test_the_running_gateway_s_store_gave_the_same_answers(done: DoneJob) -> None:
    for command, told in done.by_process.items():
        again = json.loads(done.ask(*command, "--json"))
        assert json.loads(told) == {
            **again,
            **{name: one for name, one in json.loads(told).items() if name in _OF_THE_INDEX},
        }, command


def test_a_program_that_uses_the_library_for_the_same_calls_remembers_the_same(done: DoneJob, tmp_path: Path) -> None:
    store = tmp_path / "library.pagein"
    engine = wiring.open(store, workspace=tmp_path)
    for name, api, body in done.run.bodies:
        if name:
            engine.session(done.run.conversation_of(name)).prepare(json.dumps(body).encode(), api=api)
    engine.close()
    counts = MemoryOracle(done.run, in_process(store, done.place), done.place.folder / "scratch").check()
    assert counts["whole"] >= 40


def test_two_gateways_that_serve_the_same_sessions_on_one_database_and_follow_files_remember_as_one_does(
    postgres: str,
) -> None:
    with database(postgres) as address, workplace() as place:
        settings = {"PAGEIN_FOLLOW_FILES": "on"}
        gateways = [GatewayProcess(place.folder / name, settings, address) for name in ("first", "second")]
        teams = [([agent_named(name) for name in names], gateways) for names in (_QUICK, _SLOW)]
        with done_memory_job(teams, place) as run:
            ask = in_process(address, place)
            oracle = MemoryOracle(run, ask, place.folder / "scratch", follows=True)
            wait_for(oracle.is_caught_up, 300)  # it asks for each file
            live = [by_process(gateway, place)("history", "pi/cart.py", "--json") for gateway in gateways]
        counts = oracle.check()
        assert live == [ask("history", "pi/cart.py", "--json")] * 2
        assert counts["whole"] >= 40
