"""The interpreter's search for garbage, held off where a session of a hundred thousand messages is taken up."""

import gc
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

_MANY: Final = 200_000
"""Values that were made at once, from which on the search passes them over for good."""
_collecting = threading.Lock()
_paused = 0


@contextmanager
def pause_collection() -> Iterator[None]:
    """A time in which nobody looks for garbage: where a million values are made that all stay, that is half of the work.

    Nor are these looked at afterwards: they are let go of when nobody holds them any more, as they stand in no circles.
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
