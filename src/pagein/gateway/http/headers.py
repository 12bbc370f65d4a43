"""Headers on their way through: what concerns one connection only is dropped, our own stay here, the rest is untouched. Pure."""

import hmac
import re
from collections.abc import Callable, Collection, Iterable
from typing import Final, TypeAlias

Headers: TypeAlias = list[tuple[str, str]]

OURS: Final = "x-pagein-"
OFF: Final = "x-pagein"
"""`x-pagein: off` on a request passes it through as it is."""
SESSION: Final = "x-pagein-session"
PROOF: Final = "x-pagein-token"
"""Carries the gateway's token (`access`)."""
WARNING: Final = "x-pagein-warning"

READABLE: Final = frozenset({"identity", "gzip", "x-gzip", "deflate", "zstd"})
"""Content codings that can be read here. Brotli is not among them: it would be one more dependency for every user."""

MOST: Final = 128
LONGEST: Final = 1 << 16
"""So many headers may come with a request, and each may be so long: agents put state into them."""

# `expect` is answered by this server itself, and the length is written anew for the body that is sent.
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
    """Headers for the next hop, in order, repeated ones included. length: whether the body stays as it is, and so its length."""
    given = list(headers)
    dropped = _ONE_CONNECTION | _named_by_connection(given)
    if not length:
        dropped |= {_LENGTH}
    return [(name, value) for name, value in given if name.lower() not in dropped and not is_ours(name)]


def as_sent(raw: Iterable[tuple[bytes, bytes]]) -> Headers:
    """Headers as they stood on the wire, names in their own spelling.

    Names that are repeated get their first spelling: the HTTP client takes another one for a header that replaces it.
    """
    spelled: dict[str, str] = {}
    found = []
    for key, value in raw:
        name = key.decode("utf-8", "surrogateescape")
        found.append((spelled.setdefault(name.lower(), name), value.decode("utf-8", "surrogateescape")))
    return found


def is_too_much(raw: Collection[tuple[bytes, bytes]], target: str) -> bool:
    """Whether there are more headers, or a longer one or a longer path, than vendors take."""
    return len(raw) > MOST or len(target) > LONGEST or any(len(name) + len(value) > LONGEST for name, value in raw)


def is_ours(name: str) -> bool:
    """Whether a header is between client and gateway, and no upstream's business."""
    lower = name.lower()
    return lower == OFF or lower.startswith(OURS)


def says_off(headers: Iterable[tuple[str, str]]) -> bool:
    """Whether this request asks to be passed through as it is."""
    return any(name.lower() == OFF and value.strip().lower() == "off" for name, value in headers)


def value_of(headers: Iterable[tuple[str, str]], wanted: str) -> str:
    """The first value under a lower-case name, "" where there is none."""
    return next((value for name, value in headers if name.lower() == wanted), "")


def readable_codings(headers: Headers) -> Headers:
    """The headers with `accept-encoding` cut to codings that can be read here.

    A client that accepts none of them, nor plain bytes by not saying anything, is left with plain bytes.
    """
    return _change_header(headers, "accept-encoding", _cut)


def plain(headers: Headers) -> Headers:
    """The headers asking for plain bytes: what comes back will be taken apart."""
    return _change_header(headers, "accept-encoding", lambda _: "identity")


def without(headers: Headers, *names: str) -> Headers:
    """The headers without those of lower-case names."""
    return [(name, value) for name, value in headers if name.lower() not in names]


def without_cookie(headers: Headers, wanted: str) -> Headers:
    """The headers without a cookie of this name; those of other names stay as they were written."""
    if not any(name.lower() == "cookie" and wanted in value for name, value in headers):
        return headers
    kept = _change_header(headers, "cookie", lambda value: "; ".join(_other_cookies(value, wanted)))
    return [(name, value) for name, value in kept if value or name.lower() != "cookie"]


def without_token(headers: Headers, token: str) -> Headers:
    """The headers without those that are this token, bare or as a bearer, under whatever name; a vendor's key stays.

    A client whose key is set to the token sends it in the header of its vendor: `x-api-key`, `api-key`, `x-goog-api-key`.
    """
    return [(name, value) for name, value in headers if not (is_same(value.strip(), token) or bears(value, token))]


def bears(value: str, token: str) -> bool:
    """Whether the value of an `Authorization` is this token as a bearer."""
    kind, _, told = value.strip().partition(" ")
    return kind.lower() == "bearer" and is_same(told.strip(), token)


def is_same(told: str, wanted: str) -> bool:
    """Whether two secrets are one, in a time that tells nothing of where they differ."""
    return hmac.compare_digest(told.encode("utf-8", "surrogateescape"), wanted.encode())


def _other_cookies(value: str, unwanted: str) -> list[str]:
    pairs = (pair.strip() for pair in value.split(";"))
    return [pair for pair in pairs if pair.partition("=")[0].strip() != unwanted]


def _change_header(headers: Headers, wanted: str, change: Callable[[str], str]) -> Headers:
    return [(name, change(value) if name.lower() == wanted else value) for name, value in headers]


def _cut(value: str) -> str:
    kept = [part.strip() for part in value.split(",") if _parse_coding(part) in READABLE]
    if len(kept) == len([part for part in value.split(",") if part.strip()]) and kept:
        return value
    return ", ".join(kept) or "identity"


def _parse_coding(part: str) -> str:
    return part.partition(";")[0].strip().lower()


def _named_by_connection(headers: Headers) -> frozenset[str]:
    values = (value for name, value in headers if name.lower() == "connection")
    return frozenset(token.lower() for value in values for token in re.split(r"[,\s]+", value) if token)
