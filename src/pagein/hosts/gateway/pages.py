"""The gateway's own pages: health and figures. They answer only to names of this machine, as other pages in a browser must not read them."""

import json
from collections.abc import Awaitable, Callable, Iterable, Mapping
from ipaddress import ip_address
from typing import Final, TypeAlias

from aiohttp import web

from pagein.hosts.gateway.metrics import CONTENT_TYPE, Metrics

Handler: TypeAlias = Callable[[web.Request], Awaitable[web.StreamResponse]]

_LOOPBACK: Final = frozenset({"localhost", "127.0.0.1", "[::1]"})


class Names:
    """The names by which the gateway's own pages may be asked: a page of another site that had its name point here has another."""

    def __init__(self, hosts: Iterable[str]) -> None:
        self._names = _LOOPBACK | {in_brackets(host.lower()) for host in hosts}

    def only(self, handler: Handler) -> Handler:
        """The handler, for requests that were made to one of these names and not by another site."""

        async def checked(request: web.Request) -> web.StreamResponse:
            if _without_port(request.headers.get("Host", "")) not in self._names:
                return web.json_response(
                    {"error": "this page is not served under that name; see --allow-host"}, status=403
                )
            if request.headers.get("Sec-Fetch-Site", "none") not in ("none", "same-origin"):
                return web.json_response({"error": "this page is not served to other sites"}, status=403)
            answer = await handler(request)
            answer.headers["X-Content-Type-Options"] = "nosniff"
            answer.headers["Cache-Control"] = "no-store"
            return answer

        return checked


def in_brackets(host: str) -> str:
    """A host as addresses write it: IPv6 in brackets."""
    return f"[{host}]" if ":" in host and not host.startswith("[") else host


def is_this_machine(host: str) -> bool:
    """Whether an address to listen at is reached from this machine alone. A name that is no address counts as reached by others."""
    try:
        return host == "localhost" or ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False


def health(told: Callable[[], Awaitable[Mapping[str, object]]]) -> Handler:
    """Whether the gateway runs, whether it curates, and what is wrong with its store."""

    async def answer(_: web.Request) -> web.Response:
        return web.Response(body=json.dumps(await told()).encode(), content_type="application/json")

    return answer


def figures(metrics: Metrics) -> Handler:
    """The page for Prometheus."""

    async def answer(_: web.Request) -> web.Response:
        return web.Response(body=metrics.text(), headers={"Content-Type": CONTENT_TYPE})

    return answer


def _without_port(host: str) -> str:
    name, colon, port = host.strip().lower().rpartition(":")
    return name if colon and port.isdecimal() else host.strip().lower()
