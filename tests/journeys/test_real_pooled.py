"""Real coding agents behind a gateway that shows their conversations in the pooled layout."""

from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

import pytest
from tests.agents import Agent, GatewayProcess, Job, Outcome, Place, agent_named, commands_folder, work
from tests.agents.jobs import CallStep, EditStep, JobPrompt, ReadStep, Run, SayStep

pytestmark = pytest.mark.clients

_LINES: Final = "".join(f"LINE_{number} = 'value {number} of the settings'\n" for number in range(300))
_OUTPUT: Final = "import sys\nfor n in range(400): print(sys.argv[1], n, 'passed in', n % 7, 'seconds')\n"
_FIRST: Final = r"toolcall_ref id=([\w|-]+) tool=\w+ status=ok"
"""The reference to the result of the first call."""


def _job(*, pooled: bool) -> Job:
    activate = CallStep("activate", {"id": "{{id}}"}, {"id": _FIRST})
    again: tuple[tuple[CallStep | Run, ...], ...] = ((activate,),) if pooled else ((Run("python3 check.py unit"),),)
    calls = (
        (Run("python3 check.py unit"),),
        (ReadStep("settings.py"),),
        (Run("python3 check.py lint"),),
        (EditStep("settings.py", "LINE_7 = 'value 7 of the settings'", "LINE_7 = 'another value'"),),
        (Run("python3 check.py types"), Run("python3 check.py docs")),
        (Run("python3 check.py links"),),
        (Run("python3 check.py names"),),
        *again,
        (SayStep("all is well"),),
    )
    prompts = (
        JobPrompt("pooled-1", "Check everything.", calls),
        JobPrompt("pooled-2", "And once more.", ((Run("python3 check.py all"),), (SayStep("still well"),))),
    )
    return Job("pooled", {"check.py": _OUTPUT, "settings.py": _LINES}, prompts)


def _run(agent: Agent, folder: Path, commands: Path, *, pooled: bool) -> tuple[Outcome, dict[str, int]]:
    settings = {"PAGEIN_LAYOUT": "pooled"} if pooled else {}
    gateway = GatewayProcess(folder / ("pooled" if pooled else "inline"), settings)
    done = work(agent, _job(pooled=pooled), Place(folder / "agent", commands), gateway)
    return done, gateway.failures


@pytest.mark.parametrize("name", ["claude-code", "codex"])
def test_an_agent_does_its_job_in_a_pooled_window(name: str) -> None:
    commands = commands_folder()
    if commands is None:
        pytest.skip("coding agents are not installed: make clients")
    with TemporaryDirectory(prefix="pagein-pooled-") as made:
        inline, _ = _run(agent_named(name), Path(made), commands, pooled=False)
        pooled, failures = _run(agent_named(name), Path(made), commands, pooled=True)
    assert failures == {}
    assert (pooled.bill.refused, pooled.bill.failed) == (0, 0)
    assert pooled.answers == inline.answers == ("all is well", "still well")
    assert pooled.files == inline.files
    bodies = [str(record.body) for record in pooled.records]
    print(name, pooled.bill, inline.bill, pooled.seconds, inline.seconds)
    assert sum("ACTIVE_CONTENT" in body for body in bodies) >= 8
    assert any("Activated" in body for body in bodies), "the model's call was answered in the stream"
    assert pooled.bill.bit < 1.1 * inline.bill.bit
