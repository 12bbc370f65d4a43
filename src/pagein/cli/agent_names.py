"""The names of agents on the command line: each may also be called by the command that starts it."""

from collections.abc import Iterable, Mapping


def agent_name(told: str | None) -> str | None:
    """Return the name of the agent that a person calls by name or by command; None for no agent."""
    return None if told is None else next((name for name, command in _commands().items() if command == told), told)


def list_agents(names: Iterable[str]) -> str:
    """Return the names of agents for an error or a help text, in order, each with its command if that differs."""
    commands = _commands()
    return ", ".join(
        f"{name} (or {commands[name]})" if commands.get(name, name) != name else name for name in sorted(names)
    )


def _commands() -> Mapping[str, str]:
    """Return the command of each agent, by name."""
    from pagein.gateway.client_setup import launches  # commands that name no agent start without it

    return {name: one.command for name, one in launches().items()}
