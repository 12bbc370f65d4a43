"""Read the session name from a request's headers. A body may name it as well (`providers.wire.session_names`).

Only a hint: the message history decides. Pure functions.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from pagein.gateway.http.headers import value_of
from pagein.providers.wire.session_names import AGENT_HEADER, SESSION_HEADERS, fit_for_logs

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
    agent = fit_for_logs(value_of(given, AGENT_HEADER))
    for name in SESSION_HEADERS:
        if value := fit_for_logs(value_of(given, name)):
            return Hint(value, name, agent)
    return None
