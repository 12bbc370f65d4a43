"""Access control of the gateway: host names, origins and the token.

Rules of this file
------------------
1. The gateway's own pages require the token: in the header `x-pagein-token`, as a bearer token, as the first segment of the path
   (`/t-TOKEN/`), or as the cookie set by a path with the token. Services for programs require it in one of the headers.
2. Beyond loopback, model calls and other forwarded requests require the token, too: in the header or in the path. Never as a bearer
   token, because the client's own key is there; never as the cookie, because a browser adds cookies by itself.
3. A request without the token must use a host name of this machine, and must not come from a page of another site: such a page can
   let its own host name point here, but does not know the token.
4. The token is neither sent upstream nor logged.
"""

import hashlib
import hmac
from collections.abc import Awaitable, Callable, Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import Final, TypeAlias

from aiohttp import web

from pagein.gateway.http.addresses import SEGMENT, in_brackets, is_address
from pagein.gateway.http.headers import PROOF, bears, is_same
from pagein.gateway.http.own_answers import refusal
from pagein.gateway.http.routes import first_segments, origin_form, route, segments

Handler: TypeAlias = Callable[[web.Request], Awaitable[web.StreamResponse]]

COOKIE: Final = "pagein"
_LOOPBACK: Final = frozenset({"localhost", "127.0.0.1", "[::1]"})
_FORBIDDEN: Final = 403
_UNKNOWN: Final = 401
_WRONG_NAME: Final = "pagein is not served under that name; see --allow-host"
_OTHER_SITE: Final = "pagein is not served to pages of other sites"
_CLOSED: Final = (
    "this wants pagein's token: open the link that pagein serve printed; a program sends the header "
    "Authorization: Bearer TOKEN (or x-pagein-token: TOKEN)"
)
_OTHER_GATEWAYS: Final = "the token in this address is not this gateway's: take the address that pagein serve prints"
_CLOSED_TO_ALL: Final = (
    "other machines can reach this gateway, so it wants its token: set the agent's base URL to the one that pagein serve "
    "printed (/t-TOKEN/ in front of the path), or send the header x-pagein-token"
)


@dataclass(frozen=True, slots=True)
class _Refusal:
    status: int
    why: str
    code: str


_NO_PAGE: Final = _Refusal(
    404,
    "there is nothing here; an address of pagein's has no slash at its end, and /mcp stands alone and wants the token in a header",
    "no_page",
)


