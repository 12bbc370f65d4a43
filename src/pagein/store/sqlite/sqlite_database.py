"""One SQLite file: opened lazily, private to the user, brought up to date, used in transactions.

Rules of this file
------------------
1. The file, and a folder that is made for it, are readable by the user alone, from their first moment on: the file is made
   before SQLite sees it, and SQLite gives its `-wal` and `-shm` the same mode.
2. Every write is a transaction begun with BEGIN IMMEDIATE, so two writers queue up instead of failing at commit.
3. WAL with synchronous=NORMAL: a commit survives the death of the process at any point; at power loss the last commits may
   be lost, never the file.
4. Whatever SQLite or the disk raises leaves here as StoreError.
5. A file that is there and may not be written is read all the same (`readonly`); writing to it is refused in words.
"""

import contextlib
import os
import sqlite3
import stat
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from pagein.errors import StoreError
from pagein.store.sql.sqlite_schema import STORE, Schema
from pagein.store.sql.turn_queue import TurnLock
from pagein.store.sqlite.readonly_file import is_refusal, open_readonly

_PATIENCE: Final = 5.0
_LONGEST: Final = 30.0
"""Seconds that one thread may keep the connection, where somebody's patience is limited. None hangs for so long but by a failing disk."""
_MAGIC: Final = b"SQLite format 3\0"
_WAL_TRIES: Final = 100
_WAL_PAUSE: Final = 0.05
_REMEDY: Final = "let this user write both the file and its folder, or copy the file elsewhere"
_OUTER: Final = ("BEGIN IMMEDIATE", "COMMIT", ("ROLLBACK",))
_INNER: Final = ("SAVEPOINT inner_write", "RELEASE inner_write", ("ROLLBACK TO inner_write", "RELEASE inner_write"))


class SqliteDatabase:
    """A connection that several threads may share.

    schema: the tables that the file is to have. patience: seconds that another process may keep us from writing; then StoreError is
    raised, also for all threads that wait behind the one that did. None: 5. Threads of this process wait for each other (`queue`);
    longest: for so many seconds while nobody's turn ends. None: without end, or 30 where a patience is given.
    looks: nothing is written, also where that would be possible.
    """

    def __init__(
        self,
        path: Path,
        schema: Schema = STORE,
        patience: float | None = None,
        longest: float | None = None,
        *,
        looks: bool = False,
    ) -> None:
        self.path = path
        self._looks = looks
        self._schema = schema
        self._patience = patience
        self._queue = TurnLock(_LONGEST if longest is None and patience is not None else longest)
        self._connection: sqlite3.Connection | None = None
        self._closed = False

    @contextlib.contextmanager
    def open_reader(self) -> Iterator[sqlite3.Connection]:
        """The connection, for queries."""
        with self._turn(), self._errors():
            yield self._opened()

    @contextlib.contextmanager
    def open_writer(self) -> Iterator[sqlite3.Connection]:
        """The connection inside a transaction, which is committed at the end or, on any exception, undone.

        Within another one of the same thread it is part of that one: undone alone where it fails, and kept only with it.
        """
        with self._turn():
            with self._errors():
                connection = self._opened()
                if self._looks:
                    raise StoreError(f"store {self.path.name} may only be read here: {_REMEDY}")
                begin, commit, undo = _INNER if connection.in_transaction else _OUTER
                self._begun(connection, begin)
            # What the caller does in between may raise what it likes; only SQLite's own errors are the store's.
            try:
                yield connection
            except BaseException as problem:
                _undone(connection, undo)
                if isinstance(problem, sqlite3.Error):
                    raise StoreError(f"store {self.path.name}: {problem}") from problem
                raise
            with self._errors():
                _commit(connection, commit, undo)

    @contextlib.contextmanager
    def snapshot(self) -> Iterator[None]:
        """A time in which all reads of this thread see the file as it was at its beginning."""
        with self._turn():
            with self._errors():
                connection = self._opened()
                connection.execute("BEGIN")
                connection.execute("SELECT 1 FROM sqlite_schema").fetchone()  # it begins with the first read
            try:
                yield
            finally:
                _undone(connection, ("ROLLBACK",))

    def close(self) -> None:
        """Close the file. Later uses raise StoreError."""
        if not self._queue.acquire():
            self._closed = True  # somebody hangs in it, so it is not taken away; the end of the process does that
            return
        try:
            self._closed = True
            if self._connection is not None:
                self._connection.close()
                self._connection = None
        finally:
            self._queue.release()

    @contextlib.contextmanager
    def _turn(self) -> Iterator[None]:
        if not self._queue.acquire():
            raise StoreError(f"store {self.path.name}: others are at work on it")
        try:
            yield
        finally:
            self._queue.release()

    def _begun(self, connection: sqlite3.Connection, begin: str) -> None:
        try:
            connection.execute(begin)
        except sqlite3.OperationalError as problem:
            if (
                problem.sqlite_errorcode & 0xFF == sqlite3.SQLITE_BUSY
            ):  # another process: who waits behind us would wait for it anew
                self._queue.refuse()
            raise

    @contextlib.contextmanager
    def _errors(self) -> Iterator[None]:
        try:
            yield
        except (sqlite3.Error, OSError, UnicodeDecodeError) as problem:
            # the last one comes from the words in which SQLite quotes a damaged file
            raise StoreError(f"store {self.path.name}: {problem}") from problem

    def _opened(self) -> sqlite3.Connection:
        if self._closed:
            raise StoreError(f"store {self.path.name} is closed")
        if self._connection is None:
            self._connection = self._looking() if self._looks else self._working()
        return self._connection

    def _working(self) -> sqlite3.Connection:
        """A connection that reads and writes; where that is not possible, one that reads what is there."""
        try:
            _make_private(self.path)
            connection = sqlite3.connect(self.path, isolation_level=None, check_same_thread=False)
            try:
                connection.execute(f"PRAGMA busy_timeout={round(self._wait * 1000)}")
                _set_up(connection, self.path.name, self._schema)
            except BaseException:
                connection.close()
                raise
        except (sqlite3.Error, OSError) as problem:
            if not is_refusal(problem) or not self.path.is_file():
                raise
            connection = self._looking()
            self._looks = True
        return connection

    def _looking(self) -> sqlite3.Connection:
        connection = open_readonly(self.path, self._wait)
        try:
            _check_mark(connection, self.path.name, self._schema)
            _check_version(connection, self.path.name, self._schema)
        except BaseException:
            connection.close()
            raise
        return connection

    @property
    def _wait(self) -> float:
        return _PATIENCE if self._patience is None else self._patience


