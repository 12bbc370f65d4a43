"""Real coding agents do the same job twice: straight at their provider, and through a gateway that they know nothing of."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from tests.agents import (
    AGENTS,
    LONG_JOB,
    Agent,
    GatewayProcess,
    JobFigures,
    Outcome,
    Place,
    commands_folder,
    compare_outcomes,
    work,
)

pytestmark = pytest.mark.clients


@dataclass(frozen=True, slots=True)
class Both:
    agent: Agent
    direct: Outcome
    through: Outcome
    figures: JobFigures
    failures: dict[str, int]
    logged: str


@pytest.fixture(scope="module", params=AGENTS, ids=lambda agent: agent.name)
def both(request: pytest.FixtureRequest) -> Iterator[Both]:
    agent: Agent = request.param
    commands = commands_folder()
    if commands is None:
        pytest.skip("coding agents are not installed: make clients")
    # not pytest's folder: its name has the test's in it, and it stands in what the agents send
    with TemporaryDirectory(prefix="pagein-agents-") as name:
        folder = Path(name)
        place = Place(folder / "agent", commands)
        gateway = GatewayProcess(folder / "gateway")
        direct = work(agent, LONG_JOB, place)
        through = work(agent, LONG_JOB, place, gateway)
        with gateway.engine() as engine:
            figures = compare_outcomes(direct, through, engine.recall)
        yield Both(agent, direct, through, figures, gateway.failures, gateway.log.read_text(encoding="utf-8"))


def test_an_agent_gives_the_same_answers_and_leaves_the_same_files(both: Both) -> None:
    assert both.through.answers == both.direct.answers == tuple(_last_words())
    assert both.through.files == both.direct.files
    assert "JOURNAL_OPENED = True\n" in both.through.files["src/journal.py"]


def test_no_request_is_refused_and_nothing_of_ours_fails(both: Both) -> None:
    assert both.figures.refused == 0
    assert both.figures.failed == 0
    assert both.failures == {}


def test_each_way_of_saving_is_used_and_a_recall_shows_what_was_taken_away(both: Both) -> None:
    figures = both.figures
    assert figures.previews >= 9, "every big output enters as a preview"
    assert figures.epochs >= 1
    assert figures.stubs >= 1
    # the commands in a program that codex's model writes are not looked at
    assert figures.rereads >= 1 or both.agent.name == "codex-programs"
    assert figures.recalls == 2


def test_every_evicted_text_is_recalled_exactly(both: Both) -> None:
    assert both.figures.lost == 0


def test_a_marker_stands_only_where_its_lines_are_visible(both: Both) -> None:
    assert both.figures.unproven == 0


def test_the_provider_charges_less(both: Both) -> None:
    assert both.figures.ratio < 0.8


def test_the_gateway_logs_no_key_and_nothing_that_was_said(both: Both) -> None:
    assert both.logged
    assert "not-a-key" not in both.logged
    assert "entry_0" not in both.logged


def _last_words() -> Iterator[str]:
    from tests.agents.jobs import SayStep

    for prompt in LONG_JOB.prompts:
        last = prompt.calls[-1][-1]
        assert isinstance(last, SayStep)
        yield last.text
