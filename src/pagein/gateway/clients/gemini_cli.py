"""Gemini CLI's setup."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

from pagein.errors import BadSetting
from pagein.gateway.clients.client import Client, ClientSetup, ConfigPlaces, misses
from pagein.gateway.clients.config_files import read_json
from pagein.gateway.clients.launch import AgentEndpoint, Endpoints, Launch, LaunchPlan, LaunchRequest
from pagein.providers.vendors import GOOGLE

_LOGIN: Final = "gemini-api-key"
_ADDRESS: Final = "GOOGLE_GEMINI_BASE_URL"


def _variables(url: str) -> Mapping[str, str]:
    return {_ADDRESS: url}


def _settings(url: str) -> tuple[str, ...]:
    return tuple(f"export {name}={value}" for name, value in _variables(url).items())


def _read(client: Client, url: str, places: ConfigPlaces) -> ClientSetup:
    """Read Gemini CLI's setup. Without the kind of login in its settings it sends no request to another address."""
    problems = misses(client, url, places.environment)
    file, kind = _login(places)
    if kind != _LOGIN:
        problems.append(f"security.auth.selectedType in {file} is not {_LOGIN}")
    return ClientSetup(client, not problems, tuple(problems))


def _login(places: ConfigPlaces) -> tuple[Path, str]:
    """Return the user's settings file, and the login kind; the workspace's file overrides the user's."""
    user = Path(places.environment.get("GEMINI_CLI_HOME") or places.home) / ".gemini" / "settings.json"
    found = ""
    for file in (user, places.workspace / ".gemini" / "settings.json"):
        security = read_json(file).get("security")
        auth = security.get("auth") if isinstance(security, dict) else None
        found = str((auth.get("selectedType") if isinstance(auth, dict) else None) or found)
    return user, found


def _endpoints(places: ConfigPlaces, _: Sequence[str]) -> Endpoints:
    return Endpoints((AgentEndpoint(GOOGLE.name, GOOGLE.name, places.environment.get(_ADDRESS, "")),), GOOGLE.name)


def _plan(asked: LaunchRequest) -> LaunchPlan:
    """Plan a start. The kind of login stands in its settings file alone, so a wrong one is refused here with the remedy."""
    file, kind = _login(asked.places)
    if kind != _LOGIN:
        raise BadSetting(
            f"Gemini CLI sends nothing to a gateway unless security.auth.selectedType in {file} is {_LOGIN}, and it is {kind or 'not set'}; "
            f'write {{"security": {{"auth": {{"selectedType": "{_LOGIN}"}}}}}} there, and set GEMINI_API_KEY'
        )
    return LaunchPlan(_variables(asked.url))


CLIENT: Final = Client(
    "Gemini CLI",
    "in the shell that starts it",
    _settings,
    _variables,
    _read,
    (
        "needs GEMINI_API_KEY, and security.auth.selectedType gemini-api-key in ~/.gemini/settings.json (docs/hosts/gemini-cli.md)",
    ),
    (GOOGLE.name,),
)

LAUNCH: Final = Launch("gemini", CLIENT, _endpoints, _plan)
