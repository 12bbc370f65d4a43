"""The name that a client gives to its session, in the headers or in the body of its requests."""

from collections.abc import Mapping
from typing import Final

from pagein.providers.wire.json_values import decoded_object, parse_json, text_at

# In order of precedence. Some proxies drop headers with an underscore, so both spellings are in use.
SESSION_HEADERS: Final = (
    "x-pagein-session",
    "x-claude-code-session-id",
    "session-id",
    "session_id",
    "x-session-id",
    "x-session-affinity",
)
AGENT_HEADER: Final = "x-claude-code-agent-id"
"""Names a sub-agent of the session."""
_LONGEST: Final = 200


def session_in(fields: Mapping[str, bytes]) -> tuple[str, str] | None:
    """Return the client's own name for its session in a body's top-level fields, and the field; None without one.

    OpenAI's clients name it in `prompt_cache_key`. Claude Code writes JSON with it into `metadata.user_id`; older clients
    write `..._session_ID` there.
    """
    given = {
        "prompt_cache_key": parse_json(fields.get("prompt_cache_key", b"")),
        "metadata.user_id": _session_of_user(text_at(decoded_object(fields.get("metadata", b"")), "user_id")),
    }
    named = ((fit_for_logs(name), field) for field, name in given.items() if isinstance(name, str))
    return next((found for found in named if found[0]), None)


def session_name_in(fields: Mapping[str, bytes]) -> str | None:
    """Return the name that `session_in` finds, or None."""
    found = session_in(fields)
    return None if found is None else found[0]


def _session_of_user(told: str) -> object:
    inner = decoded_object(told)
    if inner is not None:
        return inner.get("session_id")
    return told.rpartition("_session_")[2] if "_session_" in told else None


def fit_for_logs(text: str) -> str:
    """Return a name fit for logs: printable, and of limited length."""
    return "".join(char for char in text.strip()[:_LONGEST] if char.isprintable())
