"""OpenCode's setup."""

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Final

from pagein.errors import BadSetting
from pagein.gateway.clients.client import Client, ClientSetup, ConfigPlaces, no_variables, setup_by_addresses
from pagein.gateway.clients.config_files import read_json, tables_in
from pagein.gateway.clients.launch import (
    AgentEndpoint,
    Endpoints,
    Launch,
    LaunchPlan,
    LaunchRequest,
    bypass_remarks,
    option,
    versioned,
)
from pagein.providers.vendors import ANTHROPIC, OPENAI

_CONTENT: Final = "OPENCODE_CONFIG_CONTENT"
_BUILT_IN: Final = (ANTHROPIC.name, OPENAI.name)
_LIBRARIES: Final = {
    "@ai-sdk/anthropic": ANTHROPIC.name,
    "@ai-sdk/openai": OPENAI.name,
    "@ai-sdk/openai-compatible": OPENAI.name,
}
"""The vendor by the library that a provider of the user's own uses."""


def _settings(url: str) -> tuple[str, ...]:
    options = f'{{"options": {{"baseURL": "{url}/v1"}}}}'
    return (f'{{"provider": {{"anthropic": {options}, "openai": {options}}}}}',)


def _files(places: ConfigPlaces) -> tuple[Path, ...]:
    """Return opencode's configuration files, in ascending precedence."""
    folder = Path(places.environment.get("XDG_CONFIG_HOME") or places.home / ".config") / "opencode"
    named = places.environment.get("OPENCODE_CONFIG")
    stems = (folder / "opencode.json", folder / "opencode.jsonc", *((Path(named),) if named else ()))
    return (*stems, places.workspace / "opencode.json", places.workspace / "opencode.jsonc")


def _read(client: Client, url: str, places: ConfigPlaces) -> ClientSetup:
    files = _files(places)
    addresses = [
        entry.get("options", {}).get("baseURL")
        for file in files
        for entry in tables_in(read_json(file), "provider").values()
        if isinstance(entry.get("options"), dict)
    ]
    return setup_by_addresses(client, url, [f"{url}/v1"], addresses, files)


def _endpoints(places: ConfigPlaces, arguments: Sequence[str]) -> Endpoints:
    """Return the configured providers with a library for a supported vendor."""
    libraries: dict[str, str] = {name: f"@ai-sdk/{name}" for name in _BUILT_IN}
    addresses: dict[str, str] = {}
    model = ""
    for settings in _settings_of(places):
        model = str(settings.get("model") or model)
        for name, entry in tables_in(settings, "provider").items():
            libraries[name] = str(entry.get("npm") or libraries.get(name, ""))
            options = entry.get("options")
            if isinstance(options, dict) and options.get("baseURL"):
                addresses[name] = str(options["baseURL"])
    known = tuple(
        AgentEndpoint(name, _LIBRARIES[library], addresses.get(name, ""))
        for name, library in libraries.items()
        if library in _LIBRARIES and (name in _BUILT_IN or name in addresses)
    )
    return Endpoints(known, (option(arguments, "-m", "--model") or model).partition("/")[0])


def _settings_of(places: ConfigPlaces) -> Iterator[Any]:
    yield from map(read_json, _files(places))
    yield _content(places)


def _content(places: ConfigPlaces) -> dict[str, Any]:
    try:
        told = json.loads(places.environment.get(_CONTENT) or "{}")
    except ValueError as problem:
        raise BadSetting(f"{_CONTENT} is not JSON: {problem}") from problem
    return told if isinstance(told, dict) else {}


def _plan(asked: LaunchRequest) -> LaunchPlan:
    """Plan a start. A variable with configuration overrides opencode's files."""
    told = _content(asked.places)
    providers = dict(told.get("provider") or {})
    for one in asked.endpoints.known:
        entry = dict(providers.get(one.name) or {})
        providers[one.name] = {
            **entry,
            "options": {**entry.get("options", {}), "baseURL": versioned(asked.url, one.address)},
        }
    return LaunchPlan({_CONTENT: json.dumps({**told, "provider": providers})}, (), bypass_remarks(asked.endpoints))


CLIENT: Final = Client("opencode", "opencode.json", _settings, no_variables, _read)

LAUNCH: Final = Launch("opencode", CLIENT, _endpoints, _plan)
