"""Whose word counts for a request: that of the decision, or that of who waited for it and gave it up. Whoever asks first has it.

So what is journaled as sent is sent: a decision that comes too late is not kept, and one that is being kept is waited for.
"""

from threading import Lock
from typing import Literal, TypeAlias

_Whose: TypeAlias = Literal["nobody", "decision", "caller"]


class GivenUp(Exception):
    """Nobody waits for this decision any more, so it must not be kept."""


class DecisionClaim:
    """The claim on one request. Asked from the thread that decides and from the one that waits."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._whose: _Whose = "nobody"

    def keep(self) -> None:
        """The decision is about to be kept. Raises GivenUp where nobody waits for it any more."""
        if not self._has("decision"):
            raise GivenUp

    def give_up(self) -> bool:
        """Nobody waits for the decision any more. False where it is being kept already, and will be there soon."""
        return self._has("caller")

    @property
    def is_given_up(self) -> bool:
        """Whether nobody waits for the decision any more."""
        return self._whose == "caller"

    def _has(self, who: _Whose) -> bool:
        with self._lock:
            if self._whose == "nobody":
                self._whose = who
            return self._whose == who
