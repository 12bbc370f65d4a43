"""Keep the layers over a store up to date while a gateway runs, in a thread of its own, off the path of calls."""

import logging
import threading
import time
from collections.abc import Callable, Sequence
from typing import Final

from pagein.errors import StoreError
from pagein.ports import DerivedLayer

_PAUSE: Final = 0.5
"""Seconds between two looks at the store."""
_LONGEST_PAUSE: Final = 60.0
_SHARE: Final = 4.0
"""While calls run: seconds of rest for each second of work."""


class LayerFollower:
    """A thread that lets layers catch up, one after the other, again and again. A failing store costs only time."""

    def __init__(self, layers: Sequence[DerivedLayer], logger: logging.Logger | None = None) -> None:
        self._layers = tuple(layers)
        self._logger = logger if logger is not None else logging.getLogger(__name__)
        self._ended = threading.Event()
        self._thread: threading.Thread | None = None
        self._busy: Callable[[], bool] = lambda: False

    def start(self, busy: Callable[[], bool]) -> None:
        """Begin to follow.

        busy: whether calls run now.
        """
        self._busy = busy
        self._thread = threading.Thread(target=self._run, name="pagein-layers", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """End the thread, after its current transaction."""
        self._ended.set()
        if self._thread is not None:
            self._thread.join()

    def _run(self) -> None:
        pause = _PAUSE
        while not self._ended.wait(pause):
            failed = [
                layer.name for layer in self._layers if not self._is_followed(layer, quiet=pause >= _LONGEST_PAUSE)
            ]
            pause = min(4 * pause, _LONGEST_PAUSE) if failed else _PAUSE

    def _is_followed(self, layer: DerivedLayer, *, quiet: bool) -> bool:
        began = time.monotonic()

        def rest(_place: int, _last: int) -> None:
            nonlocal began
            if self._busy():
                self._ended.wait(_SHARE * (time.monotonic() - began))
            began = time.monotonic()

        try:
            layer.catch_up(stop=self._ended.is_set, tell=rest)
        except StoreError as problem:
            if not quiet:
                self._logger.warning("the layer %s is not up to date: %s", layer.name, problem)
            return False
        return True
