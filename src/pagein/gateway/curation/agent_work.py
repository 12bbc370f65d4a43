"""Track which agents behind a gateway are at work, and which wait for a person. Uses no files and no threads.

Rules of this file
------------------
1. An agent is at work from a request of its conversation to the end of an answer that calls no tool of the client.
2. A conversation whose answer never came, or whose calls were never answered, is at work. After a long silence it does not
   keep others waiting any more, but what happened in the meantime is never given to a person.
"""

import threading
import time
from collections.abc import Callable, Collection
from dataclasses import dataclass, field
from typing import Final

_MARGIN: Final = 0.05
"""Seconds after the end of an answer that still count as work."""
_MOST_SPANS: Final = 256
_MOST_CONVERSATIONS: Final = 1_000


@dataclass(slots=True)
class _ConversationWork:
    """began: start of the work that goes on; None at rest. spans: earlier work. known_since: before it, nothing is known."""

    session: str
    known_since: float
    began: float | None = None
    last: float = 0.0
    spans: list[tuple[float, float]] = field(default_factory=list)

    def worked_at(self, moment: float) -> bool:
        is_now = self.began is not None and moment >= self.began
        return is_now or moment < self.known_since or any(a <= moment <= b + _MARGIN for a, b in self.spans)


class AgentWork:
    """The work of all conversations of a gateway. Thread-safe. Times are in seconds since 1970."""

    def __init__(self, clock: Callable[[], float] = time.time) -> None:  # noqa: TID251 - the rim reads the clock
        self.came_anew = threading.Event()
        """Set when a session asks for the first time, so that its machine is noted before its files are known."""
        self._clock = clock
        self._turn = threading.Lock()
        self._began = clock()
        self._conversations: dict[str, _ConversationWork] = {}
        self._near: dict[str, bool] = {}

    def note_request(self, session: str, conversation: str, at: float, *, is_near: bool) -> None:
        """Note a request of a conversation.

        is_near: whether its client runs on this machine.
        """
        with self._turn:
            one = self._conversations.get(conversation)
            if one is None:
                # what it did before its first request was seen by nobody, but no agent works without requests
                one = self._conversations.setdefault(conversation, _ConversationWork(session, self._began))
            one.began = at if one.began is None else one.began
            one.last = self._clock()
            if session not in self._near:
                self.came_anew.set()
            self._near[session] = is_near and self._near.get(session, True)
            while len(self._conversations) > _MOST_CONVERSATIONS:
                gone = self._conversations.pop(next(iter(self._conversations)))
                self._began = max(self._began, gone.last)
                if all(one.session != gone.session for one in self._conversations.values()):
                    self._near.pop(gone.session, None)

    def note_answer(self, conversation: str, *, calls: bool) -> None:
        """Note the end of an answer.

        calls: whether it calls tools of the client.
        """
        with self._turn:
            one = self._conversations.get(conversation)
            if one is None:
                return
            one.last = self._clock()
            if not calls and one.began is not None:
                one.spans.append((one.began, one.last))
                one.began = None
                if len(one.spans) > _MOST_SPANS:
                    one.known_since = one.spans.pop(0)[1]

    def near_sessions(self) -> dict[str, float]:
        """Return the sessions of this machine, with the time of the last request or answer of each."""
        with self._turn:
            found: dict[str, float] = {}
            for one in self._conversations.values():
                if self._near.get(one.session):
                    found[one.session] = max(found.get(one.session, 0.0), one.last)
            return found

    def sessions(self) -> frozenset[str]:
        """Return all sessions."""
        with self._turn:
            return frozenset(one.session for one in self._conversations.values())

    def is_at_rest(self, others: Collection[str], patience: float) -> bool:
        """Return whether no conversation is at work, except in other sessions.

        patience: seconds of silence after which nobody waits for a conversation any longer.
        """
        now = self._clock()
        with self._turn:
            return not any(
                one.began is not None and now - one.last < patience
                for one in self._conversations.values()
                if one.session not in others
            )

    def was_at_rest(self, moment: float, others: Collection[str]) -> bool:
        """Return whether no conversation was at work at a moment, except in other sessions."""
        with self._turn:
            return moment >= self._began and not any(
                one.worked_at(moment) for one in self._conversations.values() if one.session not in others
            )
