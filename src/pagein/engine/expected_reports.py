"""The reports of answers that a session expects: its next request waits for the report of the answer that it brings back.

A client may send its next request before the answer to the last one is journaled: it has the answer first. The provider's usage would then
stand beside the branch and not on it, and later requests of the branch would know neither the size of their prompts nor what the
cache holds. So a request that brings an answer back waits for the report of that answer.
"""

import threading
from typing import Final

from pagein.engine.intake.message_chain import Transcript
from pagein.engine.prepared_request import PreparedRequest
from pagein.model.entries import EntryId

_PATIENCE: Final = 1.0
"""Most seconds to wait for a report."""
_LESS: Final = 0.25
"""After a wait in vain the next one is shorter by this factor: some upstreams always end an answer long after its last event."""
_LEAST: Final = 1 / 16
"""Least part of the longest wait: a report that is under way comes within milliseconds, and is waited for again."""
MOST_WAITING: Final = 2
"""Requests of all sessions that wait at once: each holds a thread, which the decisions of other sessions need."""
_MOST: Final = 64
"""Requests whose answers are expected at once."""


class ExpectedReports:
    """Requests whose answers will be reported. Call the methods with the lock held.

    lock: the session's; released while a request waits.
    seats: of the requests that wait, shared by the sessions of an engine.
    """

    def __init__(self, lock: threading.RLock, seats: threading.Semaphore) -> None:
        self._change = threading.Condition(lock)
        self._seats = seats
        self._share = 1.0  # of the longest wait
        self._last: dict[EntryId, tuple[EntryId, int]] = {}

    def expect(self, entry: EntryId, asked: PreparedRequest) -> None:
        """Expect the report of the answer to a request.

        entry: of the request in the journal.
        """
        self._last[entry] = asked.last, asked.messages
        if len(self._last) > _MOST:  # their clients hung up before anything was sent
            del self._last[next(iter(self._last))]

    def note_report(self, entry: EntryId | None) -> None:
        """Note that the answer to a request was reported."""
        if entry is not None and self._last.pop(entry, None) is not None:
            self._change.notify_all()

    def wait_for_answers(self, script: Transcript, most: float) -> bool:
        """Wait for the reports of the answers that these messages bring back. Return whether other requests had their turns meanwhile.

        A report that is too late is not waited for again.

        most: seconds to wait at most, as the caller has time.
        """
        wanted = [entry for entry, (last, count) in self._last.items() if _has_answer(script, last, count)]
        if not wanted or not self._seats.acquire(blocking=False):
            return False
        try:
            seconds = self._share * min(_PATIENCE, most)
            is_told = self._change.wait_for(lambda: self._last.keys().isdisjoint(wanted), seconds)
        finally:
            self._seats.release()
        self._share = 1.0 if is_told else max(_LEAST, _LESS * self._share)
        for entry in wanted:
            self._last.pop(entry, None)
        return True


def _has_answer(script: Transcript, last: EntryId, count: int) -> bool:
    """Return whether the messages continue with an answer after this many, of which `last` is the last."""
    units = script.units
    return len(units) > count > 0 and units[count - 1].name == last and units[count].message.role == "assistant"
