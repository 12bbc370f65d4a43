"""OpenCode's setup."""

from pathlib import Path
from typing import Final

from pagein.gateway.clients.client import Client, ClientSetup, ConfigPlaces, no_variables, setup_by_addresses
from pagein.gateway.clients.config_files import read_json, tables_in


def _settings(url: str) -> tuple[str, ...]:
    options = f'{{"options": {{"baseURL": "{url}/v1"}}}}'
    return (f'{{"provider": {{"anthropic": {options}, "openai": {options}}}}}',)


def _read(client: Client, url: str, places: ConfigPlaces) -> ClientSetup:
    folder = Path(places.environment.get("XDG_CONFIG_HOME") or places.home / ".config") / "opencode"
    named = places.environment.get("OPENCODE_CONFIG")
    stems = (*((Path(named),) if named else ()), folder / "opencode.json", folder / "opencode.jsonc")
    files = (*stems, places.workspace / "opencode.json", places.workspace / "opencode.jsonc")
    addresses = [
        entry.get("options", {}).get("baseURL")
        for file in files
        for entry in tables_in(read_json(file), "provider")
        if isinstance(entry.get("options"), dict)
    ]
    return setup_by_addresses(client, url, [f"{url}/v1"], addresses, files)


CLIENT: Final = Client("opencode", "opencode.json", _settings, no_variables, _read)
