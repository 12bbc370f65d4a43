"""Real coding agents call pagein's tools over MCP: a second read is answered by its receipt, an earlier session is found."""

import json
import sys
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final

import pytest
from tests.agents import Job, Place, agent_named, commands_folder, work
from tests.agents.agent_drivers import Agent, Setup
from tests.agents.jobs import CallStep, JobPrompt, SayStep

import pagein
from pagein.model.messages import Message, Text

pytestmark = pytest.mark.clients

LINES: Final = "".join(f"value_{number} = compute({number})  # of the table\n" for number in range(80))
RECEIPT: Final = r"\[known=([0-9a-f]{10})\]"
MARKER: Final = "[readcache: unchanged, 81 lines]"


def _server(store: Path) -> tuple[str, list[str]]:
    return sys.executable, ["-c", "from pagein.cli.cli import main; main()", "mcp", "--store", str(store)]


def _with_claude(agent: Agent, store: Path) -> Agent:
    command, arguments = _server(store)
    servers = {
        "mcpServers": {"pagein": {"command": command, "args": arguments, "env": _environment(), "alwaysLoad": True}}
    }

    def told(model: str, goes_on: bool) -> list[str]:  # noqa: FBT001 - the shape of all of these
        return [*agent.arguments(model, goes_on), "mcp__pagein", "--mcp-config", json.dumps(servers)]

    return replace(agent, arguments=told)


def _with_codex(agent: Agent, store: Path) -> Agent:
    command, arguments = _server(store)
    lines = ["[mcp_servers.pagein]", f"command = {json.dumps(command)}", f"args = {json.dumps(arguments)}"]
    lines += ['default_tools_approval_mode = "approve"', "required = true", "[mcp_servers.pagein.env]"]
    lines += [f"{name} = {json.dumps(value)}" for name, value in _environment().items()]

    def setup(address: str, model: str) -> Setup:
        before = agent.setup(address, model)
        return replace(before, files={name: "\n".join([text, *lines, ""]) for name, text in before.files.items()})

    return replace(agent, setup=setup)


def _with_opencode(agent: Agent, store: Path) -> Agent:
    command, arguments = _server(store)
    server = {"type": "local", "command": [command, *arguments], "enabled": True, "environment": _environment()}

    def setup(address: str, model: str) -> Setup:
        before = agent.setup(address, model)
        files = {
            name: json.dumps({**json.loads(text), "mcp": {"pagein": server}}) for name, text in before.files.items()
        }
        return replace(before, files=files)

    return replace(agent, setup=setup)


def _environment() -> dict[str, str]:
    return {"PYTHONPATH": str(Path(pagein.__file__).parents[1])}


CLIENTS: Final[Mapping[str, tuple[Callable[[Agent, Path], Agent], str, str]]] = {
    "claude-code": (_with_claude, "mcp__pagein__{}", ""),
    "codex": (_with_codex, "{}", "mcp__pagein"),
    "opencode-anthropic": (_with_opencode, "pagein_{}", ""),
}
"""How each agent is told of the server, the name that it gives to a tool, and the namespace."""


def _earlier_session(store: Path, workspace: Path) -> None:
    with pagein.open(store, workspace=workspace) as engine:
        session = engine.session("earlier", workspace=workspace)
        session.append(Message("user", (Text("the invoice rounding is wrong for Swiss francs"),)))
        session.append(Message("assistant", (Text("I rounded to five centimes in billing"),)))
        session.advance(at=1000.0)


@pytest.mark.parametrize("name", CLIENTS)
def test_a_real_agent_reads_again_by_receipt_and_finds_an_earlier_session(name: str) -> None:
    commands = commands_folder()
    if commands is None:
        pytest.skip("coding agents are not installed: make clients")
    tell, form, namespace = CLIENTS[name]

    def call(tool: str, quotes: Mapping[str, str] | None = None, **arguments: object) -> CallStep:
        return CallStep(form.format(tool), arguments, quotes or {}, namespace)

    with TemporaryDirectory(prefix="pagein-agents-") as folder:
        place, store = Place(Path(folder) / "agent", commands), Path(folder) / "store.db"
        _earlier_session(store, place.workspace)
        calls: list[CallStep | SayStep] = [
            call("read", path="table.py"),
            call("read", {"tag": RECEIPT}, path="table.py", known=["{{tag}}"]),
            call("search", pattern="five centimes"),
            call("peek", {"id": r"\*\*([0-9A-Za-z_.:-]+@\d+)\*\*"}, id="{{id}}"),
            SayStep("Rounded to five centimes."),
        ]
        prompt = JobPrompt("mcp", "What about the table?", tuple((one,) for one in calls))
        done = work(tell(agent_named(name), store), Job("mcp", {"table.py": LINES}, (prompt,)), place)
    assert (done.answers, done.files, done.bill.refused) == (("Rounded to five centimes.",), {"table.py": LINES}, 0)
    sent = [one.body for one in done.records if one.body is not None]
    last = json.dumps(sent[-1])
    results = _results(sent[-1])
    assert last.count("value_79 = compute(79)") == 1
    assert any(one.endswith(MARKER) for one in results)
    assert any("I rounded to five centimes in billing" in one for one in results)


def _results(body: Any) -> list[str]:  # noqa: ANN401 - a request of any wire format
    """The texts of the tool results in a request of any of these agents."""
    found = []
    for message in body.get("messages", []):
        blocks = message["content"] if isinstance(message["content"], list) else []
        for block in blocks:
            if block.get("type") == "tool_result":
                content = block["content"]
                found.append(content if isinstance(content, str) else "".join(one.get("text", "") for one in content))
    for item in body.get("input", []):
        if item.get("type") == "function_call_output":
            output = item["output"]
            found.append(output if isinstance(output, str) else "".join(one.get("text", "") for one in output))
    return found
