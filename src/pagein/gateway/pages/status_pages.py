"""Status pages of the gateway: health and metrics."""

from collections.abc import Awaitable, Callable, Mapping

from aiohttp import web

from pagein.gateway.http.access import Handler
from pagein.gateway.pages.dashboard import answer_json
from pagein.gateway.pages.metrics import CONTENT_TYPE, Metrics


def health(told: Callable[[], Awaitable[Mapping[str, object]]], *, brief: bool = False) -> Handler:
    """Return the handler for the health page: running, curating, and problems of the store.

    brief: hide the details of a problem
    """

    async def answer(_: web.Request) -> web.Response:
        found = dict(await told())
        if brief:  # paths contain names of users and projects
            found |= {name: "yes" for name in ("off", "store", "memory") if found.get(name)}
        return answer_json(found)

    return answer


def figures(metrics: Metrics) -> Handler:
    """Return the handler of the page for Prometheus."""

    async def answer(_: web.Request) -> web.Response:
        return web.Response(body=metrics.text(), headers={"Content-Type": CONTENT_TYPE})

    return answer
