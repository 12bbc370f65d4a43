"""Real coding agents under `pagein run`, set up for another address; their gateway is killed in mid session."""

import json
import os
import sys
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

import pytest
from tests.agents import GEMINI_CLI, Agent, agent_named, commands_folder
from tests.agents.agent_drivers import search_path
from tests.agents.runs import run_prompt, write_files

import pagein
from pagein.simulator import SimulatedProvider

pytestmark = pytest.mark.clients

_AGENTS: Final = (
    *(agent_named(name) for name in ("claude-code", "codex", "opencode-anthropic", "pi-responses")),
    GEMINI_CLI,
)
_KILL: Final = """
import os, pathlib
for one in pathlib.Path("/proc").glob("[0-9]*/cmdline"):
    try:
        words = one.read_bytes().split(b"\\0")
    except OSError:
        continue
    if b"serve" in words and any(word.startswith(b"{home}") and word.endswith(b".lease") for word in words):
        os.kill(int(one.parent.name), 9)
        print("it is gone")
"""


@pytest.mark.parametrize("agent", _AGENTS, ids=lambda agent: agent.name)
def test_a_session_goes_on_when_its_gateway_dies(agent: Agent) -> None:
    commands = commands_folder()
    if commands is None:
        pytest.skip("coding agents are not installed: make clients")
    with TemporaryDirectory(prefix="pagein-run-") as name:
        home, workspace = Path(name) / "home", Path(name) / "work"
        write_files(home, {"kill.py": _KILL.replace("{home}", str(home))})
        workspace.mkdir()
        thinking = [{"thinking": "so be it"}] if agent.thinks else []
        killing = agent.speech.run(workspace, f"{sys.executable} {home / 'kill.py'}")
        calls = [[*thinking, killing], [*thinking, {"text": "it went on"}]]
        with SimulatedProvider({"kill": calls}) as provider:
            setup = agent.settings(provider.url)
            # for its measured runs pi is told never to try again
            write_files(home, {file: text for file, text in setup.files.items() if file != "pi/settings.json"})
            given = {key: value.replace("{home}", str(home)) for key, value in setup.environment.items()}
            environment = {"PATH": search_path(commands), "HOME": str(home), "TERM": "dumb", **_pagein(home), **given}
            command = [sys.executable, "-m", "pagein", "run", *agent.command(goes_on=False)]
            printed = run_prompt(command, "end the gateway SCRIPT@kill", workspace, environment)
            results = json.dumps(provider.requests[-1].body)
        assert agent.answer(printed) == "it went on"
        assert "it is gone" in results
        log = (home / ".local/state/pagein/log/run.jsonl").read_text(encoding="utf-8").splitlines()
        assert sum(json.loads(line)["event"] == "call" for line in log if line.startswith("{")) >= 2, (
            "both passed through"
        )


def _pagein(home: Path) -> dict[str, str]:
    sources = str(Path(pagein.__file__).parents[1])
    folders = {"XDG_DATA_HOME": str(home / "data"), "XDG_STATE_HOME": str(home / ".local/state")}
    return {"PYTHONPATH": sources, "PAGEIN_PORT": "0", **folders, "LANG": os.environ.get("LANG", "C.UTF-8")}
