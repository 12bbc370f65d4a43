"""Gemini CLI's setup."""

from collections.abc import Mapping
from pathlib import Path
from typing import Final

from pagein.gateway.clients.client import Client, ClientSetup, ConfigPlaces, misses
from pagein.gateway.clients.config_files import read_json

_LOGIN: Final = "gemini-api-key"


def _variables(url: str) -> Mapping[str, str]:
    return {"GOOGLE_GEMINI_BASE_URL": url}


def _settings(url: str) -> tuple[str, ...]:
    return tuple(f"export {name}={value}" for name, value in _variables(url).items())


def _read(client: Client, url: str, places: ConfigPlaces) -> ClientSetup:
    """Read Gemini CLI's setup. Without the kind of login in its settings it sends no request to another address."""
    problems = misses(client, url, places.environment)
    home = Path(places.environment.get("GEMINI_CLI_HOME") or places.home)
    file = home / ".gemini" / "settings.json"
    security = read_json(file).get("security")
    auth = security.get("auth") if isinstance(security, dict) else None
    kind = auth.get("selectedType") if isinstance(auth, dict) else None
    if kind != _LOGIN:
        problems.append(f"security.auth.selectedType in {file} is not {_LOGIN}")
    return ClientSetup(client, not problems, tuple(problems))


CLIENT: Final = Client(
    "Gemini CLI",
    "in the shell that starts it",
    _settings,
    _variables,
    _read,
    (
        "needs GEMINI_API_KEY, and security.auth.selectedType gemini-api-key in ~/.gemini/settings.json (docs/hosts/gemini-cli.md)",
    ),
)
