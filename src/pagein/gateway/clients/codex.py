"""Codex's setup."""

import json
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any, Final

from pagein.errors import BadSetting
from pagein.gateway.clients.client import Client, ClientSetup, ConfigPlaces, is_same, no_variables, where_told
from pagein.gateway.clients.config_files import read_toml, tables_in
from pagein.gateway.clients.launch import (
    AgentEndpoint,
    Endpoints,
    Launch,
    LaunchPlan,
    LaunchRequest,
    option,
    versioned,
)
from pagein.providers.vendors import OPENAI

_BUILT_IN: Final = "openai"
_KEY: Final = "OPENAI_API_KEY"


def _folder(places: ConfigPlaces) -> Path:
    return Path(places.environment.get("CODEX_HOME") or places.home / ".codex")


def _settings(url: str) -> tuple[str, ...]:
    """Return command-line options for codex.

    Lines appended to its file would fall below an existing table and have no effect.
    """
    entry = (
        f'name="pagein", base_url="{url}/v1", wire_api="responses", env_key="OPENAI_API_KEY", supports_websockets=false'
    )
    return (f"codex -c model_provider=pagein -c 'model_providers.pagein={{{entry}}}'",)


def _read(client: Client, url: str, places: ConfigPlaces) -> ClientSetup:
    file = _folder(places) / "config.toml"
    config = read_toml(file)
    providers = tables_in(config, "model_providers")
    ours = [name for name, one in providers.items() if is_same(one.get("base_url"), f"{url}/v1")]
    chosen = config.get("model_provider")
    if chosen in ours:
        return ClientSetup(client, points_here=True)
    if not ours:
        return ClientSetup(
            client, points_here=False, problems=(f"nothing in {file} points to the gateway; {where_told(client, url)}",)
        )
    lost = next((place for place, value in _misplaced_providers(config) if value in ours), None)
    if lost is not None:
        why = (
            f"model_provider is below [{lost}] in {file}, where codex does not read it; move it above the first [table]"
        )
    else:
        chooses = f"model_provider = {json.dumps(chosen)} chooses another" if chosen else "no model_provider chooses it"
        why = f'{file} has an entry for the gateway, but {chooses}; write model_provider = "{ours[0]}" above the first [table]'
    return ClientSetup(client, points_here=False, problems=(why,))


def _misplaced_providers(table: Mapping[str, Any], place: str = "") -> Iterator[tuple[str, object]]:
    """Yield the tables with a `model_provider` that codex ignores. Only the top and profiles may have the key."""
    for name, value in table.items():
        here = f"{place}.{name}" if place else name
        if isinstance(value, dict) and not here.startswith("profiles"):
            if "model_provider" in value:
                yield here, value["model_provider"]
            yield from _misplaced_providers(value, here)


def _endpoints(places: ConfigPlaces, arguments: Sequence[str]) -> Endpoints:
    """Return codex's provider in use. The command line, a profile or the file chooses the provider."""
    config = dict(read_toml(_folder(places) / "config.toml"))
    profile = option(arguments, "-p", "--profile") or config.get("profile")
    config |= tables_in(config, "profiles").get(str(profile or ""), {})
    config |= dict(_overrides(arguments))
    chosen = str(config.get("model_provider") or _BUILT_IN)
    if chosen == _BUILT_IN:
        return Endpoints((AgentEndpoint(chosen, OPENAI.name, str(config.get("openai_base_url") or "")),), chosen)
    entry = tables_in(config, "model_providers").get(chosen)
    if entry is None:
        raise BadSetting(
            f"codex uses its provider {chosen!r}, which pagein cannot point to the gateway; choose another model_provider"
        )
    if entry.get("wire_api", "responses") != "responses":
        raise BadSetting(f"codex's provider {chosen!r} has another wire_api than responses; start codex itself")
    return Endpoints((AgentEndpoint(chosen, OPENAI.name, str(entry.get("base_url") or "")),), chosen)


def _plan(asked: LaunchRequest) -> LaunchPlan:
    """Plan a start. The provider keeps its name where possible, because codex lists threads by provider.

    The built-in provider needs a login of codex's own. With a key in the environment alone it would send none, so it gets another name.
    """
    if not asked.endpoints.known:
        raise BadSetting(
            f"codex's provider {asked.endpoints.chosen!r} cannot be pointed to the gateway; start codex itself"
        )
    [endpoint] = asked.endpoints.known
    base = versioned(asked.url, endpoint.address)
    if endpoint.name != _BUILT_IN:
        entry = f"model_providers.{endpoint.name}"
        return LaunchPlan(
            arguments=("-c", f"{entry}.base_url={json.dumps(base)}", "-c", f"{entry}.supports_websockets=false")
        )
    if asked.places.environment.get(_KEY) and not _has_login(asked.places):
        told = f'{{name="pagein", base_url={json.dumps(base)}, wire_api="responses", env_key="{_KEY}", supports_websockets=false}}'
        return LaunchPlan(
            arguments=("-c", "model_provider=pagein", "-c", f"model_providers.pagein={told}"),
            remarks=("codex resume lists only threads that began behind pagein; codex resume ID opens any",),
        )
    return LaunchPlan(arguments=("-c", f"openai_base_url={json.dumps(base)}"))


def _has_login(places: ConfigPlaces) -> bool:
    folder = _folder(places)
    keeps = read_toml(folder / "config.toml").get("cli_auth_credentials_store")
    return (
        bool(places.environment.get("CODEX_API_KEY"))
        or keeps in ("keyring", "auto")
        or (folder / "auth.json").is_file()
    )


def _overrides(arguments: Sequence[str]) -> Iterator[tuple[str, str]]:
    """Yield the top-level settings of the options `-c`."""
    for name, value in pairwise(arguments):
        if name in ("-c", "--config") and "=" in value:
            key, _, told = value.partition("=")
            yield key.strip(), told.strip().strip("\"'")


CLIENT: Final = Client(
    "codex",
    "on its command line",
    _settings,
    no_variables,
    _read,
    (
        "in ~/.codex/config.toml the same must be above the first [table] (docs/hosts/codex.md); OPENAI_BASE_URL is not read",
    ),
    (OPENAI.name,),
)

LAUNCH: Final = Launch("codex", CLIENT, _endpoints, _plan)
