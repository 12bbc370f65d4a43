"""Access to a schema of a PostgreSQL database: connect lazily, migrate the schema, run transactions.

Rules of this file
------------------
1. Every write first takes the schema's lock and holds the lock until the commit is visible. So writers of every machine queue up:
   deadlocks and lost updates are impossible, and numbers become visible in their order.
2. Every exception of PostgreSQL or the network becomes StoreError, and never shows the address, which may contain a password.
3. Writing threads of this process queue up before they contact the server (`turn_queue`), so that no thread fails because of another.
4. A writer's statements are sent on without waiting for the server, until an answer is read (libpq's pipeline). Errors come with it.
5. No caller waits longer than `_WAIT`, or the given patience, for a connection or the lock. No statement lasts longer than
   `_PATIENCE`. A client that idles in a transaction for as long is disconnected, so that others can write.
"""

import contextlib
import hashlib
import logging
import re
import threading
from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import Any, Final, Self

import psycopg
from psycopg import sql
from psycopg.conninfo import conninfo_to_dict
from psycopg_pool import ConnectionPool

from pagein.errors import BadSetting, StoreError
from pagein.store.postgres.postgres_schema import STEPS, Steps
from pagein.store.sql.sql_rows import Answers, Rows
from pagein.store.sql.turn_queue import TurnLock

SCHEMA: Final = "pagein"
_WAIT: Final = 10
_PATIENCE: Final = 30
_TRIED_AGAIN: Final = 5
"""In seconds. The pool retries an unreachable server at growing intervals; after this time it retries at once when a caller asks."""
_MOST_CONNECTIONS: Final = 8
# Failures of the pool's threads reach the next caller as exceptions, and need no lines on standard error.
logging.getLogger("psycopg.pool").addHandler(logging.NullHandler())
_NAME: Final = re.compile(r"[a-z_][a-z0-9_]{0,62}")
Connection = psycopg.Connection[tuple[Any, ...]]


