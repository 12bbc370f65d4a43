"""Open a SQLite file read-only when it may not be written.

Rules of this file
------------------
1. No file is created or changed, neither the database nor any file beside it.
2. The content of the write-ahead log is part of the database. SQLite reads a log only with a shared index (`-shm`) beside it;
   otherwise file and log are copied to a private folder, which is deleted as soon as the copy is open.
3. A file without a log is opened as `immutable`, because SQLite would create a log otherwise.
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
"""Suffix of a write-ahead log's name after the database's file name."""


def is_refusal(problem: BaseException) -> bool:
    """Return whether a failure means missing write permission for the file or its folder."""
    if isinstance(problem, sqlite3.Error):
        return (getattr(problem, "sqlite_errorcode", 0) or 0) & 0xFF in _REFUSED
    return isinstance(problem, OSError)


def open_readonly(path: Path, timeout: float) -> sqlite3.Connection:
    """Return a read-only connection to the file's current content.

    Raises sqlite3.Error or OSError if the file is unreadable.
    """
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
            # merges the log into the file
            whole.execute("PRAGMA journal_mode=DELETE").fetchone()
        return _try_open(copy, "immutable=1", timeout)
