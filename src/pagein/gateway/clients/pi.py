"""pi's setup."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Final

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

EXTENSION: Final = Path(__file__).with_name("pi_base_urls.js")
"""An extension of pi's that sets the addresses of providers, because pi reads them from no variable and no option."""
_VARIABLE: Final = "PAGEIN_PI_BASE_URLS"
_BUILT_IN: Final = {ANTHROPIC.name: ANTHROPIC.name, OPENAI.name: OPENAI.name}
_VENDORS: Final = {
    "anthropic-messages": ANTHROPIC.name,
    "openai-completions": OPENAI.name,
    "openai-responses": OPENAI.name,
}
"""The vendor by the name of its wire format."""


def _settings(url: str) -> tuple[str, ...]:
    return (f'{{"providers": {{"anthropic": {{"baseUrl": "{url}"}}, "openai": {{"baseUrl": "{url}/v1"}}}}}}',)


def _folder(places: ConfigPlaces) -> Path:
    return Path(places.environment.get("PI_CODING_AGENT_DIR") or places.home / ".pi" / "agent")


def _read(client: Client, url: str, places: ConfigPlaces) -> ClientSetup:
    file = _folder(places) / "models.json"
    addresses = [entry.get("baseUrl") for entry in tables_in(read_json(file), "providers").values()]
    return setup_by_addresses(client, url, [url, f"{url}/v1"], addresses, (file,))


def _endpoints(places: ConfigPlaces, arguments: Sequence[str]) -> Endpoints:
    entries = tables_in(read_json(_folder(places) / "models.json"), "providers")
    known = [
        AgentEndpoint(name, vendor, str(entries.get(name, {}).get("baseUrl") or ""))
        for name, vendor in _BUILT_IN.items()
    ]
    known += [
        AgentEndpoint(name, _VENDORS[str(one.get("api"))], str(one["baseUrl"]))
        for name, one in entries.items()
        if name not in _BUILT_IN and one.get("baseUrl") and one.get("api") in _VENDORS
    ]
    model = option(arguments, "--model")
    usual = read_json(_folder(places) / "settings.json").get("defaultProvider")
    chosen = option(arguments, "--provider") or (model.partition("/")[0] if "/" in model else str(usual or ""))
    return Endpoints(tuple(known), chosen)


def _plan(asked: LaunchRequest) -> LaunchPlan:
    """Plan a start. The library of the vendor Anthropic puts the version before its paths itself."""
    told = {
        one.name: asked.url if one.vendor == ANTHROPIC.name else versioned(asked.url, one.address)
        for one in asked.endpoints.known
    }
    return LaunchPlan({_VARIABLE: json.dumps(told)}, ("-e", str(EXTENSION)), bypass_remarks(asked.endpoints))


CLIENT: Final = Client(
    "pi",
    "~/.pi/agent/models.json",
    _settings,
    no_variables,
    _read,
    ("chat completions: sendSessionAffinityHeaders in the model's compat tells sessions apart",),
)

LAUNCH: Final = Launch("pi", CLIENT, _endpoints, _plan)
