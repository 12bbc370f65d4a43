"""The agents with an entry for pagein's MCP server: the place and the form of each agent's list of servers. Data.

Sources: the agents' own documentation; those that the tests drive were also tried.
"""

import shlex
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, Literal, TypeAlias

from pagein.installation.json_inserts import Keys

Entry: TypeAlias = Mapping[str, object]


@dataclass(frozen=True, slots=True)
class Folders:
    """Where files of a user and of a project are.

    environment: the environment of the agent.
    """

    home: Path
    project: Path
    environment: Mapping[str, str]

    def named(self, variable: str, default: Path) -> Path:
        """Return the folder that a variable names, else the default."""
        told = self.environment.get(variable, "").strip()
        return Path(told).expanduser() if told else default


@dataclass(frozen=True, slots=True)
class HttpServer:
    """The MCP server of a running gateway. token: the bearer token that each client must send."""

    url: str
    token: str = field(repr=False)

    @property
    def headers(self) -> dict[str, str]:
        """Return the headers that a client has to send."""
        return {"Authorization": f"Bearer {self.token}"}


@dataclass(frozen=True, slots=True)
class AgentFile:
    """A file in which an agent looks for servers.

    keys: names of the objects or tables down to pagein's entry.
    path: returns the file.
    entry: returns the entry for the command that starts the server.
    mark: for an entry in a list, a text that identifies the entry, apart from the shell's quotation marks; "" for a separate
    member.
    http: returns the entry for a running server; None if the agent has no such entries.
    first: members of a new file that the agent itself would add.
    """

    form: Literal["json", "toml"]
    keys: Keys
    path: Callable[[Folders], Path]
    entry: Callable[[list[str]], Entry]
    mark: str = ""
    http: Callable[[HttpServer], Entry] | None = None
    first: Entry = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Agent:
    """An agent.

    user, project: its files for all folders, and for one folder; None without such a file.
    after: next steps for the person, in words.
    gateway: the command that starts it behind a gateway; "" if its requests cannot use a gateway.
    user_hooks, project_hooks: its files for the hooks (see `pagein hook`), in the order of installation.
    """

    name: str
    title: str
    user: AgentFile | None
    project: AgentFile | None
    after: str
    gateway: str = ""
    user_hooks: tuple[AgentFile, ...] = ()
    project_hooks: tuple[AgentFile, ...] = ()


def _stdio(command: list[str]) -> Entry:
    return {"type": "stdio", "command": command[0], "args": command[1:]}


def _with_home(command: list[str]) -> Entry:
    """Return the entry of a server with the folder of codex's rollouts, if the folder is not the usual one."""
    return {**_plain(command), "env_vars": ["CODEX_HOME"]}


def _plain(command: list[str]) -> Entry:
    return {"command": command[0], "args": command[1:]}


def _typed_http(server: HttpServer) -> Entry:
    return {"type": "http", "url": server.url, "headers": server.headers}


def _hook(command: list[str], seconds: int) -> Entry:
    """Return a command whose failure never blocks the agent, even if pagein is older or missing."""
    return {"type": "command", "command": f"{shlex.join([command[0], *_HOOK])} || true", "timeout": seconds}


def _guard(command: list[str]) -> Entry:
    """Return the hook that checks each file write."""
    return {"matcher": "Write|Edit|MultiEdit|NotebookEdit|Bash", "hooks": [_hook(command, 10)]}


def _memory(command: list[str]) -> Entry:
    """Return the hook that stores the conversation up to now."""
    return {"hooks": [_hook(command, 60)]}


def _hooks(path: Callable[[Folders], Path]) -> tuple[AgentFile, ...]:
    mark = " ".join(("pagein", *_HOOK))
    return (
        AgentFile("json", ("hooks", "PreToolUse"), path, _guard, mark),
        AgentFile("json", ("hooks", "PreCompact"), path, _memory, mark),
        AgentFile("json", ("hooks", "SessionEnd"), path, _memory, mark),
    )


