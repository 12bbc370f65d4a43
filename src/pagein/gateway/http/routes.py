"""Route requests: choose the upstream, and detect model calls for curation. Pure functions."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final
from urllib.parse import unquote

from pagein.gateway.http.addresses import SEGMENT
from pagein.providers.validity import Api
from pagein.providers.wire.formats import FORMATS

_DEFAULT: Final = "openai"
"""The vendor of requests that show nothing: other providers speak OpenAI's formats."""
_MODELS: Final = "/models"
"""A path common to all vendors."""
_SEPARATORS: Final = re.compile(r"[/\\?#;]")


@dataclass(frozen=True, slots=True)
class Route:
    """Destination of a request.

    name: the endpoint's name in figures and logs; `other` for an unknown endpoint
    vendor: the upstream
    api: wire format of a model call; None for other requests
    path: raw path and query for the upstream
    model: the model's name, if the path has it
    """

    name: str
    vendor: str
    api: Api | None
    path: str
    model: str = ""


def route(method: str, raw_path: str, headers: Mapping[str, str]) -> Route:
    """Return the route of this request.

    A path may begin with a vendor's name, which decides if the rest of the path is ambiguous. Headers decide only for
    paths common to several vendors; header names are case-insensitive.
    """
    path = origin_form(raw_path)
    named: str | None = None
    for form in FORMATS:
        prefix = f"/{form.http.vendor}/"
        if path.startswith(prefix):
            named, path = form.http.vendor, path[len(prefix) - 1 :]
    plain, _, query = path.partition("?")
    plain = plain.rstrip("/")
    for form in FORMATS:
        found = form.http.endpoint(plain)
        if found is not None:
            is_call = found.is_call and method == "POST" and found.query in query
            api = form.name if is_call else None
            name = found.name if is_call or not found.is_call else "other"
            return Route(name, named or form.http.vendor, api, path, found.model if is_call else "")
    end = plain.removeprefix("/v1")
    return Route("models" if end == _MODELS else "other", named or _vendor(plain, headers), None, path)


def origin_form(raw_path: str) -> str:
    """Return the path of a request line, also from an absolute address as in proxy requests."""
    if raw_path.startswith("/"):
        return raw_path
    _, scheme, rest = raw_path.partition("://")
    return "/" + rest.partition("/")[2] if scheme else "/" + raw_path.removeprefix("*")


def segments(raw_path: str) -> tuple[str, ...]:
    """Return the segments of a path as any server may understand them: unescaped, in small letters, without parameters."""
    plain = unquote(raw_path.partition("?")[0]).lower()
    found = (one.strip() for one in _SEPARATORS.split(plain))
    return tuple(one for one in found if one not in ("", "."))


def first_segments(raw_path: str) -> frozenset[str]:
    """Return the segments that a server may take for the first of a path, whether it follows `..` or not."""
    found, depth = set(), 0
    for one in segments(raw_path):
        if one == "..":
            depth = max(0, depth - 1)
            continue
        if depth == 0:
            found.add(one)
        depth += not one.startswith(SEGMENT.strip("/"))  # a token in front is no part of the path
    return frozenset(found)


def _vendor(path: str, headers: Mapping[str, str]) -> str:
    end = path.removeprefix("/v1")
    given: dict[str, str] = {}
    for name, value in headers.items():
        given.setdefault(name.lower(), value)
    by_path = (one.http for one in FORMATS if end.startswith(one.http.prefixes) or path.startswith(one.http.prefixes))
    by_headers = (one.http for one in FORMATS if one.http.claims(given))
    return next((one.vendor for one in (*by_path, *by_headers)), _DEFAULT)
