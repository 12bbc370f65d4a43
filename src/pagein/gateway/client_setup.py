"""The coding agents known to the gateway, in a single list. A new agent is a module in `clients/` and a row here."""

from typing import Final

from pagein.gateway.clients import claude_code, codex, gemini_cli, opencode, pi
from pagein.gateway.clients.client import ClientSetup, ConfigPlaces
from pagein.gateway.clients.config_files import UnreadableConfig
from pagein.gateway.clients.launch import Launch

LAUNCHES: Final = (claude_code.LAUNCH, codex.LAUNCH, opencode.LAUNCH, pi.LAUNCH, gemini_cli.LAUNCH)
CLIENTS: Final = tuple(one.client for one in LAUNCHES)


def launches() -> dict[str, Launch]:
    """Return how to start each agent, by its name on the command line."""
    return {one.client.name.lower().replace(" ", "-"): one for one in LAUNCHES}


def read_client_setups(url: str, places: ConfigPlaces) -> list[ClientSetup]:
    """Return each agent's setup for a gateway at this address, from its files and environment."""
    found = []
    for client in CLIENTS:
        try:
            found.append(client.read(client, url, places))
        except UnreadableConfig as problem:
            found.append(ClientSetup(client, points_here=False, problems=(str(problem),)))
    return found
