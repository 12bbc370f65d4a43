"""Read the session name from a request's headers or fields.

Only a hint: the message history decides. Pure functions.
"""

import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Final

from pagein.gateway.http.headers import value_of

# In order of precedence. Some proxies drop headers with an underscore, so both spellings are in use.
HEADERS: Final = (
    "x-pagein-session",
    "x-claude-code-session-id",
    "session-id",
    "session_id",
    "x-session-id",
    "x-session-affinity",
)
AGENT: Final = "x-claude-code-agent-id"
EXTENSION: Final = "x-pagein-extension"
"""Names an extension of pagein in the client, such as `pi/0.1.0`, that decides on the window itself."""
_LONGEST: Final = 200


@dataclass(frozen=True, slots=True)
class Hint:
    """A name for a session.

    source: the header or field with the name
    agent: id of a sub-agent, "" for the main agent
    """

    name: str
    source: str
    agent: str = ""

    @property
    def key(self) -> str:
        """Return a combined name of session and sub-agent."""
        return f"{self.name}/{self.agent}" if self.agent else self.name


def from_headers(headers: Iterable[tuple[str, str]]) -> Hint | None:
    """Return the hint in the headers, or None."""
    given = list(headers)
    agent = fit_for_logs(value_of(given, AGENT))
    for name in HEADERS:
        if value := fit_for_logs(value_of(given, name)):
            return Hint(value, name, agent)
    return None


def from_fields(fields: Mapping[str, bytes]) -> Hint | None:
    """Return the hint in a body's top-level fields, each given as JSON, or None."""
    return next((found for read in _BODY if (found := read(fields)) is not None), None)


def name_in_fields(fields: Mapping[str, bytes]) -> str | None:
    """Return the combined name of session and sub-agent in a body's top-level fields, or None."""
    found = from_fields(fields)
    return None if found is None else found.key


def _cache_key(fields: Mapping[str, bytes]) -> Hint | None:
    value = _value(fields.get("prompt_cache_key", b""))
    name = fit_for_logs(value) if isinstance(value, str) else ""
    return Hint(name, "prompt_cache_key") if name else None


def _user_id(fields: Mapping[str, bytes]) -> Hint | None:
    """Read the session from `metadata.user_id`.

    Claude Code writes JSON into this string; older clients write `..._session_ID`.
    """
    metadata = _value(fields.get("metadata", b""))
    told = metadata.get("user_id") if isinstance(metadata, dict) else None
    if not isinstance(told, str):
        return None
    inner = _value(told.encode("utf-8", "surrogatepass"))
    name = inner.get("session_id") if isinstance(inner, dict) else told.rpartition("_session_")[2]
    found = isinstance(inner, dict) or "_session_" in told
    return (
        Hint(fit_for_logs(name), "metadata.user_id") if found and isinstance(name, str) and fit_for_logs(name) else None
    )


_BODY: Final[tuple[Callable[[Mapping[str, bytes]], Hint | None], ...]] = (_cache_key, _user_id)


def fit_for_logs(text: str) -> str:
    """Return a name fit for logs: printable, and of limited length."""
    return "".join(char for char in text.strip()[:_LONGEST] if char.isprintable())


def _value(raw: bytes) -> object:
    try:
        return json.loads(raw) if raw else None
    except (ValueError, RecursionError):
        return None
