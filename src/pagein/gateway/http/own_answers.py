"""The gateway's own answers, which can never be mistaken for a model's turn."""

import json
from typing import Final

from aiohttp import web
from multidict import CIMultiDict

from pagein.gateway.http.headers import WARNING, Headers
from pagein.providers.wire.formats import FORMATS

# Headers that the server adds to an answer without them.
_ADDED: Final = ("Content-Type", "Date", "Server")


def refusal(vendor: str, status: int, message: str, code: str) -> web.Response:
    """Return an error in this vendor's form.

    code: a word for logs and clients
    """
    form = next(one.http for one in FORMATS if one.http.vendor == vendor)
    body = form.error(status, f"pagein: {message}", code)
    return web.Response(
        body=json.dumps(body).encode(), status=status, content_type="application/json", headers={WARNING: code}
    )


def no_websocket(vendor: str) -> web.Response:
    """Refuse a WebSocket with the status that makes codex switch to HTTP at once."""
    answer = refusal(vendor, 426, "this address speaks HTTP only; send the request with POST", "no_websocket")
    answer.headers["Upgrade"] = "HTTP/1.1"
    answer.force_close()
    return answer


class UpstreamResponse(web.StreamResponse):
    """An upstream's answer on its way to the client."""

    def __init__(self, status: int, reason: str | None, headers: Headers) -> None:
        super().__init__(status=status, reason=reason, headers=CIMultiDict(headers))
        self.added = [name for name in _ADDED if name not in self.headers]


async def leave_as_it_was(_: web.Request, response: web.StreamResponse) -> None:
    """Remove headers that the server would add to a relayed answer; a signal handler of the application."""
    if isinstance(response, UpstreamResponse):
        for name in response.added:
            response.headers.popall(name, None)
