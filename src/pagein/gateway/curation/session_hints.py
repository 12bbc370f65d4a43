"""Read the session name from a request's headers. A body may name it as well (`providers.wire.request_body.session_in`).

Only a hint: the message history decides. Pure functions.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from pagein.gateway.http.headers import value_of
from pagein.providers.wire.request_body import fit_for_logs

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


@dataclass(frozen=True, slots=True)
class Hint:
    """A name for a session.

    source: the header with the name
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
