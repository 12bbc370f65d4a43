"""Which upstream a request is for, and whether it is a model call that can be curated. Pure."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from pagein.gateway.settings import Vendor
from pagein.providers.validity.rules import Api

# Paths may begin with a vendor's name, which settles the matter where the rest of the path does not.
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
    """Where a request goes.

    name: what the endpoint is called in figures and logs; `other` for one that is not known. api: the wire format of a model
    call, None where there is nothing to curate. path: raw path and query for the upstream.
    """

    name: str
    vendor: Vendor
    api: Api | None
    path: str


def route(method: str, raw_path: str, headers: Mapping[str, str]) -> Route:
    """Where this request goes. Headers decide only for paths that both vendors have; names in any case."""
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
    """The path of a request line, also of one that names the whole address as requests to proxies do."""
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
