"""The window of the agent that started this process, read from the agent's transcript.

Rules of this file
------------------
1. Any doubt gives nothing: the model then gets the text.
2. Only a transcript with the current call counts, because the call shows the model's branch. opencode tells no id of
   a call, so there the call is known by its tool and its arguments. Claude Code
   names a session when it starts the server, and goes on in another one when the user resumes it; so the call is looked
   for in the transcripts of the project that were written last.
"""

import re
import sqlite3
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from threading import Lock
from typing import Final, Protocol, TypeAlias, TypeVar

from pagein.client_windows.claude_code import ClaudeCodeTranscript
from pagein.client_windows.codex import CodexRollout
from pagein.client_windows.opencode import OpencodeDatabase, database_file, may_change_requests
from pagein.client_windows.transcript_tail import Row, TranscriptTail
from pagein.engine.log.standing_receipts import StandingReceipt
from pagein.engine.sent_windows import ToolRequest

_THREAD: Final = re.compile(r"[0-9A-Za-z-]{8,64}")
_NOT_IN_NAMES: Final = re.compile(r"[^0-9A-Za-z]")
"""What Claude Code replaces in the path of a project, to name the folder of its transcripts."""
_MOST: Final = 3
"""Files of one kind that are looked at for one call, those that were written last."""
_KEPT: Final = 32
_PATIENCE: Final = 0.4
"""Seconds for which an agent may take to write a call down. Claude Code takes up to 0.1."""
_PAUSE: Final = 0.02

T = TypeVar("T")
_Found: TypeAlias = tuple[Path, Mapping[str, StandingReceipt]]
"""The transcript of a call, and the receipts that stand at the call."""


class TranscriptRows(Protocol):
    """The rows of a transcript read so far."""

    def take(self, row: Row | None) -> None:
        """Take the next row; None for a row without a JSON object."""
        ...

    def standing(self, call_id: str) -> Mapping[str, StandingReceipt] | None:
        """Return the receipts that stand at a call, by the ids of their calls; None if the call is not here yet."""
        ...


@dataclass(slots=True)
class _FilePart:
    """A file, and the part read so far."""

    make: Callable[[], TranscriptRows]
    tail: TranscriptTail
    rows: TranscriptRows

    def look(self) -> None:
        """Take the new rows."""
        while (news := self.tail.news()) is None:
            self.rows = self.make()
        for row in news:
            self.rows.take(row)


class OwnWindow:
    """The window of this process's agent. Thread-safe.

    environment: of this process, as the agent started it.
    home: the user's home folder.
    """

    def __init__(self, environment: Mapping[str, str], home: Path, *, patience: float = _PATIENCE) -> None:
        self._environment = environment
        self._home = home
        self._patience = patience
        self._followed: dict[Path, _FilePart] = {}
        self._lock = Lock()

    def standing(self, asked: ToolRequest, thread: str = "") -> Mapping[str, StandingReceipt]:
        """Return the receipts visible at a call, by the ids of the answered calls."""
        if not asked.id:
            return self._in_database(asked) or {}
        found = self._found(asked.id, thread)
        return {} if found is None else found[1]

    def transcript(self, asked: ToolRequest, thread: str = "") -> tuple[Path, str] | None:
        """Return the file with the transcript of a call, and the session in a database, "" in another file; or None."""
        if asked.id:
            found = self._found(asked.id, thread)
            return None if found is None else (found[0], "")
        file = database_file(self._environment, self._home)
        session = None if file is None else self._awaited(lambda: OpencodeDatabase(file).caller(asked))
        return None if file is None or not session else (file, session)

    def _in_database(self, asked: ToolRequest) -> Mapping[str, StandingReceipt] | None:
        """Return the receipts visible at a call without an id, from the database of the agent; None in doubt."""
        file = database_file(self._environment, self._home)
        try:
            if file is None or may_change_requests(self._environment, self._home, Path.cwd()):
                return None
        except (OSError, ValueError):
            return None
        return self._awaited(lambda: OpencodeDatabase(file).standing(asked))

    def _awaited(self, look: Callable[[], T | None]) -> T | None:
        """Return what a look at a database finds, as soon as the agent wrote the call down; None in doubt."""
        try:
            end, found = time.monotonic() + self._patience, look()
            while found is None and time.monotonic() < end:
                time.sleep(_PAUSE)
                found = look()
        except (OSError, ValueError, KeyError, TypeError, sqlite3.Error):
            return None
        return found

    def _found(self, call_id: str, thread: str) -> _Found | None:
        try:
            with self._lock:
                return self._look(call_id, thread)
        except (OSError, ValueError):
            return None

    def _look(self, call_id: str, thread: str) -> _Found | None:
        end = time.monotonic() + self._patience
        while True:
            files = list(self._files(thread))  # anew each time: the file of the call is the one that was just written
            for file, make in files:
                one = self._follow(file, make)
                one.look()
                found = one.rows.standing(call_id)
                if found is not None:
                    return file, found
            if not files or time.monotonic() > end:
                return None
            time.sleep(_PAUSE)

    def _files(self, thread: str) -> Iterator[tuple[Path, Callable[[], TranscriptRows]]]:
        project = self._environment.get("CLAUDE_PROJECT_DIR", "")
        if project:
            folder = self._folder("CLAUDE_CONFIG_DIR", ".claude") / "projects" / _NOT_IN_NAMES.sub("-", project)
            for pattern in ("*.jsonl", "*/subagents/*.jsonl"):
                for file in islice(_newest_first(folder.glob(pattern)), _MOST):
                    yield file, ClaudeCodeTranscript
        if _THREAD.fullmatch(thread):
            folder = self._folder("CODEX_HOME", ".codex")
            if not _shortens(folder / "config.toml"):
                for file in islice((folder / "sessions").glob(f"*/*/*/rollout-*-{thread}.jsonl"), _MOST):
                    yield file, CodexRollout

    def _folder(self, variable: str, usual: str) -> Path:
        told = self._environment.get(variable, "").strip()
        return Path(told) if told else self._home / usual

    def _follow(self, file: Path, make: Callable[[], TranscriptRows]) -> _FilePart:
        if len(self._followed) >= _KEPT and file not in self._followed:
            self._followed.clear()
        return self._followed.setdefault(file, _FilePart(make, TranscriptTail(file), make()))


def _newest_first(files: Iterator[Path]) -> list[Path]:
    return sorted(files, key=lambda one: one.stat().st_mtime, reverse=True)


def _shortens(settings: Path) -> bool:
    """Return whether codex has a setting for the shown length of a result."""
    return settings.is_file() and b"tool_output_token_limit" in settings.read_bytes()