def _opencode_file(at: Folders) -> Path:
    folder = at.named("XDG_CONFIG_HOME", at.home / ".config") / "opencode"
    named = at.environment.get("OPENCODE_CONFIG", "").strip()
    there = (folder / "opencode.jsonc", folder / "opencode.json")
    return Path(named).expanduser() if named else next((one for one in there if one.is_file()), there[1])


def _vscode_file(at: Folders) -> Path:
    if sys.platform == "darwin":
        return at.home / "Library" / "Application Support" / "Code" / "User" / "mcp.json"
    return at.named("XDG_CONFIG_HOME", at.home / ".config") / "Code" / "User" / "mcp.json"


def _claude_code_file(at: Folders) -> Path:
    return at.named("CLAUDE_CONFIG_DIR", at.home) / ".claude.json"


_SERVERS: Final = ("mcpServers", "pagein")
_HOOK: Final = ("hook", "claude-code")
_OPENCODE_FIRST: Final = {"$schema": "https://opencode.ai/config.json"}

AGENTS: Final = {
    one.name: one
    for one in (
        Agent(
            "claude-code",
            "Claude Code",
            # its models call tools before a slow server is connected, unless it waits
            AgentFile(
                "json",
                _SERVERS,
                _claude_code_file,
                lambda command: {**_stdio(command), "alwaysLoad": True},
                http=lambda server: {**_typed_http(server), "alwaysLoad": True},
            ),
            AgentFile(
                "json",
                _SERVERS,
                lambda at: at.project / ".mcp.json",
                lambda command: {**_stdio(command), "alwaysLoad": True},
            ),
            "Restart claude; `/mcp` shows the server, `/hooks` the hooks.",
            "pagein run claude",
            _hooks(lambda at: at.named("CLAUDE_CONFIG_DIR", at.home / ".claude") / "settings.json"),
            _hooks(lambda at: at.project / ".claude" / "settings.json"),
        ),
        Agent(
            "codex",
            "codex",
            AgentFile(
                "toml",
                ("mcp_servers", "pagein"),
                lambda at: at.named("CODEX_HOME", at.home / ".codex") / "config.toml",
                _with_home,
                http=lambda server: {"url": server.url, "http_headers": server.headers},
            ),
            None,
            "Restart codex; `/mcp` shows the server.",
            "pagein run codex",
        ),
        Agent(
            "cursor",
            "Cursor",
            AgentFile(
                "json",
                _SERVERS,
                lambda at: at.home / ".cursor" / "mcp.json",
                _plain,
                http=lambda server: {"url": server.url, "headers": server.headers},
            ),
            AgentFile("json", _SERVERS, lambda at: at.project / ".cursor" / "mcp.json", _plain),
            "Switch the server on in Cursor's settings, under MCP.",
        ),
        Agent(
            "opencode",
            "opencode",
            AgentFile(
                "json",
                ("mcp", "pagein"),
                _opencode_file,
                lambda command: {"type": "local", "command": command, "enabled": True},
                http=lambda server: {"type": "remote", "url": server.url, "enabled": True, "headers": server.headers},
                first=_OPENCODE_FIRST,
            ),
            AgentFile(
                "json",
                ("mcp", "pagein"),
                lambda at: at.project / "opencode.json",
                lambda command: {"type": "local", "command": command, "enabled": True},
                first=_OPENCODE_FIRST,
            ),
            "Restart opencode; `opencode mcp list` shows the server.",
            "pagein run opencode",
        ),
        Agent(
            "vscode",
            "VS Code",
            AgentFile("json", ("servers", "pagein"), _vscode_file, _stdio, http=_typed_http),
            AgentFile("json", ("servers", "pagein"), lambda at: at.project / ".vscode" / "mcp.json", _stdio),
            "Start the server by the line above it in the editor.",
        ),
    )
}
"""Every agent by its name."""
