"""Whose money a request spends, as far as its headers tell. Nothing of a credential is kept, not even a hash. Pure."""

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
"""What is said, once, when such a client is first seen."""


def has_chatgpt_login(headers: Iterable[tuple[str, str]]) -> bool:
    """Whether this is a ChatGPT login as codex has it: it names the account beside the token."""
    return bool(value_of(headers, "chatgpt-account-id"))


def is_subscription(headers: Iterable[tuple[str, str]]) -> bool:
    """Whether this looks like a subscription's login (OAuth) rather than an API key."""
    given = list(headers)
    if value_of(given, "x-api-key"):
        return False
    kind, _, token = value_of(given, "authorization").strip().partition(" ")
    token = token.strip()
    return kind.lower() == "bearer" and bool(_LOGIN.match(token) or _TOKEN.fullmatch(token))
