"""Two of the gateway's own pages: health and figures."""

import json
from collections.abc import Awaitable, Callable, Mapping

from aiohttp import web

from pagein.gateway.http.access import Handler
from pagein.gateway.pages.metrics import CONTENT_TYPE, Metrics


def health(told: Callable[[], Awaitable[Mapping[str, object]]], *, brief: bool = False) -> Handler:
    """Whether the gateway runs, whether it curates, and what is wrong with its store. brief: only that something is."""

    async def answer(_: web.Request) -> web.Response:
        found = dict(await told())
        if brief:  # paths hold names of users and projects
            found |= {name: "yes" for name in ("off", "store") if found.get(name)}
        return web.Response(body=json.dumps(found).encode(), content_type="application/json")

    return answer


def figures(metrics: Metrics) -> Handler:
    """The page for Prometheus."""

    async def answer(_: web.Request) -> web.Response:
        return web.Response(body=metrics.text(), headers={"Content-Type": CONTENT_TYPE})

    return answer
