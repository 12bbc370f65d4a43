"""Setup of each client for the gateway, as data. docs/hosts/ describes the same in prose."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final

from pagein.gateway.http.addresses import without_token


@dataclass(frozen=True, slots=True)
class Client:
    """A coding agent.

    settings: lines to set or write, given the gateway's address
    where: place of these lines
    variables: required environment variables, given the address
    notes: further advice
    """

    name: str
    where: str
    settings: Callable[[str], tuple[str, ...]]
    variables: Callable[[str], Mapping[str, str]]
    notes: tuple[str, ...] = ()


def _no_variables(_: str) -> Mapping[str, str]:
    return {}


def _claude_variables(url: str) -> Mapping[str, str]:
    return {"ANTHROPIC_BASE_URL": url, "ENABLE_TOOL_SEARCH": "true"}


def _claude(url: str) -> tuple[str, ...]:
    return tuple(f"export {name}={value}" for name, value in _claude_variables(url).items())


def _codex(url: str) -> tuple[str, ...]:
    """Return command-line options for codex.

    Lines appended to its file would fall below an existing table and have no effect.
    """
    entry = (
        f'name="pagein", base_url="{url}/v1", wire_api="responses", env_key="OPENAI_API_KEY", supports_websockets=false'
    )
    return (f"codex -c model_provider=pagein -c 'model_providers.pagein={{{entry}}}'",)


def _opencode(url: str) -> tuple[str, ...]:
    options = f'{{"options": {{"baseURL": "{url}/v1"}}}}'
    return (f'{{"provider": {{"anthropic": {options}, "openai": {options}}}}}',)


def _pi(url: str) -> tuple[str, ...]:
    return (f'{{"providers": {{"anthropic": {{"baseUrl": "{url}"}}, "openai": {{"baseUrl": "{url}/v1"}}}}}}',)


def _gemini_variables(url: str) -> Mapping[str, str]:
    return {"GOOGLE_GEMINI_BASE_URL": url}


def _gemini(url: str) -> tuple[str, ...]:
    return tuple(f"export {name}={value}" for name, value in _gemini_variables(url).items())


CLIENTS: Final = (
    Client(
        "Claude Code",
        "in the shell that starts it",
        _claude,
        _claude_variables,
        (
            "ENABLE_TOOL_SEARCH=true: without it, any other address than the vendor's makes it load all MCP tools up front",
            "at any other address it takes a window of a million tokens for 200k; a model name in [1m] brings it back (docs/hosts/claude-code.md)",
            "needs an API key; with a subscription's login requests pass through untouched",
        ),
    ),
    Client(
        "codex",
        "on its command line",
        _codex,
        _no_variables,
        (
            "in ~/.codex/config.toml the same must stand above the first [table] (docs/hosts/codex.md); OPENAI_BASE_URL is not read",
        ),
    ),
    Client("opencode", "opencode.json", _opencode, _no_variables),
    Client(
        "pi",
        "~/.pi/agent/models.json",
        _pi,
        _no_variables,
        ("chat completions: sendSessionAffinityHeaders in the model's compat tells sessions apart",),
    ),
    Client(
        "Gemini CLI",
        "in the shell that starts it",
        _gemini,
        _gemini_variables,
        (
            "needs GEMINI_API_KEY, and security.auth.selectedType gemini-api-key in ~/.gemini/settings.json (docs/hosts/gemini-cli.md)",
        ),
    ),
)


def misses(client: Client, url: str, environment: Mapping[str, str]) -> list[str]:
    """Return the differences between the environment and the client's requirements, in words."""
    found = []
    for name, value in client.variables(url).items():
        told = environment.get(name, "")
        if not told:
            found.append(f"{name} is not set here; export {name}={value}")
        elif without_token(told).rstrip("/") != value:
            found.append(f"{name}={without_token(told)}, not {value}")
    return found
