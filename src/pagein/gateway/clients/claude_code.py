"""Claude Code's setup."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from pagein.errors import BadSetting
from pagein.gateway.clients.client import Client, ClientSetup, ConfigPlaces, is_same, misses
from pagein.gateway.clients.config_files import read_json
from pagein.gateway.clients.launch import AgentEndpoint, Endpoints, Launch, LaunchPlan, LaunchRequest, option
from pagein.gateway.settings import is_set
from pagein.providers.vendors import ANTHROPIC

_WHOLE_WINDOW: Final = "[1m]"
"""Suffix of model names for which Claude Code keeps a window of a million tokens at any address."""
FIRST_PARTY: Final = "_CLAUDE_CODE_ASSUME_FIRST_PARTY_BASE_URL"
_ADDRESS: Final = "ANTHROPIC_BASE_URL"
_TOOL_SEARCH: Final = "ENABLE_TOOL_SEARCH"
_ELSEWHERE: Final = ("CLAUDE_CODE_USE_BEDROCK", "CLAUDE_CODE_USE_VERTEX", "CLAUDE_CODE_USE_FOUNDRY")
"""Variables with which it sends nothing to its base URL."""
_KEYS: Final = ("ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN")
_MANAGED: Final = (
    Path("/etc/claude-code/managed-settings.json"),
    Path("/Library/Application Support/ClaudeCode/managed-settings.json"),
)
"""Settings of the machine's owner, which override its command line."""
_SETTINGS_OPTION: Final = "--settings"


@dataclass(frozen=True, slots=True)
class _ClientSettings:
    """The settings of Claude Code from files and environment.

    variables: the environment, with the `env` of the settings files over it
    sources: the file of each variable that comes from one
    """

    variables: Mapping[str, str]
    sources: Mapping[str, Path]
    model: str
    has_key_helper: bool


def _variables(url: str) -> Mapping[str, str]:
    return {_ADDRESS: url, _TOOL_SEARCH: "true"}


def _settings(url: str) -> tuple[str, ...]:
    return tuple(f"export {name}={value}" for name, value in _variables(url).items())


def _read(client: Client, url: str, places: ConfigPlaces) -> ClientSetup:
    """Read Claude Code's setup.

    The settings' `env` overrides the shell, and the workspace's settings override the user's.
    """
    found = _told(places)
    told, model, sources = found.variables, found.model, found.sources
    problems = tuple(_with_source(one, sources) for one in misses(client, url, told))
    remarks: tuple[str, ...] = ()
    if is_same(told.get(_ADDRESS), url) and FIRST_PARTY not in told and not model.endswith(_WHOLE_WINDOW):
        remarks = (
            (
                "at this address it assumes 200k tokens for every window and compacts early, even if the model has a million; a model "
                f"name that ends in {_WHOLE_WINDOW} restores the window (its costs: docs/hosts/claude-code.md)"
            ),
        )
    return ClientSetup(client, not problems, problems, remarks)


def _told(places: ConfigPlaces) -> _ClientSettings:
    folder = Path(places.environment.get("CLAUDE_CONFIG_DIR") or places.home / ".claude")
    project = places.workspace / ".claude"
    files = (folder / "settings.json", project / "settings.json", project / "settings.local.json", *_MANAGED)
    told = dict(places.environment)
    model = told.get("ANTHROPIC_MODEL", "")
    sources: dict[str, Path] = {}
    has_key_helper = False
    for file in files:
        settings: Mapping[str, Any] = read_json(file)
        variables = settings.get("env")
        for name, value in variables.items() if isinstance(variables, dict) else ():
            told[name], sources[name] = str(value), file
        model = str(settings.get("model") or model)
        has_key_helper = has_key_helper or bool(settings.get("apiKeyHelper"))
    return _ClientSettings(told, sources, model, has_key_helper)


def _endpoints(places: ConfigPlaces, _: Sequence[str]) -> Endpoints:
    address = _told(places).variables.get(_ADDRESS, "")
    return Endpoints((AgentEndpoint(ANTHROPIC.name, ANTHROPIC.name, address),), ANTHROPIC.name)


def _plan(asked: LaunchRequest) -> LaunchPlan:
    """Plan a start. The address goes into the environment, and onto the command line where a settings file overrides that.

    Tool search is switched on only for the vendor's own address, which knows it, and only if the user has not decided.
    """
    found = _told(asked.places)
    told, is_own = found.variables, ANTHROPIC.name in asked.own
    elsewhere = next((name for name in _ELSEWHERE if is_set(told.get(name))), None)
    if elsewhere is not None:
        raise BadSetting(
            f"Claude Code sends nothing to a gateway while {elsewhere} is set; unset it, or start claude itself"
        )
    if asked.whole_window and not is_own:
        raise BadSetting(
            "--whole-window is for requests that the gateway sends to Anthropic's own address, because Claude Code then sends fields that "
            f"only this address understands; a model name that ends in {_WHOLE_WINDOW} serves at any address"
        )
    environment = {_ADDRESS: asked.url}
    if is_own and _TOOL_SEARCH not in told:
        environment[_TOOL_SEARCH] = "true"
    if asked.whole_window and FIRST_PARTY not in told:
        environment[FIRST_PARTY] = "1"
    remarks = tuple(_remarks(asked, found, keeps_window=FIRST_PARTY in {**told, **environment}))
    return LaunchPlan(environment, _outvoting(asked, found), remarks)


def _outvoting(asked: LaunchRequest, found: _ClientSettings) -> tuple[str, ...]:
    """Return the arguments that override the address of a settings file."""
    file = found.sources.get(_ADDRESS)
    if file is None or is_same(found.variables[_ADDRESS], asked.url):
        return ()
    if file in _MANAGED or option(asked.arguments, _SETTINGS_OPTION):
        why = "the command line" if file in _MANAGED else f"the shell, and {_SETTINGS_OPTION} is taken by your own"
        raise BadSetting(
            f"{_ADDRESS} in {file} overrides {why}; take it out of there. To have pagein send to that address, set PAGEIN_ANTHROPIC to it"
        )
    return (_SETTINGS_OPTION, json.dumps({"env": {_ADDRESS: asked.url}}))


def _remarks(asked: LaunchRequest, found: _ClientSettings, *, keeps_window: bool) -> list[str]:
    remarks = []
    model = option(asked.arguments, "--model") or found.model
    if not keeps_window and not model.endswith(_WHOLE_WINDOW):
        remarks.append(
            f"Claude Code takes every window for 200k tokens here; a model in {_WHOLE_WINDOW} or pagein run --whole-window keeps a million"
        )
    if FIRST_PARTY in found.variables and ANTHROPIC.name not in asked.own:
        remarks.append(
            f"{FIRST_PARTY} is set, but requests go to another address than the vendor's, which may refuse them"
        )
    if not found.has_key_helper and not any(found.variables.get(name) for name in _KEYS):
        remarks.append("without an API key its requests pass unchanged and are only measured")
    return remarks


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
        "at any other address it assumes 200k tokens for a window of a million; a model name in [1m] restores it (docs/hosts/claude-code.md)",
        "needs an API key; with a subscription's login requests pass through untouched",
    ),
    (ANTHROPIC.name,),
)

LAUNCH: Final = Launch("claude", CLIENT, _endpoints, _plan)
