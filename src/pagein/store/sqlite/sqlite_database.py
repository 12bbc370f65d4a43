"""Access to a SQLite file: open lazily, keep private to the user, migrate the schema, run transactions.

Rules of this file
------------------
1. The file, and a folder created for it, are readable by the user alone, from the first moment on: the file is created
   before SQLite opens it, and SQLite gives `-wal` and `-shm` the same mode.
2. Every write is a transaction begun with BEGIN IMMEDIATE, so two writers queue up instead of failing at commit.
3. WAL with synchronous=NORMAL: a commit survives the death of the process at any point; at power loss the last commits may
   be lost, never the file.
4. Every exception of SQLite or the disk becomes StoreError.
5. After an error of the disk, SQLite rolls back the whole transaction by itself. A write within it is refused from then on, because
   it would be committed alone.
6. An existing file without write permission is opened read-only (`readonly_file`); a write is refused with an explanation.
"""

import contextlib
import os
import sqlite3
import stat
import time
from collections.abc import Iterator
from pathlib import Path
from threading import get_ident
from typing import Final

from pagein.errors import StoreError
from pagein.store.sql.short_names import entry_key
from pagein.store.sql.sql_lookups import key_number
from pagein.store.sql.sqlite_schema import ENTRY_KEY, KEY_NUMBER, STORE, TARGET_KEY, Schema
from pagein.store.sql.target_keys import target_key
from pagein.store.sql.turn_queue import TurnLock
from pagein.store.sqlite.readonly_file import is_refusal, open_readonly

_PATIENCE: Final = 5.0
_LONGEST: Final = 30.0
"""Seconds that a thread may keep the connection if the caller's patience is limited. Only a failing disk takes longer."""
_MAGIC: Final = b"SQLite format 3\0"
_FIRST_PATIENCE: Final = 60.0
"""Seconds that whoever opens a file waits for others that create or migrate it, unless the caller's patience is limited: there may be
several, and each takes seconds where the machine is busy."""
_WAL_PAUSE: Final = 0.05
_OTHERS: Final = (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED, sqlite3.SQLITE_PROTOCOL)
"""Errors that come of another process, and pass. A full disk does not, nor a missing permission."""
_REMEDY: Final = "let this user write both the file and its folder, or copy the file elsewhere"
_OUTER: Final = ("BEGIN IMMEDIATE", "COMMIT", ("ROLLBACK",))
_INNER: Final = ("SAVEPOINT inner_write", "RELEASE inner_write", ("ROLLBACK TO inner_write", "RELEASE inner_write"))


