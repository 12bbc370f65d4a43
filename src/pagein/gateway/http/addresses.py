"""Addresses of a gateway: with its token in them and without, and from where they are reached. Pure."""

from ipaddress import ip_address
from typing import Final
from urllib.parse import urlsplit

SEGMENT: Final = "/t-"
"""What the first segment of a path begins with that is the token."""


def with_token(url: str, token: str) -> str:
    """The address of a gateway with its token in it, as agents and browsers are told it."""
    return f"{url}{SEGMENT}{token}"


def without_token(url: str) -> str:
    """An address with the token taken out, as it may be printed and compared."""
    front, segment, behind = url.partition(SEGMENT)
    return f"{front}/{behind.partition('/')[2]}" if segment else url


def is_web_address(url: str) -> bool:
    """Whether something may answer there: http or https, a host, and a port that there can be."""
    try:
        parts = urlsplit(url)
        host, _ = parts.hostname, parts.port
    except ValueError:
        return False
    return parts.scheme in ("http", "https") and bool(host) and url.isascii() and url.isprintable() and " " not in url


def in_brackets(host: str) -> str:
    """A host as addresses write it: IPv6 in brackets."""
    return f"[{host}]" if ":" in host and not host.startswith("[") else host


def is_this_machine(host: str) -> bool:
    """Whether an address to listen at is reached from this machine alone. A name that is no address counts as reached by others."""
    return host == "localhost" or (is_address(host) and ip_address(host.strip("[]")).is_loopback)


def is_address(host: str) -> bool:
    """Whether this is an IP address and no name."""
    try:
        ip_address(host.strip("[]"))
    except ValueError:
        return False
    return True
