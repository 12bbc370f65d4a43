"""The dashboard: a single self-contained page, and its JSON data."""

import asyncio
import base64
import hashlib
import json
import re
import time
from collections.abc import Callable
from importlib import resources
from typing import Any, Final, TypedDict

from aiohttp import web

from pagein.errors import PageinError
from pagein.gateway.http.access import Handler
from pagein.gateway.pages.call_history import Board, CallView, Overview
from pagein.gateway.pages.call_meter import Meter
from pagein.gateway.pages.session_views import HITS, HitView, Inside, Looker

_INLINE: Final = re.compile(r"<(script|style)>(.*?)</\1>", re.DOTALL)
_LONGEST_QUESTION: Final = 500
_LONGEST_LINE: Final = 400
_NO_ORDER: Final = {"error": "an order is a short JSON object"}
_PASSED: Final = (
    "Its requests passed through untouched, and what they held is not in memory any more, or could not be read."
)
_MEASURED: Final = (
    "This gateway only measures: nothing is stored, and what this session held is not in memory any more."
)


class SessionDetails(TypedDict):
    """A session's details.

    calls: the last calls, newest first
    inside: composition of its window; None if unknown, with the reason in `why`
    """

    calls: list[CallView]
    inside: Inside | None
    why: str


class SearchHits(TypedDict):
    """Search hits in the store, at most `limit`."""

    hits: list[HitView]
    limit: int


def page() -> Handler:
    """Return the handler of the page. Its policy forbids external content, and any script outside of the page."""
    text = _whole()
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
    """Return the handler for the data of every recent session."""

    async def answer(_: web.Request) -> web.Response:
        return answer_json(overview(time.time()))  # noqa: TID251 -- the rim reads the clock

    return answer


def session(board: Board, looker: Looker | None, meter: Meter) -> Handler:
    """Return the handler for a session, `?name=`, with its calls since the start and the composition of its window."""

    async def answer(request: web.Request) -> web.Response:
        name = request.query.get("name", "")
        calls = board.calls(name)
        if not calls and looker is None:
            return answer_json({"error": "no session of this name was seen since the gateway started"}, 404)
        if looker is None or (calls and all(call["passed"] for call in calls)):
            measured = await asyncio.to_thread(meter.inside, name)
            why = _PASSED if looker is not None else _MEASURED
            return answer_json(SessionDetails(calls=calls, inside=measured, why="" if measured is not None else why))
        try:
            inside = await asyncio.to_thread(looker.inside, name)
        except PageinError as problem:
            if not calls:
                return answer_json({"error": str(problem)}, 404)
            return answer_json(SessionDetails(calls=calls, inside=None, why=str(problem)))
        return answer_json(SessionDetails(calls=calls, inside=inside, why=""))

    return answer


def search(looker: Looker | None) -> Handler:
    """Return the handler of the search in the store, `?q=`."""

    async def answer(request: web.Request) -> web.Response:
        text = request.query.get("q", "")[:_LONGEST_QUESTION]
        if looker is None:
            return answer_json({"error": _MEASURED}, 404)
        try:
            hits = await asyncio.to_thread(looker.search, text) if text else ()
        except PageinError as problem:
            return answer_json({"error": str(problem)}, 400)
        return answer_json(SearchHits(hits=[_shorten(hit) for hit in hits], limit=HITS))

    return answer


def _shorten(hit: HitView) -> HitView:
    text = hit["text"]
    return hit if len(text) <= _LONGEST_LINE else {**hit, "text": text[:_LONGEST_LINE] + "…"}


def _whole() -> str:
    """Return the page with its style and script inlined."""
    folder = resources.files("pagein.gateway.pages")
    text = folder.joinpath("dashboard.html").read_text(encoding="utf-8")
    for name in ("dashboard.css", "dashboard.js", "inspector.js", "children.js", "events.js"):
        text = text.replace(f"/* {name} */", folder.joinpath(name).read_text(encoding="utf-8"))
    return text


def answer_json(value: object, status: int = 200) -> web.Response:
    """Return a value as JSON."""
    # ASCII, so that invalid text is escaped rather than refused
    return web.Response(body=json.dumps(value).encode(), status=status, content_type="application/json")


async def order_in(request: web.Request, longest: int) -> dict[str, Any] | web.Response:
    """Return an order of at most `longest` bytes, a JSON object; or its refusal. No form of another site can send JSON."""
    if request.content_type != "application/json" or (request.content_length or longest + 1) > longest:
        return answer_json(_NO_ORDER, 415)
    try:
        asked = json.loads(await request.read())
    except ValueError:
        asked = None
    return asked if isinstance(asked, dict) else answer_json(_NO_ORDER, 400)


def _policy(text: str) -> str:
    hashes: dict[str, list[str]] = {"script": [], "style": []}
    for kind, inline in _INLINE.findall(text):
        digest = base64.b64encode(hashlib.sha256(inline.encode()).digest()).decode()
        hashes[kind].append(f"'sha256-{digest}'")
    allowed = "; ".join(f"{kind}-src {' '.join(found)}" for kind, found in hashes.items())
    return f"default-src 'none'; connect-src 'self'; img-src data:; {allowed}; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
