"""Journal entries not written yet: undecided requests, and reported facts from a time when the store could not be
written.

They are written in the next turn of their session, by `Engine.settle`, and on close.
"""

from collections import deque
from dataclasses import dataclass, replace
from threading import Lock
from typing import Final, TypeAlias

from pagein.model.entries import EntryId
from pagein.model.journal_notes import Note
from pagein.providers.wire.request_body import Envelope

MOST_REQUESTS: Final = 16
MOST_FACTS: Final = 1_000
"""Limits for one session; the oldest item is dropped first."""


@dataclass(frozen=True, slots=True)
class UndecidedRequest:
    """A request that was sent without a decision.

    body, envelope, context: as the client sent them.
    at: time of the request, in seconds; None if unknown.
    is_last: True when the last rendering of the conversation was sent with the client's new messages; False when
        another body was sent.
    """

    body: bytes
    envelope: Envelope
    context: str
    at: float | None
    is_last: bool


@dataclass(frozen=True, slots=True)
class Fact:
    """A note to write after a request.

    entry: the entry to write after; None to find it by `last`.
    last: name of the last message of the request.
    """

    note: Note
    entry: EntryId | None
    last: EntryId


Debt: TypeAlias = UndecidedRequest | Fact


class Backlog:
    """Items not written to the journals yet, in order, by session. Thread-safe.

    waiting: the items by session. Read it only, without its values: whether a session has any.
    """

    def __init__(self) -> None:
        self._lock = Lock()
        self.waiting: dict[str, deque[Debt]] = {}

    def add(self, session: str, debt: Debt) -> None:
        """Add an item for a session. Above the limits, drop the oldest item."""
        with self._lock:
            debts = self.waiting.setdefault(session, deque())
            debts.append(debt)
            for kind, most in ((UndecidedRequest, MOST_REQUESTS), (Fact, MOST_FACTS)):
                same = [one for one in debts if isinstance(one, kind)] if len(debts) > most else []
                if len(same) > most:
                    debts.remove(same[0])

    def of(self, session: str) -> tuple[Debt, ...]:
        """Return the items of a session, oldest first."""
        with self._lock:
            return tuple(self.waiting.get(session, ()))

    def forget_renderings(self, session: str) -> None:
        """Count the requests of a session as sent in another rendering than the last one of its branch."""
        with self._lock:
            debts = self.waiting.get(session, ())
            if debts:
                self.waiting[session] = deque(
                    replace(one, is_last=False) if isinstance(one, UndecidedRequest) else one for one in debts
                )

    def settle(self, session: str, debts: tuple[Debt, ...]) -> None:
        """Remove items that were written."""
        with self._lock:
            left = [one for one in self.waiting.pop(session, ()) if not any(one is done for done in debts)]
            if left:
                self.waiting[session] = deque(left)

    def sessions(self) -> list[str]:
        """Return the sessions with items to write."""
        with self._lock:
            return list(self.waiting)
