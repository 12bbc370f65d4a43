"""Race between a decision and its caller: the first to claim the request wins.

So the journal records only requests that were sent: a decision after the caller gave up is dropped, and a caller waits
for a decision that is being stored.
"""

from threading import Lock
from typing import Literal, TypeAlias

_Whose: TypeAlias = Literal["nobody", "decision", "caller"]


class GivenUp(Exception):
    """Raised when the caller no longer waits for a decision, to prevent its storage."""


class DecisionClaim:
    """The claim on one request, shared by the deciding thread and the waiting thread."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._whose: _Whose = "nobody"

    def keep(self) -> None:
        """Claim the request for the decision before storing it. Raises GivenUp if the caller no longer waits."""
        if not self._has("decision"):
            raise GivenUp

    def give_up(self) -> bool:
        """Claim the request for the caller. Returns False if the decision is being stored and will arrive soon."""
        return self._has("caller")

    @property
    def is_given_up(self) -> bool:
        """True when the caller no longer waits."""
        return self._whose == "caller"

    def _has(self, who: _Whose) -> bool:
        with self._lock:
            if self._whose == "nobody":
                self._whose = who
            return self._whose == who
