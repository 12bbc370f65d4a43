"""Recognise a gateway between pi and its provider, and name the session of each request in a header.

Rules of this file
------------------
1. Only an address that may be a gateway's gets headers: one of this machine, or one with a gateway's token in its path. The
   model's provider never sees them, because a gateway removes them.
2. As long as the extension changes requests, it names itself, and the gateway then evicts nothing: so no result is evicted
   twice, and no marker loses the text that it depends on.
3. The extension leaves work to a gateway only if the gateway certainly exists: a running gateway of the same user, or an
   address with a gateway's token.
"""

import ipaddress
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final
from urllib.parse import urlsplit

from pagein import __version__

SESSION: Final = "x-pagein-session"
EXTENSION: Final = "x-pagein-extension"
_NAME: Final = f"pi/{__version__}"
_PROVEN_PATH: Final = "/t-"
"""How the path of a gateway's address with its token begins."""


def gateway_headers(address: str, session: str, *, decides: bool) -> Mapping[str, str]:
    """Return the headers for requests to an address; none if no gateway can be there.

    address: where pi sends the requests of its model. session: pi's name of the session.
    decides: whether the extension changes what the model is shown.
    """
    if not session or not _may_be_gateway(address):
        return {}
    return {SESSION: session, EXTENSION: _NAME} if decides else {SESSION: session}


def is_gateway(address: str, running: Iterable[str]) -> bool:
    """Return whether requests to an address certainly go through a gateway.

    running: addresses of the gateways that this user runs.
    """
    found = _address_of(address)
    if found is None:
        return False
    return found.has_token or (found.is_near and any(_address_of(one) == found for one in running))


def _may_be_gateway(address: str) -> bool:
    found = _address_of(address)
    return found is not None and (found.has_token or found.is_near)


@dataclass(frozen=True, slots=True)
class _Address:
    """Where requests go. is_near: to this machine. has_token: whether the path has a gateway's token."""

    port: int | None
    is_near: bool
    has_token: bool


def _address_of(address: str) -> _Address | None:
    try:
        parts = urlsplit(address)
        host, port = parts.hostname or "", parts.port
    except ValueError:
        return None
    return _Address(port, _is_near(host), parts.path.startswith(_PROVEN_PATH))


def _is_near(host: str) -> bool:
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
