"""Gemini over HTTP: the model and the way of answering stand in the path."""

import re
from collections.abc import Mapping
from typing import Final

from pagein.providers.wire.json_values import Json
from pagein.providers.wire.wire_format import Endpoint, HttpForm

_PATH: Final = re.compile(r"/v\d\w*/(?:models|tunedModels)/(?P<model>[^/:]+):(?P<method>\w+)")
_AS_EVENTS: Final = "alt=sse"
_HEADERS: Final = ("x-goog-api-key", "x-goog-api-client")
# Google's names of these errors, so that clients react as they would to Google.
_STATUSES: Final = {
    400: "INVALID_ARGUMENT",
    401: "UNAUTHENTICATED",
    403: "PERMISSION_DENIED",
    404: "NOT_FOUND",
    413: "INVALID_ARGUMENT",
    426: "FAILED_PRECONDITION",
    429: "RESOURCE_EXHAUSTED",
    431: "INVALID_ARGUMENT",
    500: "INTERNAL",
    502: "UNAVAILABLE",
    503: "UNAVAILABLE",
    504: "DEADLINE_EXCEEDED",
}


def endpoint(path: str) -> Endpoint | None:
    """The meaning of a path; None for a path of others.

    Without `alt=sse` a stream is one JSON array, which pagein does not read.
    """
    found = _PATH.fullmatch(path)
    match found and found["method"]:
        case "generateContent":
            return Endpoint("generate_content", model=_model(found))
        case "streamGenerateContent":
            return Endpoint("generate_content", model=_model(found), streams=True, query=_AS_EVENTS)
        case "countTokens":
            return Endpoint("count_tokens", is_call=False, model=_model(found))
        case _:
            return None


def _model(found: re.Match[str] | None) -> str:
    return found["model"] if found else ""


def claims(headers: Mapping[str, str]) -> bool:
    """Whether headers show a client of Google."""
    return any(name in headers for name in _HEADERS) or headers.get("user-agent", "").startswith("GeminiCLI")


def error_body(status: int, message: str, code: str) -> Json:
    """The body of an error."""
    kind = _STATUSES.get(status, "UNAVAILABLE")
    reason = {"@type": "type.googleapis.com/google.rpc.ErrorInfo", "reason": f"pagein_{code}", "domain": "pagein"}
    return {"error": {"code": status, "message": message, "status": kind, "details": [reason]}}


FORM: Final = HttpForm(
    "google",
    endpoint,
    ("/v1beta", "/upload/v1beta", "/cachedContents"),
    claims,
    error_body,
    "/v1beta/models/{model}:generateContent",
)
