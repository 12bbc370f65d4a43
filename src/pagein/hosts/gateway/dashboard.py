"""The dashboard: one page, complete in itself, and the JSON that feeds it."""

import asyncio
import base64
import hashlib
import json
import re
import time
from collections.abc import Callable
from importlib import resources
from typing import Final

from aiohttp import web

from pagein.errors import PageinError
from pagein.hosts.gateway.looking import Looker
from pagein.hosts.gateway.pages import Handler
from pagein.hosts.gateway.state import Overview

_INLINE: Final = re.compile(r"<(script|style)>(.*?)</\1>", re.DOTALL)
_LONGEST_QUESTION: Final = 500


def page() -> Handler:
    """The page. Nothing in it may come from elsewhere, and nothing may run but what it holds."""
    text = resources.files("pagein.hosts.gateway").joinpath("dashboard.html").read_text(encoding="utf-8")
    policy = _policy(text)
    body = text.encode()

    async def answer(_: web.Request) -> web.Response:
        return web.Response(
            body=body,
            content_type="text/html",
            charset="utf-8",
            headers={"Content-Security-Policy": policy, "X-Frame-Options": "DENY", "Referrer-Policy": "no-referrer"},
        )

    return answer


def state(overview: Callable[[float], Overview]) -> Handler:
    """All sessions that were seen."""

    async def answer(_: web.Request) -> web.Response:
        return _json(overview(time.time()))  # noqa: TID251 -- the rim reads the clock

    return answer


def session(looker: Looker | None) -> Handler:
    """The inside of one session, `?name=`."""

    async def answer(request: web.Request) -> web.Response:
        name = request.query.get("name", "")
        return await _looked(looker, lambda one: one.inside(name))

    return answer


def search(looker: Looker | None) -> Handler:
    """Where a text stands in the store, `?q=`."""

    async def answer(request: web.Request) -> web.Response:
        text = request.query.get("q", "")[:_LONGEST_QUESTION]
        return await _looked(looker, lambda one: {"hits": list(one.search(text)) if text else []})

    return answer


async def _looked(looker: Looker | None, look: Callable[[Looker], object]) -> web.Response:
    if looker is None:
        return _json({"error": "this gateway only measures; nothing is stored"}, 404)
    try:
        return _json(await asyncio.to_thread(look, looker))
    except PageinError as problem:
        return _json({"error": str(problem)}, 400)


def _json(value: object, status: int = 200) -> web.Response:
    # ASCII, so that text in no known encoding is escaped and not refused
    return web.Response(body=json.dumps(value).encode(), status=status, content_type="application/json")


def _policy(text: str) -> str:
    hashes: dict[str, list[str]] = {"script": [], "style": []}
    for kind, inline in _INLINE.findall(text):
        digest = base64.b64encode(hashlib.sha256(inline.encode()).digest()).decode()
        hashes[kind].append(f"'sha256-{digest}'")
    allowed = "; ".join(f"{kind}-src {' '.join(found)}" for kind, found in hashes.items())
    return f"default-src 'none'; connect-src 'self'; img-src data:; {allowed}; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