class PostgresRows:
    """A PostgreSQL connection with the interface of the SQLite connection."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def execute(self, query: str, values: Sequence[Any] = (), /) -> Answers:
        """Run a statement."""
        return self._connection.execute(_translate(query), values)


@lru_cache(maxsize=256)
def _translate(query: str) -> bytes:
    return query.replace("?", "%s").encode()


class PostgresDatabase:
    """A connection pool shared by threads. `address` is a URL or keywords as accepted by libpq.

    steps: migrations that create the tables
    patience: seconds to wait for a connection, and again for the lock; 10 if None
    """

    def __init__(self, address: str, schema: str = SCHEMA, steps: Steps = STEPS, patience: float | None = None) -> None:
        if not _NAME.fullmatch(schema):
            raise BadSetting(
                f"not the name of a schema: {schema[:40]!r}; expected lower-case letters, digits and underscores"
            )
        try:
            conninfo_to_dict(address)
        except psycopg.Error:
            raise BadSetting("not the address of a PostgreSQL database; expected postgresql://user@host/name") from None
        self._address = address
        self._schema = schema
        self._wait = _WAIT if patience is None else patience
        self._steps = steps
        self._lock = threading.Lock()
        self._queue = TurnLock(_PATIENCE)
        self._mine = threading.local()
        self._pool: ConnectionPool[Connection] | None = None
        self._closed = False
        digest = hashlib.sha256(f"pagein store {schema}".encode()).digest()
        self._key = int.from_bytes(digest[:8], "big", signed=True)

    def beside(self, name: str, steps: Steps) -> Self:
        """Return another schema of the same database for derived data, with a lock and connections of its own."""
        return type(self)(self._address, f"{self._schema}_{name}", steps, self._wait)

    @contextlib.contextmanager
    def open_reader(self) -> Iterator[Rows]:
        """Yield a connection for queries; within `open_writer` of the same thread, that writer's connection."""
        writing: Connection | None = getattr(self._mine, "connection", None)
        with self._errors():
            if writing is not None:
                yield PostgresRows(writing)
                return
            with self._open_pool().connection() as connection:
                yield PostgresRows(connection)

    @contextlib.contextmanager
    def open_writer(self) -> Iterator[Rows]:
        """Yield a connection inside a transaction without other writers (see `sql_rows.Database`)."""
        outer: Connection | None = getattr(self._mine, "connection", None)
        with self._errors(), contextlib.ExitStack() as stack:
            if outer is not None:
                stack.enter_context(outer.transaction())
                yield PostgresRows(outer)
                return
            if not self._queue.acquire():
                raise StoreError(f"store in schema {self._schema}: others are at work on it")
            stack.callback(self._queue.release)
            connection = stack.enter_context(self._open_pool().connection())
            stack.enter_context(connection.pipeline())
            stack.enter_context(connection.transaction())
            self._lock_writers(connection)
            self._mine.connection = connection
            stack.callback(self._forget)
            yield PostgresRows(connection)

    @contextlib.contextmanager
    def snapshot(self) -> Iterator[None]:
        """Yield a context with reads of this thread as of its beginning."""
        with contextlib.ExitStack() as stack:
            with self._errors():
                connection = stack.enter_context(self._open_pool().connection())
                stack.enter_context(connection.transaction(force_rollback=True))
                connection.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
            self._mine.connection = connection
            stack.callback(self._forget)
            yield

    def close(self) -> None:
        """Close every connection. Later uses raise StoreError."""
        with self._lock:
            self._closed = True
            if self._pool is not None:
                self._pool.close()
                self._pool = None

    def _lock_writers(self, connection: Connection) -> None:
        """Keep out writers of other processes until the end of this transaction."""
        try:
            connection.execute("SELECT pg_advisory_xact_lock(%s)", (self._key,)).fetchone()
        except (
            psycopg.errors.LockNotAvailable
        ):  # held by another process: callers queued after this one would wait again
            self._queue.refuse()
            raise

    def _forget(self) -> None:
        self._mine.connection = None

    @contextlib.contextmanager
    def _errors(self) -> Iterator[None]:
        try:
            yield
        except (
            psycopg.Error
        ) as problem:  # errors of the pool included; exceptions of the caller's own code pass unchanged
            raise StoreError(f"store in schema {self._schema}: {problem}") from problem

    def _open_pool(self) -> ConnectionPool[Connection]:
        with self._lock:
            if self._closed:
                raise StoreError(f"store in schema {self._schema} is closed")
            if self._pool is None:
                self._pool = self._new_pool()
            return self._pool

    def _new_pool(self) -> ConnectionPool[Connection]:
        options: dict[str, Any] = {
            "autocommit": True,
            "connect_timeout": max(2, round(self._wait)),
            "application_name": "pagein",
        }
        # Connect once without the pool: a direct connection reports a wrong address at once, in the server's words.
        with psycopg.connect(self._address, **options) as connection:
            _bring_up(connection, self._schema, self._key, self._steps)
        pool: ConnectionPool[Connection] = ConnectionPool(
            self._address,
            kwargs=options,
            min_size=1,
            max_size=_MOST_CONNECTIONS,
            timeout=self._wait,
            reconnect_timeout=_TRIED_AGAIN,
            configure=self._configure,
            check=ConnectionPool.check_connection,
            open=False,
        )
        pool.open()
        return pool

    def _configure(self, connection: Connection) -> None:
        settings = {
            "search_path": self._schema,
            "lock_timeout": f"{round(self._wait * 1000)}ms",
            "statement_timeout": f"{_PATIENCE}s",
            "idle_in_transaction_session_timeout": f"{_PATIENCE}s",
        }
        for name, value in settings.items():
            connection.execute("SELECT set_config(%s, %s, false)", (name, value))


def _bring_up(connection: Connection, schema: str, key: int, steps: Steps) -> None:
    """Create the schema and missing tables, one client at a time, or not at all."""
    with connection.transaction():
        connection.execute("SELECT pg_advisory_xact_lock(%s)", (key,))
        if connection.execute("SELECT 1 FROM pg_namespace WHERE nspname = %s", (schema,)).fetchone() is None:
            connection.execute(sql.SQL("CREATE SCHEMA {}").format(sql.Identifier(schema)))
        connection.execute("SELECT set_config('search_path', %s, true)", (schema,))
        connection.execute("CREATE TABLE IF NOT EXISTS migration(number BIGINT PRIMARY KEY, name TEXT NOT NULL)")
        found = connection.execute("SELECT coalesce(max(number), 0) FROM migration").fetchone()
        done = 0 if found is None else int(found[0])
        if done > len(steps):
            raise StoreError(
                f"schema {schema} was written by a newer pagein (step {done}, this one knows {len(steps)}); update pagein"
            )
        for number, (name, statements) in enumerate(steps[done:], start=done + 1):
            for statement in statements:
                connection.execute(statement.encode())
            connection.execute("INSERT INTO migration(number, name) VALUES(%s, %s)", (number, name))
