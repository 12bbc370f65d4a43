"""Keep the layers over a store up to date while a gateway runs, in a thread of its own, in the pauses between calls.

The thread shares the interpreter with the calls, so any work beside a call makes the call slower. No answer depends on this
thread: commands and tools bring the layers up to the store before they answer.
"""

import logging
import threading
import time
from collections.abc import Callable, Sequence
from typing import Final

from pagein.errors import StoreError
from pagein.ports import DerivedLayer

_PAUSE: Final = 0.25
"""Seconds between two looks at the store."""
_LONGEST_PAUSE: Final = 15.0
"""Seconds between two looks at a store that fails."""
_LONGEST_WAIT: Final = 30.0
"""Seconds of calls without a pause after which one layer gets a slice of work."""
_SLICE: Final = 0.02
"""Seconds of such a slice."""


class LayerFollower:
    """A thread that lets layers catch up in turn, again and again. A failing store costs only time.

    longest_wait: seconds of calls without a pause after which one layer gets a slice of work.
    """

    def __init__(
        self,
        layers: Sequence[DerivedLayer],
        logger: logging.Logger | None = None,
        *,
        longest_wait: float = _LONGEST_WAIT,
    ) -> None:
        self._layers = tuple(layers)
        self._logger = logger if logger is not None else logging.getLogger(__name__)
        self._longest_wait = longest_wait
        self._ended = threading.Event()
        self._thread: threading.Thread | None = None
        self._busy: Callable[[], bool] = lambda: False
        self._problems: dict[str, str] = {}
        self._next = 0

    @property
    def problem(self) -> str:
        """Why layers do not follow the store, with the remedy; "" if they do."""
        return "; ".join(words for _, words in sorted(self._problems.items()))

    def start(self, busy: Callable[[], bool]) -> None:
        """Begin to follow.

        busy: whether a call runs now, or ended a moment ago.
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
        pause, worked = _PAUSE, time.monotonic()
        while not self._ended.wait(pause):
            if self._busy():
                if time.monotonic() - worked < self._longest_wait:
                    continue
                is_followed = self._follow(self._take_turn(), within=_SLICE)
            else:
                is_followed = all(list(map(self._follow, self._layers)))  # each, also behind one that fails
            worked = time.monotonic()
            pause = _PAUSE if is_followed else min(4 * pause, _LONGEST_PAUSE)

    def _take_turn(self) -> DerivedLayer:
        self._next += 1
        return self._layers[self._next % len(self._layers)]

    def _follow(self, layer: DerivedLayer, within: float | None = None) -> bool:
        """Let a layer catch up, until a call begins or for some seconds. Return whether it could."""
        try:
            layer.catch_up(within, self._ended.is_set if within is not None else self._must_rest)
        except Exception as problem:  # noqa: BLE001 - a layer that fails must stop no other, and no call
            is_of_store = isinstance(problem, StoreError)
            why = str(problem) if is_of_store else f"{type(problem).__name__}: {problem}"
            remedy = "it is tried again" if is_of_store else f"pagein reindex {layer.name} makes the layer again"
            words = f"the layer {layer.name} does not follow the store ({why}): pagein check tells more, and {remedy}"
            if self._problems.get(layer.name) != words:
                self._logger.warning("the layer %s is not up to date: %s", layer.name, why)
            self._problems[layer.name] = words
            return False
        self._problems.pop(layer.name, None)
        return True

    def _must_rest(self) -> bool:
        return self._ended.is_set() or self._busy()
