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
"""Seconds to wait for a report: half of the time that a decision has by default."""
_MOST: Final = 64
"""Requests whose answers are expected at once."""


class ExpectedReports:
    """Requests whose answers will be reported. Call the methods with the lock held.

    lock: the session's; released while a request waits.
    """

    def __init__(self, lock: threading.RLock) -> None:
        self._change = threading.Condition(lock)
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

    def wait_for_answers(self, script: Transcript) -> bool:
        """Wait for the reports of the answers that these messages bring back. Return whether there was anything to wait for.

        A report that is too late is not waited for again.
        """
        wanted = [entry for entry, (last, count) in self._last.items() if _has_answer(script, last, count)]
        if not self._change.wait_for(lambda: self._last.keys().isdisjoint(wanted), _PATIENCE):
            for entry in wanted:
                self._last.pop(entry, None)
        return bool(wanted)


def _has_answer(script: Transcript, last: EntryId, count: int) -> bool:
    """Return whether the messages continue with an answer after this many, of which `last` is the last."""
    units = script.units
    return len(units) > count > 0 and units[count - 1].name == last and units[count].message.role == "assistant"
