"""Whether the file of a store is still the one that was opened, and can still be read by whoever opens it anew.

A connection that is open goes on with the pages that it knows, long after its file was damaged, replaced or deleted; so who serves for
days asks from outside. `checking` reads everything and proves it; this only looks whether there is something to read.
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
"""What a person does about a damaged file."""
_WAIT: Final = 1.0
_ROOM: Final = 1 << 20
"""Bytes, less than one long output takes."""


class FileWatch:
    """Looks at one file, from any thread. It may be missing until it was seen for the first time."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._seen: tuple[int, int] | None = None

    def __call__(self, *, thorough: bool) -> str:
        """What is wrong with it and what to do, "" for nothing. thorough: every page is read, which takes a second for some 100 MB."""
        try:
            found = self.path.stat()
        except FileNotFoundError:
            return self._told("was deleted; start again what uses it") if self._seen is not None else ""
        except OSError as problem:
            return self._told(f"cannot be reached: {problem.strerror}")
        place = (found.st_dev, found.st_ino)
        if self._seen not in (None, place):
            return self._told("was replaced by another while it was in use; start again what uses it")
        self._seen = place
        if damage := _unreadable(self.path, thorough=thorough):
            return self._told(f"is damaged ({damage}): {REMEDY}")
        if not all(os.access(place, os.W_OK) for place in (self.path, self.path.parent)):
            return self._told("may not be written by this user; file and folder have to be")
        room = shutil.disk_usage(self.path.parent).free
        return self._told("stands on a disk that is full; make room there") if room < _ROOM else ""

    def _told(self, what: str) -> str:
        return f"the store {self.path} {what}"


def is_damage(problem: BaseException | None) -> bool:
    """Whether what was raised comes from a file that is no longer what SQLite wrote."""
    code = getattr(problem, "sqlite_errorcode", 0) or 0
    return isinstance(problem, sqlite3.Error) and code & 0xFF in (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB)


def _unreadable(path: Path, *, thorough: bool) -> str:
    if not path.stat().st_size:
        return ""  # just made: nobody has written yet
    try:
        # never made anew, and closed again at once
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
        # one that others keep busy is none that is damaged
        return str(problem) if is_damage(problem) or isinstance(problem, UnicodeDecodeError) else ""
    return ""
