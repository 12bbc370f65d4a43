"""Route requests: choose the upstream, and detect model calls for curation. Pure functions."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from pagein.gateway.settings import Vendor
from pagein.providers.validity.rules import Api

# Paths may begin with a vendor's name, which decides if the rest of the path is ambiguous.
_NAMED: Final[Mapping[str, Vendor]] = {"/anthropic/": "anthropic", "/openai/": "openai"}
_GENERATING: Final[Mapping[str, tuple[str, Api, Vendor]]] = {
    "/messages": ("messages", "anthropic", "anthropic"),
    "/chat/completions": ("chat", "openai_chat", "openai"),
    "/responses": ("responses", "openai_responses", "openai"),
}
_KNOWN: Final[Mapping[str, tuple[str, Vendor | None]]] = {
    "/messages/count_tokens": ("count_tokens", "anthropic"),
    "/responses/compact": ("compact", "openai"),
    "/models": ("models", None),
}
_VENDOR_PREFIXES: Final[Mapping[str, Vendor]] = {
    "/messages": "anthropic",
    "/api/": "anthropic",
    "/chat/": "openai",
    "/responses": "openai",
}
_ANTHROPIC_HEADERS: Final = ("anthropic-version", "anthropic-beta", "x-api-key")


@dataclass(frozen=True, slots=True)
class Route:
    """Destination of a request.

    name: the endpoint's name in figures and logs; `other` for an unknown endpoint
    vendor: the upstream
    api: wire format of a model call; None for other requests
    path: raw path and query for the upstream
    """

    name: str
    vendor: Vendor
    api: Api | None
    path: str


def route(method: str, raw_path: str, headers: Mapping[str, str]) -> Route:
    """Return the route of this request.

    Headers decide only for paths common to both vendors; header names are case-insensitive.
    """
    path = origin_form(raw_path)
    named: Vendor | None = None
    for prefix, vendor in _NAMED.items():
        if path.startswith(prefix):
            named, path = vendor, path[len(prefix) - 1 :]
    end = path.partition("?")[0].removeprefix("/v1").rstrip("/")
    if method == "POST" and end in _GENERATING:
        name, api, vendor = _GENERATING[end]
        return Route(name, named or vendor, api, path)
    name, settled = _KNOWN.get(end, ("other", None))
    return Route(name, named or settled or _vendor(end, headers), None, path)


def origin_form(raw_path: str) -> str:
    """Return the path of a request line, also from an absolute address as in proxy requests."""
    if raw_path.startswith("/"):
        return raw_path
    _, scheme, rest = raw_path.partition("://")
    return "/" + rest.partition("/")[2] if scheme else "/" + raw_path.removeprefix("*")


def _vendor(end: str, headers: Mapping[str, str]) -> Vendor:
    for prefix, vendor in _VENDOR_PREFIXES.items():
        if end.startswith(prefix):
            return vendor
    names = {name.lower() for name in headers}
    if any(name in names for name in _ANTHROPIC_HEADERS):
        return "anthropic"
    agent = next((value for name, value in headers.items() if name.lower() == "user-agent"), "")
    return "anthropic" if agent.lower().startswith(("claude", "anthropic")) else "openai"
