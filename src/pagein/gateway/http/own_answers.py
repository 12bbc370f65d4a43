"""The gateway's own answers, which can never be mistaken for a model's turn."""

import json
from typing import Final

from aiohttp import web
from multidict import CIMultiDict

from pagein.gateway.http.headers import WARNING, Headers
from pagein.gateway.settings import Vendor

# The vendors' names of these errors, so that agents react as they would to the vendor.
_ANTHROPIC_KINDS: Final = {
    401: "authentication_error",
    403: "permission_error",
    413: "request_too_large",
    426: "invalid_request_error",
    431: "invalid_request_error",
    504: "timeout_error",
}
_OPENAI_KINDS: Final = dict.fromkeys((401, 403, 413, 426, 431), "invalid_request_error")
# Headers that the server adds to an answer without them.
_ADDED: Final = ("Content-Type", "Date", "Server")


def refusal(vendor: Vendor, status: int, message: str, code: str) -> web.Response:
    """Return an error in this vendor's form.

    code: a word for logs and clients
    """
    text = f"pagein: {message}"
    if vendor == "anthropic":
        error: dict[str, object] = {"type": _ANTHROPIC_KINDS.get(status, "api_error"), "message": text}
        body: dict[str, object] = {"type": "error", "error": error}
    else:
        kind = _OPENAI_KINDS.get(status, "server_error")
        body = {"error": {"message": text, "type": kind, "param": None, "code": f"pagein_{code}"}}
    return web.Response(
        body=json.dumps(body).encode(), status=status, content_type="application/json", headers={WARNING: code}
    )


def no_websocket(vendor: Vendor) -> web.Response:
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
