"""Pause the garbage collector while a session of a hundred thousand messages is loaded, or a command answers and ends."""

import gc
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

_MANY: Final = 200_000
"""Least number of new values for which later collections skip them."""
_collecting = threading.Lock()
_paused = 0


@contextmanager
def pause_collection() -> Iterator[None]:
    """Pause garbage collection: with a million new permanent values, collection takes half of the time.

    Later collections skip these values too. Reference counts free them, because they form no cycles.
    """
    global _paused  # noqa: PLW0603 -- there is one collector for all threads
    with _collecting:
        was_on = _paused > 0 or gc.isenabled()
        _paused += 1
        gc.disable()
    try:
        yield
    finally:
        with _collecting:
            _paused -= 1
            if not _paused and was_on:
                if gc.get_count()[0] > _MANY:
                    gc.freeze()
                gc.enable()
