"""Filter headers: drop headers of a single connection, keep pagein's own here, leave the rest unchanged.

Pure functions.
"""

import hmac
import re
from collections.abc import Callable, Collection, Iterable
from typing import Final, TypeAlias

Headers: TypeAlias = list[tuple[str, str]]

OURS: Final = "x-pagein-"
OFF: Final = "x-pagein"
"""`x-pagein: off` forwards a request unchanged."""
PROOF: Final = "x-pagein-token"
"""Carries the gateway's token (`access`)."""
WARNING: Final = "x-pagein-warning"

NOT_ADDED: Final = ("Accept", "Accept-Encoding", "User-Agent", "Content-Type")
"""Headers that the HTTP client would add if the agent sent none."""
_FEATURES: Final = ("anthropic-beta", "openai-beta")

READABLE: Final = frozenset({"identity", "gzip", "x-gzip", "deflate", "zstd"})
"""Supported content codings. Brotli is missing, because it would be another dependency for every user."""

MOST: Final = 128
LONGEST: Final = 1 << 16
"""Maximum number of headers, and maximum length of a header: agents store state in headers."""

# This server itself answers `expect`, and recomputes the length for the body sent.
_ONE_CONNECTION: Final = frozenset(
    {
        "connection",
        "expect",
        "host",
        "keep-alive",
        "proxy-authenticate",
        "proxy-authorization",
        "proxy-connection",
        "te",
        "trailer",
        "transfer-encoding",
        "upgrade",
    }
)
_LENGTH: Final = "content-length"


def forward_headers(headers: Iterable[tuple[str, str]], *, length: bool) -> Headers:
    """Return the headers for the next hop, in order, repeated headers included.

    length: whether the body, and so its length, stays unchanged
    """
    given = list(headers)
    dropped = _ONE_CONNECTION | _named_by_connection(given)
    if not length:
        dropped |= {_LENGTH}
    return [(name, value) for name, value in given if name.lower() not in dropped and not is_ours(name)]


def as_sent(raw: Iterable[tuple[bytes, bytes]]) -> Headers:
    """Return headers as on the wire, with names in their original spelling.

    Repeated names get their first spelling, because the HTTP client takes another spelling for a replacement.
    """
    spelled: dict[str, str] = {}
    found = []
    for key, value in raw:
        name = key.decode("utf-8", "surrogateescape")
        found.append((spelled.setdefault(name.lower(), name), value.decode("utf-8", "surrogateescape")))
    return found


def is_too_much(raw: Collection[tuple[bytes, bytes]], target: str) -> bool:
    """Return whether the headers or the path exceed the limits of vendors."""
    return len(raw) > MOST or len(target) > LONGEST or any(len(name) + len(value) > LONGEST for name, value in raw)


def is_ours(name: str) -> bool:
    """Return whether a header is meant for the gateway only."""
    lower = name.lower()
    return lower == OFF or lower.startswith(OURS)


def says_off(headers: Iterable[tuple[str, str]]) -> bool:
    """Return whether the request asks for passthrough."""
    return any(name.lower() == OFF and value.strip().lower() == "off" for name, value in headers)


def value_of(headers: Iterable[tuple[str, str]], wanted: str) -> str:
    """Return the first value of a lower-case name, "" if missing."""
    return next((value for name, value in headers if name.lower() == wanted), "")


def readable_codings(headers: Headers) -> Headers:
    """Restrict `accept-encoding` to supported codings.

    A client without any supported coding gets plain bytes.
    """
    return _change_header(headers, "accept-encoding", _readable_codings)


def plain(headers: Headers) -> Headers:
    """Return the headers with a request for plain bytes, because the answer will be parsed."""
    return _change_header(headers, "accept-encoding", lambda _: "identity")


def without(headers: Headers, *names: str) -> Headers:
    """Return the headers without these lower-case names."""
    return [(name, value) for name, value in headers if name.lower() not in names]


def without_cookie(headers: Headers, wanted: str) -> Headers:
    """Return the headers without a cookie of this name; other cookies stay as written."""
    if not any(name.lower() == "cookie" and wanted in value for name, value in headers):
        return headers
    kept = _change_header(headers, "cookie", lambda value: "; ".join(_other_cookies(value, wanted)))
    return [(name, value) for name, value in kept if value or name.lower() != "cookie"]


def without_token(headers: Headers, token: str) -> Headers:
    """Remove headers that contain this token, bare or as a bearer token, under any name; a vendor's key stays.

    A client configured with the token as its key sends the token in its vendor's header: `x-api-key`, `api-key`, `x-goog-api-key`.
    """
    return [(name, value) for name, value in headers if not (is_same(value.strip(), token) or bears(value, token))]


def bears(value: str, token: str) -> bool:
    """Return whether an `Authorization` value is this token as a bearer token."""
    kind, _, told = value.strip().partition(" ")
    return kind.lower() == "bearer" and is_same(told.strip(), token)


def is_same(told: str, wanted: str) -> bool:
    """Compare two secrets in constant time."""
    return hmac.compare_digest(told.encode("utf-8", "surrogateescape"), wanted.encode())


def _other_cookies(value: str, unwanted: str) -> list[str]:
    pairs = (pair.strip() for pair in value.split(";"))
    return [pair for pair in pairs if pair.partition("=")[0].strip() != unwanted]


def _change_header(headers: Headers, wanted: str, change: Callable[[str], str]) -> Headers:
    return [(name, change(value) if name.lower() == wanted else value) for name, value in headers]


def _readable_codings(value: str) -> str:
    kept = [part.strip() for part in value.split(",") if _parse_coding(part) in READABLE]
    if len(kept) == len([part for part in value.split(",") if part.strip()]) and kept:
        return value
    return ", ".join(kept) or "identity"


def _parse_coding(part: str) -> str:
    return part.partition(";")[0].strip().lower()


def _named_by_connection(headers: Headers) -> frozenset[str]:
    values = (value for name, value in headers if name.lower() == "connection")
    return frozenset(token.lower() for value in values for token in re.split(r"[,\s]+", value) if token)


def continuation_headers(given: Headers) -> Headers:
    """Return the headers for a continuation, which is a new request: without the idempotency key."""
    return without(given, "idempotency-key")


def beta_features(given: Headers) -> str:
    """Return the requested beta features: the provider's cache depends on them."""
    return ", ".join(value for name, value in given if name.lower() in _FEATURES)
