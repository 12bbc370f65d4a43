"""Check whether a store's file is still the opened file, and still readable for a new connection.

An open connection continues with its cached pages, long after its file was damaged, replaced or deleted; so a server that runs for
days checks the file from outside. `store_check` verifies the whole content; this module only checks whether the file is readable.
"""

import contextlib
import os
import shutil
import sqlite3
from pathlib import Path
from typing import Final

REMEDY: Final = (
    "end what uses it, then pagein check --repair, which makes a new file of all that can be read; where that is nothing, move the file away: "
    "agents hold their own histories, and only what can be recalled of what left their windows is lost"
)
"""Advice to a user with a damaged file."""
_WAIT: Final = 1.0
_ROOM: Final = 1 << 20
"""Bytes; less than a single long output takes."""


class FileWatch:
    """Monitors a file, from any thread. The file may be missing until first seen."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._seen: tuple[int, int] | None = None

    def __call__(self, *, thorough: bool) -> str:
        """Return the problem with its remedy, "" for a sound file.

        thorough: read every page, which takes a second per 100 MB
        """
        try:
            found = self.path.stat()
        except FileNotFoundError:
            return self._report("was deleted; start again what uses it") if self._seen is not None else ""
        except OSError as problem:
            return self._report(f"cannot be reached: {problem.strerror}")
        place = (found.st_dev, found.st_ino)
        if self._seen not in (None, place):
            return self._report("was replaced by another while it was in use; start again what uses it")
        self._seen = place
        if damage := _unreadable(self.path, thorough=thorough):
            return self._report(f"is damaged ({damage}): {REMEDY}")
        if not all(os.access(place, os.W_OK) for place in (self.path, self.path.parent)):
            return self._report("may not be written by this user; file and folder have to be")
        room = shutil.disk_usage(self.path.parent).free
        return self._report("stands on a disk that is full; make room there") if room < _ROOM else ""

    def _report(self, what: str) -> str:
        return f"the store {self.path} {what}"


def is_damage(problem: BaseException | None) -> bool:
    """Return whether an exception means a corrupt SQLite file."""
    code = getattr(problem, "sqlite_errorcode", 0) or 0
    return isinstance(problem, sqlite3.Error) and code & 0xFF in (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB)


def _unreadable(path: Path, *, thorough: bool) -> str:
    if not path.stat().st_size:
        return ""  # just created: still without content
    try:
        # never creates the file; closed again at once
        with contextlib.closing(
            sqlite3.connect(f"{path.absolute().as_uri()}?mode=rw", uri=True, timeout=_WAIT)
        ) as fresh:
            for (name,) in fresh.execute(
                "SELECT name FROM sqlite_schema WHERE type = 'table' AND rootpage > 0"
            ).fetchall():
                quoted = name.replace('"', '""')
                fresh.execute(f'SELECT 1 FROM "{quoted}" LIMIT 1').fetchone()  # noqa: S608 -- a name out of the file, quoted
            if thorough:
                (told,) = fresh.execute("PRAGMA quick_check(1)").fetchone()
                return "" if told == "ok" else str(told)
    except (sqlite3.Error, UnicodeDecodeError, OSError) as problem:
        # a busy file is not a damaged file
        return str(problem) if is_damage(problem) or isinstance(problem, UnicodeDecodeError) else ""
    return ""
