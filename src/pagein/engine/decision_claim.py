"""The race of a decision and its caller for a request: the first to claim it wins.

So a decision after the caller gave up is dropped, and a caller waits for a decision that is being stored.
"""

from threading import Lock
from typing import Literal, TypeAlias

_Whose: TypeAlias = Literal["nobody", "decision", "caller"]


class GivenUp(Exception):
    """Raised when the caller no longer waits for a decision, to prevent its storage."""


class DecisionClaim:
    """The claim on one request, shared by the deciding thread and the waiting thread.

    is_given_up: True when the caller no longer waits. Read it only.
    """

    def __init__(self) -> None:
        self._lock = Lock()
        self.is_given_up = False
        self._whose: _Whose = "nobody"

    def keep(self) -> None:
        """Claim the request for the decision before storing it. Raises GivenUp if the caller no longer waits."""
        if not self._has("decision"):
            raise GivenUp

    def give_up(self) -> bool:
        """Claim the request for the caller. Returns False if the decision is being stored and will arrive soon."""
        self.is_given_up = self._has("caller")
        return self.is_given_up

    def _has(self, who: _Whose) -> bool:
        with self._lock:
            if self._whose == "nobody":
                self._whose = who
            return self._whose == who