class SqliteDatabase:
    """A connection shared by several threads.

    schema: the file's tables
    patience: seconds to wait for a writing process before StoreError is raised, also for every thread queued behind the
    waiting thread; 5 if None
    longest: seconds without the end of any turn before queued threads of this process get StoreError (see
    `turn_queue`); None for no limit, or 30 if a patience is given
    looks: never write, even if possible
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
        self._is_writing = False

    @contextlib.contextmanager
    def open_reader(self) -> Iterator[sqlite3.Connection]:
        """Yield the connection for queries."""
        with self._turn(), self._errors():
            yield self._open_connection()

    @contextlib.contextmanager
    def open_writer(self) -> Iterator[sqlite3.Connection]:
        """Yield the connection inside a transaction, committed at the end and rolled back on any exception.

        Nested in the same thread, it is part of the outer transaction: rolled back alone on failure, and committed only
        with the outer one.
        """
        with self._turn():
            with self._errors():
                connection = self._open_connection()
                if self._looks:
                    raise StoreError(f"store {self.path.name} may only be read here: {_REMEDY}")
                within = self._is_writing
                if within and not connection.in_transaction:
                    raise StoreError(f"store {self.path.name}: SQLite rolled back the transaction after a failure")
                begin, commit, undo = _INNER if connection.in_transaction else _OUTER
                self._begin(connection, begin)
                self._is_writing = True
            # The caller's code may raise any exception; only SQLite's own errors become StoreError.
            try:
                yield connection
            except BaseException as problem:
                self._is_writing = within
                _roll_back(connection, undo)
                if isinstance(problem, sqlite3.Error):
                    raise StoreError(f"store {self.path.name}: {problem}") from problem
                raise
            self._is_writing = within
            with self._errors():
                _commit(connection, commit, undo)

    @contextlib.contextmanager
    def snapshot(self) -> Iterator[None]:
        """Yield a context with reads of this thread as of its beginning."""
        with self._turn():
            with self._errors():
                connection = self._open_connection()
                connection.execute("BEGIN")
                connection.execute("SELECT 1 FROM sqlite_schema").fetchone()  # the snapshot begins with the first read
            try:
                yield
            finally:
                _roll_back(connection, ("ROLLBACK",))

    def close(self) -> None:
        """Close the file. Later uses raise StoreError."""
        if not self._queue.acquire():
            # a hanging thread still uses the connection, so it stays open until the end of the process
            self._closed = True
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
        if self._queue.owner == get_ident():
            yield
            return
        if not self._queue.acquire():
            raise StoreError(f"store {self.path.name}: others are at work on it")
        try:
            yield
        finally:
            self._queue.release()

    def _begin(self, connection: sqlite3.Connection, begin: str) -> None:
        try:
            connection.execute(begin)
        except sqlite3.OperationalError as problem:
            if (
                problem.sqlite_errorcode & 0xFF == sqlite3.SQLITE_BUSY
            ):  # held by another process: threads queued behind this one would wait again
                self._queue.refuse()
            raise

    @contextlib.contextmanager
    def _errors(self) -> Iterator[None]:
        try:
            yield
        except (sqlite3.Error, OSError, UnicodeDecodeError) as problem:
            # UnicodeDecodeError comes from messages in which SQLite quotes a damaged file
            raise StoreError(f"store {self.path.name}: {problem}") from problem

    def _open_connection(self) -> sqlite3.Connection:
        if self._closed:
            raise StoreError(f"store {self.path.name} is closed")
        if self._connection is None:
            self._connection = self._open_for_reading() if self._looks else self._open_writable()
        return self._connection

    def _open_writable(self) -> sqlite3.Connection:
        """Return a connection for reading and writing; without write permission, a read-only connection."""
        try:
            _make_file(self.path)
            connection = sqlite3.connect(self.path, isolation_level=None, check_same_thread=False)
            try:
                first = _FIRST_PATIENCE if self._patience is None else self._patience
                connection.execute(f"PRAGMA busy_timeout={round(first * 1000)}")
                _check_mark(connection, self.path.name, self._schema)
                _make_private(self.path)
                _set_up(connection, self.path.name, self._schema, first)
                connection.execute(f"PRAGMA busy_timeout={round(self._wait * 1000)}")
            except BaseException:
                connection.close()
                raise
        except (sqlite3.Error, OSError) as problem:
            if not is_refusal(problem) or not self.path.is_file():
                raise
            connection = self._open_for_reading()
            self._looks = True
        return connection

    def _open_for_reading(self) -> sqlite3.Connection:
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


def schema_texts(path: Path) -> frozenset[bytes]:
    """Return what a file has of its own schema, as it stands in the file: nobody stored it. Raises sqlite3.Error."""
    with contextlib.closing(sqlite3.connect(path)) as connection:
        made = connection.execute("SELECT type || name || tbl_name FROM sqlite_schema").fetchall()
        made += connection.execute("SELECT sql FROM sqlite_schema WHERE sql IS NOT NULL").fetchall()
        made += connection.execute("SELECT name FROM migration").fetchall()
    return frozenset((_MAGIC, *(text.encode() for (text,) in made)))


def is_outdated(path: Path, schema: Schema = STORE) -> bool:
    """Return whether an older pagein wrote this file, and a migration is necessary before reading. False if unknown."""
    try:
        with contextlib.closing(open_readonly(path, _PATIENCE)) as connection:
            return _version(connection) < len(schema.migrations)
    except (sqlite3.Error, OSError, UnicodeDecodeError):
        return False


def _make_file(path: Path) -> None:
    """Create a file for the user alone, unless it is there. Raises StoreError for what cannot be a database."""
    make_folder(path.parent)
    with contextlib.suppress(FileExistsError):
        os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o600))
    mode = path.stat().st_mode
    if not stat.S_ISREG(mode):
        # in particular, a device must not be made private: it belongs to every user
        raise StoreError(f"{path.name} is not a file; choose another path")
    if not mode & 0o077:
        # Never opened here: closing any descriptor of a file ends all POSIX locks that this process has on it, also those of
        # SQLite's open connections. Then another process may take the WAL away from under them.
        return
    with path.open("rb") as file:
        head = file.read(len(_MAGIC))
    if head and head != _MAGIC:
        raise StoreError(f"{path.name} is not a database; choose another path")


def _make_private(path: Path) -> None:
    """Make a database private, with the files beside it. Only once its mark is checked: the mode of a foreign file must not change."""
    if path.stat().st_mode & 0o077:
        for file in (path, path.with_name(f"{path.name}-wal"), path.with_name(f"{path.name}-shm")):
            with contextlib.suppress(FileNotFoundError):
                file.chmod(0o600)


def make_folder(folder: Path) -> None:
    """Create a folder, and its missing parents, for the user alone."""
    # Path.mkdir(parents=True) would give the parents the default mode.
    if not folder.exists():
        make_folder(folder.parent)
        with contextlib.suppress(FileExistsError):
            folder.mkdir(mode=0o700)


def _set_up(connection: sqlite3.Connection, label: str, schema: Schema, patience: float) -> None:
    _use_wal(connection, patience)
    connection.execute("PRAGMA synchronous=NORMAL")
    _migrate(connection, label, schema)


def _check_mark(connection: sqlite3.Connection, label: str, schema: Schema) -> None:
    # In this order: another process may be making the tables, and with them the mark, in one transaction.
    (tables,) = connection.execute("SELECT count(*) FROM sqlite_schema").fetchone()
    (mark,) = connection.execute("PRAGMA application_id").fetchone()
    if tables and mark != schema.mark:
        raise StoreError(f"{label} is a SQLite file, but not {schema.what} of pagein; choose another path")


def _use_wal(connection: sqlite3.Connection, patience: float) -> None:
    """Switch to WAL. SQLite does not wait for another process that is switching, so this function retries."""
    end = time.monotonic() + patience
    while True:
        try:
            connection.execute("PRAGMA journal_mode=WAL")
        except sqlite3.OperationalError as problem:
            if time.monotonic() > end or problem.sqlite_errorcode & 0xFF not in _OTHERS:
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
        _roll_back(connection, undo)
        raise
    _commit(connection, commit, undo)


def _upgrade_schema(connection: sqlite3.Connection, label: str, schema: Schema) -> None:
    # Checked again inside the transaction: another process may have migrated meanwhile.
    done = _version(connection)
    known = len(schema.migrations)
    if done > known:
        raise StoreError(f"{label} was written by a newer pagein (schema {done}, this one knows {known})")
    connection.execute(f"PRAGMA application_id={schema.mark}")
    connection.execute("CREATE TABLE IF NOT EXISTS migration(number INTEGER PRIMARY KEY, name TEXT NOT NULL)")
    add_functions(connection)
    for number, (name, statements) in enumerate(schema.migrations[done:], start=done + 1):
        for statement in statements:
            connection.execute(statement)
        connection.execute("INSERT INTO migration(number, name) VALUES(?, ?)", (number, name))


def add_functions(connection: sqlite3.Connection) -> None:
    """Give a connection the functions that the statements of migrations call."""
    connection.create_function(KEY_NUMBER, 2, key_number, deterministic=True)
    connection.create_function(TARGET_KEY, 1, target_key, deterministic=True)
    connection.create_function(ENTRY_KEY, 1, entry_key, deterministic=True)


def _check_version(connection: sqlite3.Connection, label: str, schema: Schema) -> None:
    done, known = _version(connection), len(schema.migrations)
    if done == known:
        return
    steps = f"(schema {done}, this one knows {known})"
    if done > known:
        raise StoreError(
            f"{label} was written by a newer pagein {steps}; update pagein, or name another store by --store"
        )
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
        _roll_back(connection, undo)
        raise


def _roll_back(connection: sqlite3.Connection, undo: tuple[str, ...]) -> None:
    # A full disk makes SQLite roll back by itself; then there is nothing left to undo.
    with contextlib.suppress(sqlite3.Error):
        for statement in undo:
            connection.execute(statement)
