"""Calls whose results a gateway on the same store took out of a window, learned from the stored journals."""

from collections.abc import Collection
from threading import Lock
from typing import Final

from pagein.model.entries import Entry, EpochEntry, PreviewEntry
from pagein.ports import JournalStore

_SESSIONS: Final = 8
"""Sessions that are looked at, those that were written last: a gateway writes its session before each call of its model.
The first look reads them whole, 0.05 ms for an entry."""


class EvictedCalls:
    """The evicted calls of the latest sessions, on any branch. Thread-safe.

    journals: None for a store without sessions.
    """

    def __init__(self, journals: JournalStore | None) -> None:
        self._journals = journals
        self._places: dict[str, int] = {}
        self._calls: set[str] = set()
        self._lock = Lock()

    def among(self, calls: Collection[str]) -> frozenset[str]:
        """Return those of the calls with an evicted or shortened part. Raises StoreError."""
        journals = self._journals
        if journals is None or not calls:
            return frozenset()
        with self._lock:
            for session in journals.latest(_SESSIONS):
                for place, entry in journals.news(session, self._places.get(session, 0)):
                    self._places[session] = place
                    if isinstance(entry, Entry) and isinstance(entry.body, EpochEntry | PreviewEntry):
                        self._calls.update(entry.body.calls)
            return frozenset(calls) & self._calls
