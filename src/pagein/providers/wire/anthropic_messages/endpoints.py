"""Anthropic Messages over HTTP: paths, headers, errors."""

from collections.abc import Mapping
from typing import Final

from pagein.providers.wire.json_values import Json
from pagein.providers.wire.wire_format import Endpoint, HttpForm

_ENDPOINTS: Final = {
    "/messages": Endpoint("messages"),
    "/messages/count_tokens": Endpoint("count_tokens", is_call=False),
}
_HEADERS: Final = ("anthropic-version", "anthropic-beta", "x-api-key")
# Anthropic's names of these errors, so that agents react as they would to Anthropic.
_KINDS: Final = {
    401: "authentication_error",
    403: "permission_error",
    413: "request_too_large",
    426: "invalid_request_error",
    431: "invalid_request_error",
    504: "timeout_error",
}


def endpoint(path: str) -> Endpoint | None:
    """The meaning of a path; None for a path of others."""
    return _ENDPOINTS.get(path.removeprefix("/v1"))


def claims(headers: Mapping[str, str]) -> bool:
    """Whether headers show a client of Anthropic."""
    agent = headers.get("user-agent", "").lower()
    return any(name in headers for name in _HEADERS) or agent.startswith(("claude", "anthropic"))


def error_body(status: int, message: str, _code: str) -> Json:
    """The body of an error."""
    return {"type": "error", "error": {"type": _KINDS.get(status, "api_error"), "message": message}}


FORM: Final = HttpForm("anthropic", endpoint, ("/messages", "/api/"), claims, error_body, "/v1/messages")
