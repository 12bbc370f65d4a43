"""Real agents with pagein's MCP server: the configuration of each agent, and its form of tool calls."""

import json
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from tests.agents.agent_drivers import Agent, Setup, agent_named
from tests.agents.jobs import CallStep

import pagein


@dataclass(frozen=True, slots=True)
class ServedAgent:
    """An agent that can be told of the server.

    name: of its driver. form: the name that it gives to a tool. namespace: that of its tools.
    """

    name: str
    tell: Callable[[Agent, Path], Agent]
    form: str
    namespace: str = ""

    def agent(self, store: Path | None) -> Agent:
        """The agent with the server on a store; without it for None."""
        return agent_named(self.name) if store is None else self.tell(agent_named(self.name), store)

    def call(self, tool: str, quotes: Mapping[str, str] | None = None, **arguments: object) -> CallStep:
        """A call of one of the server's tools."""
        return CallStep(self.form.format(tool), arguments, quotes or {}, self.namespace)


def _server(store: Path) -> tuple[str, list[str]]:
    return sys.executable, ["-c", "from pagein.cli.cli import main; main()", "mcp", "--store", str(store)]


def _with_claude(agent: Agent, store: Path) -> Agent:
    command, arguments = _server(store)
    servers = {
        "mcpServers": {"pagein": {"command": command, "args": arguments, "env": environment(), "alwaysLoad": True}}
    }

    def told(model: str, goes_on: bool) -> list[str]:  # noqa: FBT001 - the shape of all of these
        return [*agent.arguments(model, goes_on), "mcp__pagein", "--mcp-config", json.dumps(servers)]

    return replace(agent, arguments=told)


def _with_codex(agent: Agent, store: Path) -> Agent:
    command, arguments = _server(store)
    lines = ["[mcp_servers.pagein]", f"command = {json.dumps(command)}", f"args = {json.dumps(arguments)}"]
    lines += ['default_tools_approval_mode = "approve"', "required = true", 'env_vars = ["CODEX_HOME"]']
    lines += ["[mcp_servers.pagein.env]"]
    lines += [f"{name} = {json.dumps(value)}" for name, value in environment().items()]

    def setup(address: str, model: str) -> Setup:
        before = agent.setup(address, model)
        return replace(before, files={name: "\n".join([text, *lines, ""]) for name, text in before.files.items()})

    return replace(agent, setup=setup)


def _with_opencode(agent: Agent, store: Path) -> Agent:
    command, arguments = _server(store)
    server = {"type": "local", "command": [command, *arguments], "enabled": True, "environment": environment()}

    def setup(address: str, model: str) -> Setup:
        before = agent.setup(address, model)
        files = {
            name: json.dumps({**json.loads(text), "mcp": {"pagein": server}}) for name, text in before.files.items()
        }
        return replace(before, files=files)

    return replace(agent, setup=setup)


def environment() -> dict[str, str]:
    """The environment of a server: the sources of this very pagein."""
    return {"PYTHONPATH": str(Path(pagein.__file__).parents[1])}


SERVED: Final = {
    one.name: one
    for one in (
        ServedAgent("claude-code", _with_claude, "mcp__pagein__{}"),
        ServedAgent("codex", _with_codex, "{}", "mcp__pagein"),
        ServedAgent("opencode-anthropic", _with_opencode, "pagein_{}"),
    )
}
"""The agents by the names of their drivers."""
