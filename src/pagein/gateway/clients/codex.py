"""Codex's setup."""

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

from pagein.gateway.clients.client import Client, ClientSetup, ConfigPlaces, is_same, no_variables, where_told
from pagein.gateway.clients.config_files import read_toml


def _settings(url: str) -> tuple[str, ...]:
    """Return command-line options for codex.

    Lines appended to its file would fall below an existing table and have no effect.
    """
    entry = (
        f'name="pagein", base_url="{url}/v1", wire_api="responses", env_key="OPENAI_API_KEY", supports_websockets=false'
    )
    return (f"codex -c model_provider=pagein -c 'model_providers.pagein={{{entry}}}'",)


def _read(client: Client, url: str, places: ConfigPlaces) -> ClientSetup:
    file = Path(places.environment.get("CODEX_HOME") or places.home / ".codex") / "config.toml"
    config = read_toml(file)
    providers = config.get("model_providers")
    entries = (
        {name: one for name, one in providers.items() if isinstance(one, dict)} if isinstance(providers, dict) else {}
    )
    ours = [name for name, one in entries.items() if is_same(one.get("base_url"), f"{url}/v1")]
    chosen = config.get("model_provider")
    if chosen in ours:
        return ClientSetup(client, points_here=True)
    if not ours:
        return ClientSetup(
            client, points_here=False, problems=(f"nothing in {file} points to the gateway; {where_told(client, url)}",)
        )
    lost = next((place for place, value in _misplaced_providers(config) if value in ours), None)
    if lost is not None:
        why = f"model_provider stands below [{lost}] in {file}, where codex does not read it; move it above the first [table]"
    else:
        chooses = f"model_provider = {json.dumps(chosen)} chooses another" if chosen else "no model_provider chooses it"
        why = f'{file} has an entry for the gateway, but {chooses}; write model_provider = "{ours[0]}" above the first [table]'
    return ClientSetup(client, points_here=False, problems=(why,))


def _misplaced_providers(table: Mapping[str, Any], place: str = "") -> Iterator[tuple[str, object]]:
    """Yield the tables with a `model_provider` that codex ignores there; profiles may have it."""
    for name, value in table.items():
        here = f"{place}.{name}" if place else name
        if isinstance(value, dict) and not here.startswith("profiles"):
            if "model_provider" in value:
                yield here, value["model_provider"]
            yield from _misplaced_providers(value, here)


CLIENT: Final = Client(
    "codex",
    "on its command line",
    _settings,
    no_variables,
    _read,
    (
        "in ~/.codex/config.toml the same must stand above the first [table] (docs/hosts/codex.md); OPENAI_BASE_URL is not read",
    ),
)
