"""The greeting of `pagein serve`: the gateway's addresses, and the settings that point each client at the gateway."""

import json
import os
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pagein.gateway.server import Gateway


def greeting_of(gateway: "Gateway", *, as_json: bool, curates: bool) -> str:
    """Return the text for a terminal, or one line of JSON."""
    from pagein.gateway.client_setup import CLIENTS

    url, base = gateway.url, gateway.base_url
    if as_json:
        clients = {one.name: {"where": one.where, "settings": list(one.settings(base))} for one in CLIENTS}
        told = {"url": url, "base_url": base, "dashboard": gateway.page, "token": gateway.token}
        return json.dumps({**told, "pid": os.getpid(), "curates": curates, "clients": clients})
    lines = [f"pagein gateway at {url}{'' if curates else ', measuring only'}"]
    lines += ["", "In this folder, pagein run AGENT starts an agent that goes through it. To point one at it by hand:"]
    for one in CLIENTS:
        lines += ["", f"{one.name}, {one.where}:", *(f"  {line}" for line in one.settings(base))]
        lines += [f"  ({note})" for note in one.notes]
    lines += ["", f"page {gateway.page} (this link opens it for whoever has it)"]
    lines += [f"tools over MCP at {url}/mcp, with the token as a bearer token"] if curates else []
    return "\n".join([*lines, f"health {url}/healthz, figures {url}/metrics with the token; all off: pagein off"])
