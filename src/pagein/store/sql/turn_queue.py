"""Threads of one process that share a store take turns, in the order in which they came.

Rules of this file
------------------
1. A thread that works is waited for: it is one of ours, and it comes to its end. So who waits is never told that others are at work
   while only this process is.
2. Another process is waited for once, not by one thread after the other: when the thread at the front gives it up, all that wait
   behind it give it up as well (`refuse`).
3. A thread that hangs is given up too, after `longest` seconds in which nobody's turn ended.
"""

import threading
from collections import deque


class TurnLock:
    """A lock that is given in the order in which it was asked for. The thread that has it may take it again.

    longest: seconds that one turn may last before those who wait are refused; None: as long as it wants.
    """

    def __init__(self, longest: float | None = None) -> None:
        self._longest = longest
        self._changed = threading.Condition(threading.Lock())
        self._waiting: deque[object] = deque()
        self._owner: int | None = None
        self._depth = 0
        self._refusals = 0
        self._turns = 0

    def acquire(self) -> bool:
        """Wait for a turn. False where it was refused."""
        me = threading.get_ident()
        with self._changed:
            if self._owner == me:
                self._depth += 1
                return True
            ticket = object()
            self._waiting.append(ticket)
            refusals = self._refusals
            while self._owner is not None or self._waiting[0] is not ticket:
                turns = self._turns
                moved = self._changed.wait(self._longest)
                if self._refusals != refusals or (not moved and self._turns == turns):
                    self._waiting.remove(ticket)
                    self._changed.notify_all()
                    return False
            self._waiting.popleft()
            self._owner, self._depth = me, 1
        return True

    def release(self) -> None:
        """Let the next one have its turn."""
        with self._changed:
            self._depth -= 1
            if not self._depth:
                self._owner = None
                self._turns += 1
                self._changed.notify_all()

    def refuse(self) -> None:
        """Refuse all who wait now: what they wait for cannot be had."""
        with self._changed:
            self._refusals += 1
            self._changed.notify_all()
