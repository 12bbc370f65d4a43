"""pi's setup."""

from pathlib import Path
from typing import Final

from pagein.gateway.clients.client import Client, ClientSetup, ConfigPlaces, no_variables, setup_by_addresses
from pagein.gateway.clients.config_files import read_json, tables_in


def _settings(url: str) -> tuple[str, ...]:
    return (f'{{"providers": {{"anthropic": {{"baseUrl": "{url}"}}, "openai": {{"baseUrl": "{url}/v1"}}}}}}',)


def _read(client: Client, url: str, places: ConfigPlaces) -> ClientSetup:
    file = Path(places.environment.get("PI_CODING_AGENT_DIR") or places.home / ".pi" / "agent") / "models.json"
    addresses = [entry.get("baseUrl") for entry in tables_in(read_json(file), "providers")]
    return setup_by_addresses(client, url, [url, f"{url}/v1"], addresses, (file,))


CLIENT: Final = Client(
    "pi",
    "~/.pi/agent/models.json",
    _settings,
    no_variables,
    _read,
    ("chat completions: sendSessionAffinityHeaders in the model's compat tells sessions apart",),
)
