"""Keep the objects of a store up to date while a gateway runs, in a thread of its own, off the path of calls."""

import logging
import threading
import time
from collections.abc import Callable
from typing import Final, Protocol

from pagein.errors import StoreError

_PAUSE: Final = 0.5
"""Seconds between two looks at the journals."""
_LONGEST_PAUSE: Final = 60.0
_SHARE: Final = 4.0
"""While calls run: seconds of rest for each second of work."""


class FollowsJournals(Protocol):
    """What makes objects from journals (`memory.indexer.Indexer`)."""

    def catch_up(
        self,
        within: float | None = None,
        stop: Callable[[], bool] = ...,
        tell: Callable[[int, int], None] | None = None,
    ) -> object:
        """Follow the journals to their end."""
        ...


class ObjectFollower:
    """A thread that lets an indexer catch up, again and again. A failing store costs only time."""

    def __init__(self, indexer: FollowsJournals, logger: logging.Logger | None = None) -> None:
        self._indexer = indexer
        self._logger = logger if logger is not None else logging.getLogger(__name__)
        self._ended = threading.Event()
        self._thread: threading.Thread | None = None
        self._busy: Callable[[], bool] = lambda: False

    def start(self, busy: Callable[[], bool]) -> None:
        """Begin to follow.

        busy: whether calls run now.
        """
        self._busy = busy
        self._thread = threading.Thread(target=self._run, name="pagein-objects", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """End the thread, after its current transaction."""
        self._ended.set()
        if self._thread is not None:
            self._thread.join()

    def _run(self) -> None:
        pause = _PAUSE
        while not self._ended.wait(pause):
            began = time.monotonic()

            def rest(_place: int, _last: int) -> None:
                nonlocal began
                if self._busy():
                    self._ended.wait(_SHARE * (time.monotonic() - began))
                began = time.monotonic()

            try:
                self._indexer.catch_up(stop=self._ended.is_set, tell=rest)
                pause = _PAUSE
            except StoreError as problem:
                if pause < _LONGEST_PAUSE:
                    self._logger.warning("objects of sessions are not up to date: %s", problem)
                pause = min(4 * pause, _LONGEST_PAUSE)
