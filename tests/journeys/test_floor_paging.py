"""Claude Code works three times in one workspace, with floor paging: tools that it does not use leave its prompt, and come back."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from tests.agents import LONG_JOB, PLANNING, GatewayProcess, Outcome, Place, agent_named, commands_folder, work

pytestmark = pytest.mark.clients

PLANS = frozenset({"TaskCreate", "TaskUpdate"})


@dataclass(frozen=True, slots=True)
class Runs:
    """What came of the jobs. plain: planned straight at the provider. failures: of the gateway."""

    plain: Outcome
    first: Outcome
    second: Outcome
    planned: Outcome
    after: Outcome
    failures: dict[str, int]


@pytest.fixture(scope="module")
def runs() -> Iterator[Runs]:
    commands = commands_folder()
    if commands is None:
        pytest.skip("coding agents are not installed: make clients")
    agent = agent_named("claude-code")
    with TemporaryDirectory(prefix="pagein-agents-") as name:
        place = Place(Path(name) / "agent", commands)
        gateway = GatewayProcess(Path(name) / "gateway", {"PAGEIN_FLOOR_PAGING": "always"})
        plain = work(agent, PLANNING, place)
        first, second = work(agent, LONG_JOB, place, gateway), work(agent, LONG_JOB, place, gateway)
        planned, after = work(agent, PLANNING, place, gateway), work(agent, PLANNING, place, gateway)
        yield Runs(plain, first, second, planned, after, gateway.failures)


def floor(outcome: Outcome) -> int:
    """Tokens of the first request."""
    usage = outcome.calls[0].usage
    assert usage is not None
    return usage.prompt


def deferred(outcome: Outcome) -> frozenset[str]:
    """The deferred tools of all requests."""
    sets = {
        frozenset(one["name"] for one in record.body["tools"] if one.get("defer_loading"))
        for record in outcome.calls
        if record.body is not None
    }
    (found,) = sets  # frozen within a session
    return found


def test_the_second_session_has_at_most_two_thirds_of_the_floor(runs: Runs) -> None:
    assert deferred(runs.first) == frozenset()
    assert floor(runs.second) <= 2 / 3 * floor(runs.first)
    assert runs.second.bill.bit < 0.85 * runs.first.bill.bit


def test_the_work_is_the_same_and_nothing_is_refused(runs: Runs) -> None:
    assert runs.second.answers == runs.first.answers
    assert runs.second.files == runs.first.files
    assert runs.planned.answers == runs.after.answers == runs.plain.answers
    assert runs.planned.files == runs.after.files == runs.plain.files
    assert sum(one.bill.refused + one.bill.failed for one in (runs.first, runs.second, runs.planned, runs.after)) == 0
    assert runs.failures == {}


def test_a_model_that_needs_a_deferred_tool_finds_it_and_has_it_from_the_next_session_on(runs: Runs) -> None:
    assert deferred(runs.planned) >= PLANS
    history = runs.planned.calls[-1].body
    assert history is not None
    blocks = [block for one in history["messages"] for block in one["content"] if one["role"] == "assistant"]
    found = [block for block in blocks if block["type"] == "tool_search_tool_result"]
    names = {one["tool_name"] for block in found for one in block["content"]["tool_references"]}
    assert names >= PLANS
    assert not deferred(runs.after) & PLANS
    assert deferred(runs.after)
