"""Real coding agents behind a gateway that shows their conversations in the pooled layout."""

from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

import pytest
from tests.agents import GatewayProcess, Job, Place, agent_named, commands_folder, work
from tests.agents.jobs import CallStep, EditStep, JobPrompt, ReadStep, Run, SayStep

pytestmark = pytest.mark.clients

_LINES: Final = "".join(f"LINE_{number} = 'value {number} of the settings'\n" for number in range(300))
_OUTPUT: Final = "import sys\nfor n in range(400): print(sys.argv[1], n, 'passed in', n % 7, 'seconds')\n"
_FIRST: Final = r"toolcall_ref id=([\w|-]+) tool=\w+ status=ok"
"""The reference to the result of the first call."""


_CALLS: Final = (
    (Run("python3 check.py unit"),),
    (ReadStep("settings.py"),),
    (Run("python3 check.py lint"),),
    (EditStep("settings.py", "LINE_7 = 'value 7 of the settings'", "LINE_7 = 'another value'"),),
    (Run("python3 check.py types"), Run("python3 check.py docs")),
    (CallStep("activate", {"id": "{{id}}"}, {"id": _FIRST}),),
    (SayStep("all is well"),),
)
_JOB: Final = Job(
    "pooled", {"check.py": _OUTPUT, "settings.py": _LINES}, (JobPrompt("pooled-1", "Check everything.", _CALLS),)
)


@pytest.mark.parametrize("name", ["claude-code", "codex"])
def test_an_agent_does_its_job_in_a_pooled_window(name: str) -> None:
    commands = commands_folder()
    if commands is None:
        pytest.skip("coding agents are not installed: make clients")
    with TemporaryDirectory(prefix="pagein-pooled-") as made:
        gateway = GatewayProcess(Path(made) / "gateway", {"PAGEIN_LAYOUT": "pooled", "PAGEIN_POOLED_CLIENTS": name})
        done = work(agent_named(name), _JOB, Place(Path(made) / "agent", commands), gateway)
    assert gateway.failures == {}
    assert (done.bill.refused, done.bill.failed) == (0, 0)
    assert done.answers == ("all is well",)
    assert done.files["settings.py"] == _LINES.replace("LINE_7 = 'value 7 of the settings'", "LINE_7 = 'another value'")
    bodies = [str(record.body) for record in done.calls]
    assert sum("ACTIVE_CONTENT" in body for body in bodies) >= 5
    assert "Activated" in bodies[-1], "the model's call was answered in the stream"
    used = [record.usage for record in done.calls if record.usage is not None]
    sizes = [one.fresh + one.read + one.written for one in used]
    assert all(one.read > 0.95 * size for one, size in zip(used[1:], sizes[:-1], strict=True)), (
        "each goes on from the last"
    )