class GatewayAccess:
    """Access rules of a gateway.

    token: the required token
    is_open: whether other machines can reach the gateway
    """

    def __init__(self, token: str, hosts: Iterable[str], *, is_open: bool) -> None:
        self._token = token
        # Browsers send a cookie to every port of a machine, so the cookie is not the token: it opens pages, but no model calls.
        self._cookie = hmac.new(token.encode(), b"cookie", hashlib.sha256).hexdigest()
        self._names = _LOOPBACK | {in_brackets(host.lower()) for host in hosts}
        self._is_open = is_open

    def page(self, handler: Handler) -> Handler:
        """Protect a page of the gateway: only requests with the token may see it."""

        async def checked_handler(request: web.Request) -> web.StreamResponse:
            refused = None if self._shows_token(request) or self._bears_token(request) else self._onlooker(request)
            return _forbid_storing(await handler(request) if refused is None else _refusal_response(refused))

        return checked_handler

    def service(self, handler: Handler) -> Handler:
        """Protect a service for programs: the token is wanted in a header, and browsers of other sites are refused even with it."""

        async def checked_handler(request: web.Request) -> web.StreamResponse:
            refused = self._stranger(request)
            if refused is None and not (self._shows_token(request) or self._bears_token(request)):
                refused = _Refusal(_UNKNOWN, _CLOSED, "no_token")
            return _forbid_storing(await handler(request) if refused is None else _refusal_response(refused))

        return checked_handler

    def open_page(self, whole: Handler, brief: Handler) -> Handler:
        """Protect a public page: complete for this machine and for requests with the token, brief for strangers."""

        async def checked_handler(request: web.Request) -> web.StreamResponse:
            shows = self._shows_token(request)
            refused = None if shows or self._is_open else self._stranger(request)
            if refused is not None:
                return _forbid_storing(_refusal_response(refused))
            return _forbid_storing(await (whole if shows or not self._is_open else brief)(request))

        return checked_handler

    def rest(
        self,
        pages: Mapping[str, Handler],
        services: Collection[str],
        relay: Callable[[web.Request, str], Awaitable[web.StreamResponse]],
    ) -> Handler:
        """Protect other paths: forwarded calls, and pages by a path with the token.

        pages: handlers of pages with full access. services: paths of services.

        The path of a page with a slash too much is unknown, and is not forwarded to a vendor; nor is one that leads to a
        service, also behind the token, which a service wants in a header. A vendor's own path may have a service's name
        further behind: it is refused only with the gateway's token as bearer, which nobody sends to a vendor.
        """
        of_services = frozenset(one.strip("/") for one in services)

        def is_beside(path: str, *, bears_token: bool) -> bool:
            plain = path.partition("?")[0]
            meant = f"/{plain.strip('/')}"
            return (plain != meant and meant in pages) or not of_services.isdisjoint(
                segments(path) if bears_token else first_segments(path)
            )

        async def checked_handler(request: web.Request) -> web.StreamResponse:
            path = origin_form(request.raw_path)
            if path.startswith(SEGMENT):
                told, _, behind = path[len(SEGMENT) :].partition("/")
                path = "/" + behind.lstrip("/")
                if not self._is_token(told):
                    return self._turned_away(request, path, _Refusal(_UNKNOWN, _OTHER_GATEWAYS, "no_token"))
                if request.method == "GET" and path == "/":
                    return self._let_in()
                if request.method == "GET" and (page := pages.get(path.partition("?")[0])):
                    return _forbid_storing(await page(request))
            elif refused := self._of_relay(request):
                return self._turned_away(request, path, refused)
            if is_beside(path, bears_token=self._bears_token(request)):
                return _forbid_storing(_refusal_response(_NO_PAGE))
            return await relay(request, path)

        return checked_handler

    def _of_relay(self, request: web.Request) -> _Refusal | None:
        if self._shows_token(request):
            return None
        if self._is_open:
            return _Refusal(_UNKNOWN, _CLOSED_TO_ALL, "no_token")
        # requests other than POST have no effect without a vendor's key, which a page of another site lacks
        return self._stranger(request, asks_origin=request.method == "POST")

    def _turned_away(self, request: web.Request, path: str, refused: _Refusal) -> web.StreamResponse:
        """Return a refusal in the form of the vendor addressed by the request."""
        return refusal(route(request.method, path, request.headers).vendor, refused.status, refused.why, refused.code)

    def _let_in(self) -> web.StreamResponse:
        """Redirect to the page without the token.

        The address bar is visible to others and kept in the history.
        """
        answer = web.Response(status=303, headers={"Location": "/", "Referrer-Policy": "no-referrer"})
        answer.set_cookie(COOKIE, self._cookie, httponly=True, samesite="Strict", path="/")
        return _forbid_storing(answer)

    def _stranger(self, request: web.Request, *, asks_origin: bool = True) -> _Refusal | None:
        """Return why a request without the token is refused, or None if allowed."""
        host = request.headers.get("Host", "").strip().lower()
        if not self._is_named(_without_port(host)):
            return _Refusal(_FORBIDDEN, _WRONG_NAME, "wrong_name")
        if request.headers.get("Sec-Fetch-Site", "none") not in ("none", "same-origin"):
            return _Refusal(_FORBIDDEN, _OTHER_SITE, "other_site")
        origins = request.headers.getall("Origin", ())
        if asks_origin and any(one.partition("://")[2].lower() != host for one in origins):
            return _Refusal(_FORBIDDEN, _OTHER_SITE, "other_site")
        return None

    def _is_named(self, name: str) -> bool:
        # an IP address cannot be rebound to another machine
        return name in self._names or (self._is_open and is_address(name))

    def _onlooker(self, request: web.Request) -> _Refusal | None:
        """Return why a browser may not see a page of the gateway, or None if allowed."""
        if stranger := self._stranger(request):
            return stranger
        has_cookie = is_same(request.cookies.get(COOKIE, ""), self._cookie)
        return None if has_cookie else _Refusal(_UNKNOWN, _CLOSED, "no_token")

    def _shows_token(self, request: web.Request) -> bool:
        return self._is_token(request.headers.get(PROOF, ""))

    def _bears_token(self, request: web.Request) -> bool:
        return bears(request.headers.get("Authorization", ""), self._token)

    def _is_token(self, told: str) -> bool:
        return is_same(told, self._token)


def _without_port(host: str) -> str:
    name, colon, port = host.rpartition(":")
    return name if colon and port.isdecimal() else host


def _refusal_response(refused: _Refusal) -> web.Response:
    answer = web.json_response({"error": refused.why}, status=refused.status)
    if refused.status == _UNKNOWN:
        answer.headers["WWW-Authenticate"] = 'Bearer realm="pagein"'
    return answer


def _forbid_storing(answer: web.StreamResponse) -> web.StreamResponse:
    answer.headers["X-Content-Type-Options"] = "nosniff"
    answer.headers["Cache-Control"] = "no-store"
    return answer
