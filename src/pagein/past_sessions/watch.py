"""The watch: remember the recordings of working agents, by repeated looks at their files.

Rules of this file
------------------
1. A changed file is read whole, because its last line may change what earlier lines mean (a rewind). So the pause after
   a round is a multiple of the time of the round, and the watch takes a small part of one core at most.
2. A failure of the store does not end the watch: the next round tries again.
"""

import time
from collections.abc import Callable, Generator
from contextlib import suppress
from typing import Final

from pagein.errors import StoreError
from pagein.past_sessions.intake import Intake
from pagein.past_sessions.report import RememberReport

_PAUSE: Final = 2.0
"""Shortest pause between two rounds, seconds."""
_REST: Final = 10.0
"""The pause after a round in multiples of its duration."""
_LONGEST: Final = 60.0


def rounds(
    intake: Intake,
    look: Callable[[], RememberReport],
    *,
    sleep: Callable[[float], object] = time.sleep,
) -> Generator[RememberReport | StoreError, None, None]:
    """Look again and again, and yield each report with news, or a failure of the store. Ends when it is closed.

    look: takes what is new, with `holds`.
    """
    told: StoreError | None = None
    try:
        while True:
            began = time.monotonic()
            try:
                report = look()
            except StoreError as problem:
                if told is None:
                    yield problem
                told = problem
            else:
                told = None
                if report.new or report.grown or report.failed:
                    yield report
            sleep(min(max(_PAUSE, _REST * (time.monotonic() - began)), _LONGEST))
    finally:
        with suppress(StoreError):  # then the files are read once more
            intake.flush()
