"""What is said to people whose sessions are to go on without the gateway. Pure.

A model that binds its thinking to what stood before it made that thinking in front of windows of ours. The agent has kept it, and not
the windows. Sent to the vendor without the gateway, it is refused.
"""

from collections.abc import Collection
from typing import Final

from pagein.gateway.curation.session_hints import Hint
from pagein.providers.prices.model_abilities import abilities
from pagein.providers.validity.rules import Api

HOW: Final = (
    "let each session end, or have the agent compact it (/compact), while it still goes through the gateway; then take the gateway out of "
    "its settings. Without that the agent's next call is refused once, and it goes on without what it thought so far"
)
WHAT_IS_DROPPED: Final = (
    "requests go out as the agent wrote them, without thinking that stands on a window of pagein's. The agent keeps that "
    "thinking, and would send it to the vendor: " + HOW
)
"""What `pagein off --leaving` says."""


def still_bound(hint: Hint | None) -> str:
    """What is said of a session that cannot leave yet."""
    whose = f"session {hint.key}" if hint is not None else "a session"
    return f"{whose} still holds thinking that stands on windows of pagein's, which is left out on its way: {HOW}"


def at_the_end(sessions: Collection[str]) -> str:
    """What `pagein serve` says when it ends. sessions: those whose windows it changed under a model that binds its thinking."""
    if not sessions:
        return ""
    count = "a session" if len(sessions) == 1 else f"{len(sessions)} sessions"
    return (
        f"{count} had a window changed under a model that binds its thinking to it. Start the gateway again before "
        "they go on, and leave it by `pagein off --leaving`; pointed to the vendor as they are, their next call is refused once"
    )


def binds(api: Api | None, model: str) -> bool:
    """Whether thinking must be taken for bound to the window that it was made in front of."""
    return api == "anthropic" and abilities(model).may_bind
