"""Apply the retention of sessions while a gateway runs, in a thread of its own, when no call runs."""

import logging
import threading
import time
from collections.abc import Callable, Sequence
from typing import Final, TypeAlias

from pagein.errors import StoreError

_FIRST: Final = 60.0
"""Seconds from the gateway's start to the first look."""
_PAUSE: Final = 3_600.0
"""Seconds between two looks."""
_BUSY: Final = 5.0
"""Seconds until the next look while calls run."""

_SHORT: Final = 0.2
"""Seconds between two questions whether calls still run, in the middle of a removal."""

Apply: TypeAlias = Callable[[float, Callable[[], bool]], Sequence[str]]
"""Applies the retention at a time, in seconds since 1970, and returns what there is to tell, in words.

It calls the function between two transactions; the function waits while calls run, and returns whether to go on.
"""


class SessionKeeper:
    """A thread that applies the retention of sessions, again and again. A failing store costs only time.

    first, pause: seconds to the first look, and between looks
    """

    def __init__(
        self, apply: Apply, logger: logging.Logger | None = None, *, first: float = _FIRST, pause: float = _PAUSE
    ) -> None:
        self._apply = apply
        self._logger = logger if logger is not None else logging.getLogger(__name__)
        self._first = first
        self._pause = pause
        self._ended = threading.Event()
        self._thread: threading.Thread | None = None
        self._busy: Callable[[], bool] = lambda: False

    def start(self, busy: Callable[[], bool]) -> None:
        """Begin.

        busy: whether calls run now.
        """
        self._busy = busy
        self._thread = threading.Thread(target=self._run, name="pagein-retention", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """End the thread, after its current transaction."""
        self._ended.set()
        if self._thread is not None:
            self._thread.join()

    def _run(self) -> None:
        pause = self._first
        while not self._ended.wait(pause):
            if self._busy():
                pause = min(_BUSY, self._pause)
                continue
            pause = self._pause
            try:
                for words in self._apply(time.time(), self._wait_for_calls):  # noqa: TID251 - the rim reads the clock
                    self._logger.warning("%s", words)
            except StoreError as problem:
                self._logger.warning("old sessions were not looked at: %s", problem)

    def _wait_for_calls(self) -> bool:
        """Wait until no call runs. Return False if the gateway ends."""
        while self._busy():
            if self._ended.wait(_SHORT):
                return False
        return not self._ended.is_set()
