"""Addresses of a gateway, with and without its token, and their reach. Pure functions."""

from collections.abc import Iterable
from ipaddress import ip_address
from typing import Final
from urllib.parse import urlsplit

_BEHIND_OTHERS: Final = frozenset({"forwarded", "via", "x-forwarded-for", "x-real-ip"})
"""Headers of requests that come through another server."""
SEGMENT: Final = "/t-"
"""Prefix of a token as the first segment of a path."""


def with_token(url: str, token: str) -> str:
    """Return a gateway's address with its token, for agents and browsers."""
    return f"{url}{SEGMENT}{token}"


def without_token(url: str) -> str:
    """Return an address without the token, for printing and comparing."""
    front, segment, behind = url.partition(SEGMENT)
    return f"{front}/{behind.partition('/')[2]}" if segment else url


def is_web_address(url: str) -> bool:
    """Return whether this is a usable address: http or https, a host, and a valid port."""
    try:
        parts = urlsplit(url)
        host, _ = parts.hostname, parts.port
    except ValueError:
        return False
    return parts.scheme in ("http", "https") and bool(host) and url.isascii() and url.isprintable() and " " not in url


def in_brackets(host: str) -> str:
    """Return a host as written in addresses: IPv6 in brackets."""
    return f"[{host}]" if ":" in host and not host.startswith("[") else host


def is_this_machine(host: str) -> bool:
    """Return whether a listening address is reachable from this machine alone.

    A host name counts as reachable by others.
    """
    return host == "localhost" or (is_address(host) and ip_address(host.strip("[]")).is_loopback)


def is_near(peer: str | None, headers: Iterable[tuple[str, str]]) -> bool:
    """Return whether a request comes from a client on this machine: from loopback, and through no other server.

    peer: address of the client.
    """
    return peer is not None and is_this_machine(peer) and not any(name.lower() in _BEHIND_OTHERS for name, _ in headers)


def is_address(host: str) -> bool:
    """Return whether this is an IP address rather than a name."""
    try:
        ip_address(host.strip("[]"))
    except ValueError:
        return False
    return True
