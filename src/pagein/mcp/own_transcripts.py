"""The proofs and the search hits in the calling agent's transcript, also from before a compaction.

Rules of this file
------------------
1. A search waits for the transcript only a short time, and then searches what the store has. The rest is there for the next
   search.
2. After a failure, the search finds what it would find without transcripts.
"""

import contextlib
from collections.abc import Callable, Mapping
from pathlib import Path
from threading import Lock, Thread
from typing import Final, Protocol

from pagein.engine.log.standing_receipts import StandingReceipt
from pagein.engine.sent_windows import ToolRequest

_PATIENCE: Final = 3.0
"""Seconds for which a search waits. A transcript of 10 MB takes about as long the first time."""


class TranscriptReader(Protocol):
    """Reads the transcripts that agents write."""

    def standing(self, asked: ToolRequest, thread: str) -> Mapping[str, StandingReceipt]:
        """Return the receipts visible at a call, by the ids of the answered calls. Raises nothing."""
        ...

    def transcript(self, asked: ToolRequest, thread: str) -> tuple[Path, str] | None:
        """Return the file with the transcript of a call, and the session in a database, "" in another file; None in doubt.

        Raises nothing.
        """
        ...


class OwnTranscripts:
    """The transcripts of the calling agents. Thread-safe.

    take: takes a transcript into the store, given its file, and the session in a database.
    """

    def __init__(self, reader: TranscriptReader, take: Callable[[Path, str], object]) -> None:
        self._reader = reader
        self._take = take
        self._one_at_a_time = Lock()

    def standing(self, asked: ToolRequest, thread: str) -> Mapping[str, StandingReceipt]:
        """Return the receipts visible at a call, by the ids of the answered calls. Raises nothing."""
        return self._reader.standing(asked, thread)

    def catch_up(self, asked: ToolRequest, thread: str) -> None:
        """Store the present content of the transcript with a call. Raises nothing."""
        found = self._reader.transcript(asked, thread)
        if found is None:
            return
        work = Thread(target=self._work, args=found, name="mcp-transcript", daemon=True)
        work.start()
        work.join(_PATIENCE)

    def _work(self, file: Path, session: str) -> None:
        with self._one_at_a_time, contextlib.suppress(Exception):  # rule 2
            self._take(file, session)
