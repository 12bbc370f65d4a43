"""The names of agents on the command line: each may also be called by the command that starts it."""

from collections.abc import Iterable, Mapping
from typing import Final

_COMMANDS: Final[Mapping[str, str]] = {"claude": "claude-code", "gemini": "gemini-cli"}
"""Names of agents by their commands, where the two differ."""


def agent_name(told: str | None) -> str | None:
    """Return the name of the agent that a person calls by name or by command; None for no agent."""
    return None if told is None else _COMMANDS.get(told, told)


def list_agents(names: Iterable[str]) -> str:
    """Return the names of agents for an error or a help text, in order, each with its command if that differs."""
    commands = {name: command for command, name in _COMMANDS.items()}
    return ", ".join(f"{name} (or {commands[name]})" if name in commands else name for name in sorted(names))
