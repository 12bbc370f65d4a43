"""Choose the headers by which pi's requests tell a gateway on their way whose session they belong to.

Rules of this file
------------------
1. Only an address that may be a gateway's gets headers: one of this machine, or one with a gateway's token in its path. The
   model's provider never sees them, because a gateway removes them.
2. As long as the extension changes requests, it names itself, and the gateway then evicts nothing: neither evicts the same
   result twice, and no marker loses the text that it rests on.
"""

import ipaddress
from collections.abc import Mapping
from typing import Final
from urllib.parse import urlsplit

from pagein import __version__

SESSION: Final = "x-pagein-session"
EXTENSION: Final = "x-pagein-extension"
_NAME: Final = f"pi/{__version__}"
_TOKEN_PATH: Final = "/t-"
"""How the path of a gateway's address with its token begins."""


def gateway_headers(address: str, session: str, *, decides: bool) -> Mapping[str, str]:
    """Return the headers for requests to an address; none if no gateway can be there.

    address: where pi sends the requests of its model. session: pi's name of the session.
    decides: whether the extension changes what the model is shown.
    """
    if not session or not _may_be_gateway(address):
        return {}
    return {SESSION: session, EXTENSION: _NAME} if decides else {SESSION: session}


def _may_be_gateway(address: str) -> bool:
    try:
        parts = urlsplit(address)
        host = parts.hostname or ""
    except ValueError:
        return False
    if host == "localhost" or parts.path.startswith(_TOKEN_PATH):
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
