"""Real coding agents whose model asks a child model about what left its window: answered in the stream, with the agent's own key."""

import json
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

import pytest
from tests.agents import GatewayProcess, Job, Place, agent_named, commands_folder, work
from tests.agents.jobs import CallStep, JobPrompt, Run, SayStep

pytestmark = pytest.mark.clients

SETTINGS: Final = {"PAGEIN_CHILDREN": "1"}
COMMAND: Final = "seq -f 'entry %.0f of a long report' 1 700"
ID: Final = r"(pg-[0-9a-f]{8}-[0-9a-f]{8})"
QUERY: Final = CallStep("query", {"instructions": "Which entry is the last?", "target": ["{{id}}"]}, {"id": ID})
JOB: Final = Job(
    "children",
    {"README.md": "# A report\n"},
    (JobPrompt("report", "How long is the report?", ((Run(COMMAND),), (QUERY,), (SayStep("It has 700 entries."),))),),
)
CHILD: Final = "RLM child analyzer"


@pytest.mark.parametrize("name", ["claude-code", "codex"])
def test_the_model_of_a_real_agent_asks_a_child(name: str) -> None:
    commands = commands_folder()
    if commands is None:
        pytest.skip("coding agents are not installed: make clients")
    with TemporaryDirectory(prefix="pagein-agents-") as folder:
        gateway = GatewayProcess(Path(folder) / "gateway", SETTINGS)
        done = work(agent_named(name), JOB, Place(Path(folder) / "agent", commands), gateway)
        assert done.answers == ("It has 700 entries.",)
        assert (done.bill.refused, gateway.failures) == (0, {})
    sent = [json.dumps(one.body) for one in done.records if one.body is not None]
    (child,) = [text for text in sent if CHILD in text]
    assert "entry 311 of a long report" in child
    assert "How long is the report?" not in child  # nothing of the agent's conversation
    last = json.dumps(done.last_body)
    assert "ok (unscripted)" in last  # what the simulated child says
    assert "1 child call, " in last
