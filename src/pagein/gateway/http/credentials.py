"""Detect the kind of login from request headers. No credential is stored, not even as a hash. Pure functions."""

import re
from collections.abc import Iterable
from typing import Final

from pagein.gateway.http.headers import value_of

_LOGIN: Final = re.compile(r"sk-ant-oat")
_TOKEN: Final = re.compile(r"[\w-]{8,}\.[\w-]{8,}\.[\w-]{8,}")

WHY_UNTOUCHED: Final = (
    "this client uses a subscription's login, not an API key, so its requests pass through untouched and are only measured, "
    "and priced as with a key: "
    "the vendor's terms may not allow tools to change them, and no tokens are billed that could be saved. "
    "`pagein serve --subscriptions` edits them all the same, at your own risk"
)
"""Notice shown once, when a client with a subscription's login is first seen."""


def has_chatgpt_login(headers: Iterable[tuple[str, str]]) -> bool:
    """Return whether this is codex's ChatGPT login, which names the account beside the token."""
    return bool(value_of(headers, "chatgpt-account-id"))


def is_subscription(headers: Iterable[tuple[str, str]]) -> bool:
    """Return whether this looks like a subscription's login (OAuth) rather than an API key."""
    given = list(headers)
    if value_of(given, "x-api-key"):
        return False
    kind, _, token = value_of(given, "authorization").strip().partition(" ")
    token = token.strip()
    return kind.lower() == "bearer" and bool(_LOGIN.match(token) or _TOKEN.fullmatch(token))
