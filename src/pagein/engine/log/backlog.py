"""What the journals are still owed: requests that went out without a decision, and what answers told while the store could not be written.

It is journaled with the next turn of its session, when the engine is asked to (`Engine.settle`), and when it is closed.
"""

from collections import deque
from dataclasses import dataclass
from threading import Lock
from typing import Final, TypeAlias

from pagein.model.entries import EntryId
from pagein.providers.wire.request_body import Envelope

MOST_REQUESTS: Final = 16
MOST_FACTS: Final = 1_000
"""Of one session; the oldest are let go of first."""


@dataclass(frozen=True, slots=True)
class UndecidedRequest:
    """A request that went out without a decision. body, envelope, context: as it came. is_last: as its conversation was rendered last, with
    the client's news behind it as they came; else it went out otherwise.
    """

    body: bytes
    envelope: Envelope
    context: str
    at: float | None
    is_last: bool


@dataclass(frozen=True, slots=True)
class Fact:
    """A note behind a request. entry: where that stands; None: where it will stand whose last message has the name `last`."""

    kind: str
    data: str
    entry: EntryId | None
    last: EntryId


Debt: TypeAlias = UndecidedRequest | Fact


class Backlog:
    """Debts by session, in their order. Any number of threads may use it."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._of: dict[str, deque[Debt]] = {}

    def add(self, session: str, debt: Debt) -> None:
        """A journal is owed one thing more."""
        with self._lock:
            debts = self._of.setdefault(session, deque())
            debts.append(debt)
            for kind, most in ((UndecidedRequest, MOST_REQUESTS), (Fact, MOST_FACTS)):
                same = [one for one in debts if isinstance(one, kind)] if len(debts) > most else []
                if len(same) > most:
                    debts.remove(same[0])

    def of(self, session: str) -> tuple[Debt, ...]:
        """What the journal of a session is owed, oldest first."""
        with self._lock:
            return tuple(self._of.get(session, ()))

    def settle(self, session: str, debts: tuple[Debt, ...]) -> None:
        """These are owed no more."""
        with self._lock:
            left = [one for one in self._of.pop(session, ()) if not any(one is done for done in debts)]
            if left:
                self._of[session] = deque(left)

    def sessions(self) -> list[str]:
        """Sessions whose journals are owed something."""
        with self._lock:
            return list(self._of)
