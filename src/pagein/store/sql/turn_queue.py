"""Queue the threads of a process that share a store, in arrival order.

Rules of this file
------------------
1. A thread waits for a working thread of its own process, because that thread will finish. So a thread never gets "others are at work"
   while only its own process is at work.
2. Only the thread at the front waits for another process. When it gives up, every thread queued behind it gives up as well
   (`refuse`).
3. Threads stop waiting for a hanging thread after `longest` seconds without the end of any turn.
"""

import threading
from collections import deque


class TurnLock:
    """A reentrant lock granted in request order.

    owner: identity of the thread at work; None for none. A thread that finds itself here need not ask for a turn.
    longest: seconds that a turn may last before waiting threads are refused; None for no limit
    """

    def __init__(self, longest: float | None = None) -> None:
        self._longest = longest
        self._changed = threading.Condition(threading.Lock())
        self._waiting: deque[object] = deque()
        self.owner: int | None = None
        self._depth = 0
        self._refusals = 0
        self._turns = 0

    def acquire(self) -> bool:
        """Wait for a turn. Return False if refused."""
        me = threading.get_ident()
        with self._changed:
            if self.owner == me:
                self._depth += 1
                return True
            ticket = object()
            self._waiting.append(ticket)
            refusals = self._refusals
            while self.owner is not None or self._waiting[0] is not ticket:
                turns = self._turns
                moved = self._changed.wait(self._longest)
                if self._refusals != refusals or (not moved and self._turns == turns):
                    self._waiting.remove(ticket)
                    self._changed.notify_all()
                    return False
            self._waiting.popleft()
            self.owner, self._depth = me, 1
        return True

    def release(self) -> None:
        """Give the turn to the next thread."""
        with self._changed:
            self._depth -= 1
            if not self._depth:
                self.owner = None
                self._turns += 1
                self._changed.notify_all()

    def refuse(self) -> None:
        """Refuse every thread waiting now, because the resource is unavailable."""
        with self._changed:
            self._refusals += 1
            self._changed.notify_all()
