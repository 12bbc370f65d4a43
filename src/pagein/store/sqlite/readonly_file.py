"""A SQLite file that may not be written, opened to be looked at.

Rules of this file
------------------
1. Nothing is made and nothing is changed, neither in the file nor beside it.
2. What the file's write-ahead log holds is part of it. SQLite reads a log only where it can use a shared index (`-shm`) beside it;
   where it cannot, file and log are copied to a private folder, which is gone as soon as the copy is open.
3. A file without a log is opened as one that nobody changes (`immutable`): SQLite would want to make a log otherwise.
"""

import contextlib
import shutil
import sqlite3
import tempfile
from pathlib import Path
from typing import Final

_REFUSED: Final = frozenset(
    (sqlite3.SQLITE_READONLY, sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_PERM, sqlite3.SQLITE_AUTH)
)
LOG: Final = "-wal"
"""What the name of a write-ahead log has behind that of its file."""


def is_refusal(problem: BaseException) -> bool:
    """Whether this says that the file or its folder may not be written, and nothing of what is in it."""
    if isinstance(problem, sqlite3.Error):
        return (getattr(problem, "sqlite_errorcode", 0) or 0) & 0xFF in _REFUSED
    return isinstance(problem, OSError)


def open_readonly(path: Path, timeout: float) -> sqlite3.Connection:
    """A connection that reads the file as it is by now. Raises sqlite3.Error or OSError where it cannot be read."""
    if not _has_log(path):
        return _try_open(path, "immutable=1", timeout)
    try:
        return _try_open(path, "mode=ro", timeout)
    except sqlite3.Error as problem:
        if not is_refusal(problem):
            raise
    return _copy(path, timeout)


def _has_log(path: Path) -> bool:
    try:
        return path.with_name(path.name + LOG).stat().st_size > 0
    except FileNotFoundError:
        return False


def _try_open(path: Path, how: str, timeout: float) -> sqlite3.Connection:
    connection = sqlite3.connect(
        f"{path.absolute().as_uri()}?{how}", uri=True, isolation_level=None, check_same_thread=False, timeout=timeout
    )
    try:
        connection.execute("SELECT count(*) FROM sqlite_schema").fetchone()
    except BaseException:
        connection.close()
        raise
    return connection


def _copy(path: Path, timeout: float) -> sqlite3.Connection:
    with tempfile.TemporaryDirectory(prefix="pagein-") as folder:
        copy = Path(folder) / "copy"
        shutil.copyfile(path, copy)
        shutil.copyfile(path.with_name(path.name + LOG), copy.with_name(copy.name + LOG))
        with contextlib.closing(sqlite3.connect(copy, isolation_level=None)) as whole:
            # so that one file holds all of it
            whole.execute("PRAGMA journal_mode=DELETE").fetchone()
        return _try_open(copy, "immutable=1", timeout)
