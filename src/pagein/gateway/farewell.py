"""Messages for users whose sessions will continue without the gateway. Pure functions.

Some models bind thinking to the prompt before it. Behind the gateway this prompt is pagein's window. The agent keeps the thinking, but
not the window. So the vendor refuses the thinking when it arrives without the gateway.
"""

from collections.abc import Collection
from typing import Final

from pagein.gateway.curation.session_hints import Hint
from pagein.providers.prices.model_abilities import abilities
from pagein.providers.validity import Api
from pagein.providers.wire.formats import format_named

HOW: Final = (
    "let each session end, or have the agent compact it (/compact), while it still uses the gateway; then remove the gateway from "
    "its settings. Otherwise the agent's next call is refused once, and it continues without its thinking so far"
)
WHAT_IS_DROPPED: Final = (
    "requests go out as the agent wrote them, without thinking bound to a window of pagein. The agent keeps that "
    "thinking, and would send it to the vendor: " + HOW
)
"""Message of `pagein off --leaving`."""


def still_bound(hint: Hint | None) -> str:
    """Return the message about a session that cannot leave the gateway yet."""
    whose = f"session {hint.key}" if hint is not None else "a session"
    return f"{whose} still holds thinking bound to windows of pagein, which is removed on its way: {HOW}"


def at_the_end(sessions: Collection[str]) -> str:
    """Return the final message of `pagein serve`.

    sessions: sessions with a window changed under a model that binds its thinking
    """
    if not sessions:
        return ""
    count = "a session" if len(sessions) == 1 else f"{len(sessions)} sessions"
    return (
        f"{count} had a window changed under a model that binds its thinking to it. Start the gateway again before "
        "they continue, and leave it by `pagein off --leaving`; pointed to the vendor now, their next call is refused once"
    )


def binds(api: Api | None, model: str) -> bool:
    """Return whether a model's thinking may be bound to its prompt."""
    return api is not None and format_named(api).validity.binds_thinking and abilities(model).may_bind