def is_outdated(path: Path, schema: Schema = STORE) -> bool:
    """Whether an older pagein wrote this file, so that it has to be written before it can be read. False where that cannot be told."""
    try:
        with contextlib.closing(open_readonly(path, _PATIENCE)) as connection:
            return _version(connection) < len(schema.migrations)
    except (sqlite3.Error, OSError, UnicodeDecodeError):
        return False


def _make_private(path: Path) -> None:
    make_folder(path.parent)
    with contextlib.suppress(FileExistsError):
        os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o600))
    mode = path.stat().st_mode
    if not stat.S_ISREG(mode):
        # above all not to be made private: a device belongs to everybody
        raise StoreError(f"{path.name} is not a file; choose another path")
    with path.open("rb") as file:
        head = file.read(len(_MAGIC))
    if head and head != _MAGIC:  # somebody else's, whose mode is theirs
        raise StoreError(f"{path.name} is not a database; choose another path")
    if mode & 0o077:
        path.chmod(0o600)


def make_folder(folder: Path) -> None:
    """Make a folder, and those above it that are missing, for the user alone."""
    # Path.mkdir(parents=True) would give the parents the default mode.
    if not folder.exists():
        make_folder(folder.parent)
        with contextlib.suppress(FileExistsError):
            folder.mkdir(mode=0o700)


def _set_up(connection: sqlite3.Connection, label: str, schema: Schema) -> None:
    _check_mark(connection, label, schema)
    _use_wal(connection)
    connection.execute("PRAGMA synchronous=NORMAL")
    _migrate(connection, label, schema)


def _check_mark(connection: sqlite3.Connection, label: str, schema: Schema) -> None:
    # In this order: another process may be making the tables, and with them the mark, in one transaction.
    (tables,) = connection.execute("SELECT count(*) FROM sqlite_schema").fetchone()
    (mark,) = connection.execute("PRAGMA application_id").fetchone()
    if tables and mark != schema.mark:
        raise StoreError(f"{label} is a SQLite file, but not {schema.what} of pagein; choose another path")


def _use_wal(connection: sqlite3.Connection) -> None:
    """Switch to WAL. SQLite does not wait for another process that is switching, so we do."""
    for attempt in range(_WAL_TRIES):
        try:
            connection.execute("PRAGMA journal_mode=WAL")
        except sqlite3.OperationalError as problem:
            if attempt == _WAL_TRIES - 1 or is_refusal(problem):
                raise
            time.sleep(_WAL_PAUSE)
        else:
            return


def _migrate(connection: sqlite3.Connection, label: str, schema: Schema) -> None:
    if _version(connection) == len(schema.migrations):
        return
    begin, commit, undo = _OUTER
    connection.execute(begin)
    try:
        _upgrade_schema(connection, label, schema)
    except BaseException:
        _undone(connection, undo)
        raise
    _commit(connection, commit, undo)


def _upgrade_schema(connection: sqlite3.Connection, label: str, schema: Schema) -> None:
    # Asked again inside the transaction: another process may have done it meanwhile.
    done = _version(connection)
    known = len(schema.migrations)
    if done > known:
        raise StoreError(f"{label} was written by a newer pagein (schema {done}, this one knows {known})")
    connection.execute(f"PRAGMA application_id={schema.mark}")
    connection.execute("CREATE TABLE IF NOT EXISTS migration(number INTEGER PRIMARY KEY, name TEXT NOT NULL)")
    for number, (name, statements) in enumerate(schema.migrations[done:], start=done + 1):
        for statement in statements:
            connection.execute(statement)
        connection.execute("INSERT INTO migration(number, name) VALUES(?, ?)", (number, name))


def _check_version(connection: sqlite3.Connection, label: str, schema: Schema) -> None:
    done, known = _version(connection), len(schema.migrations)
    if done == known:
        return
    steps = f"(schema {done}, this one knows {known})"
    if done > known:
        raise StoreError(f"{label} was written by a newer pagein {steps}")
    raise StoreError(f"{label} was written by an older pagein {steps}, and cannot be brought up to date: {_REMEDY}")


def _version(connection: sqlite3.Connection) -> int:
    known = connection.execute("SELECT 1 FROM sqlite_schema WHERE type = 'table' AND name = 'migration'").fetchone()
    if known is None:
        return 0
    (number,) = connection.execute("SELECT coalesce(max(number), 0) FROM migration").fetchone()
    return int(number)


def _commit(connection: sqlite3.Connection, commit: str, undo: tuple[str, ...]) -> None:
    try:
        connection.execute(commit)
    except sqlite3.Error:
        _undone(connection, undo)
        raise


def _undone(connection: sqlite3.Connection, undo: tuple[str, ...]) -> None:
    # A full disk makes SQLite roll back by itself; then there is nothing left to undo.
    with contextlib.suppress(sqlite3.Error):
        for statement in undo:
            connection.execute(statement)
