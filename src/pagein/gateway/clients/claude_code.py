"""Claude Code's setup."""

from collections.abc import Mapping
from pathlib import Path
from typing import Final

from pagein.gateway.clients.client import Client, ClientSetup, ConfigPlaces, is_same, misses
from pagein.gateway.clients.config_files import read_json

_WHOLE_WINDOW: Final = "[1m]"
"""Suffix of model names for which Claude Code keeps a window of a million tokens at any address."""
FIRST_PARTY: Final = "_CLAUDE_CODE_ASSUME_FIRST_PARTY_BASE_URL"


def _variables(url: str) -> Mapping[str, str]:
    return {"ANTHROPIC_BASE_URL": url, "ENABLE_TOOL_SEARCH": "true"}


def _settings(url: str) -> tuple[str, ...]:
    return tuple(f"export {name}={value}" for name, value in _variables(url).items())


def _read(client: Client, url: str, places: ConfigPlaces) -> ClientSetup:
    """Read Claude Code's setup.

    The settings' `env` overrides the shell, and the workspace's settings override the user's.
    """
    folder = Path(places.environment.get("CLAUDE_CONFIG_DIR") or places.home / ".claude")
    project = places.workspace / ".claude"
    files = (folder / "settings.json", project / "settings.json", project / "settings.local.json")
    told = dict(places.environment)
    model = told.get("ANTHROPIC_MODEL", "")
    sources: dict[str, Path] = {}
    for file in files:
        settings = read_json(file)
        variables = settings.get("env")
        for name, value in variables.items() if isinstance(variables, dict) else ():
            told[name], sources[name] = str(value), file
        model = str(settings.get("model") or model)
    problems = tuple(_with_source(one, sources) for one in misses(client, url, told))
    remarks: tuple[str, ...] = ()
    if is_same(told.get("ANTHROPIC_BASE_URL"), url) and FIRST_PARTY not in told and not model.endswith(_WHOLE_WINDOW):
        remarks = (
            (
                "at this address it takes every window for 200k tokens and compacts early, also where the model has a million; a model "
                f"name that ends in {_WHOLE_WINDOW} brings it back (docs/hosts/claude-code.md says what that costs)"
            ),
        )
    return ClientSetup(client, not problems, problems, remarks)


def _with_source(problem: str, sources: Mapping[str, Path]) -> str:
    name = problem.partition("=")[0]
    return f"{problem}: {sources[name]} says so, and that outvotes the shell" if name in sources else problem


CLIENT: Final = Client(
    "Claude Code",
    "in the shell that starts it",
    _settings,
    _variables,
    _read,
    (
        "ENABLE_TOOL_SEARCH=true: without it, any other address than the vendor's makes it load all MCP tools up front",
        "at any other address it takes a window of a million tokens for 200k; a model name in [1m] brings it back (docs/hosts/claude-code.md)",
        "needs an API key; with a subscription's login requests pass through untouched",
    ),
)
