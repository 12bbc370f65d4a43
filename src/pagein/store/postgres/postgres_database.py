"""One schema of a PostgreSQL database: connected lazily, brought up to date, used in transactions.

Rules of this file
------------------
1. Every write first takes one lock that belongs to the schema and is held until its commit can be seen. So writers of all machines
   queue up: no deadlock is possible, no update is lost, and numbers become visible in their order.
2. Whatever PostgreSQL or the network raises leaves here as StoreError, and never shows the address, which may hold a password.
3. Threads of this process that write wait for each other before they ask for anything (`queue`), so none of them fails for the others.
4. Nobody waits longer than `_WAIT`, or the patience given, for a connection or the lock, and no statement lasts longer than `_PATIENCE`. A client that stands
   still in a transaction for as long is thrown out, so that others can write.
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
"""All in seconds. A server that was away is looked for at ever longer intervals; after so many, at once when somebody asks."""
_MOST_CONNECTIONS: Final = 8
# What its threads meet is told to whoever asks for a connection, and needs no lines on standard error.
logging.getLogger("psycopg.pool").addHandler(logging.NullHandler())
_NAME: Final = re.compile(r"[a-z_][a-z0-9_]{0,62}")
Connection = psycopg.Connection[tuple[Any, ...]]


class PostgresRows:
    """A connection of PostgreSQL, spoken to as one of SQLite."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def execute(self, query: str, values: Sequence[Any] = (), /) -> Answers:
        """Run one statement."""
        return self._connection.execute(_translate(query), values)


@lru_cache(maxsize=256)
def _translate(query: str) -> bytes:
    return query.replace("?", "%s").encode()


class PostgresDatabase:
    """A pool of connections that threads share. `address` is a URL or keywords as libpq takes them.

    steps: make its tables. patience: seconds to wait for a connection, and again for the lock; 10 where None.
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
        """Another schema of the same database, for what is derived from this one. It has a lock and connections of its own."""
        return type(self)(self._address, f"{self._schema}_{name}", steps, self._wait)

    @contextlib.contextmanager
    def open_reader(self) -> Iterator[Rows]:
        """A connection, for queries; within `writing` of the same thread that one's."""
        writing: Connection | None = getattr(self._mine, "connection", None)
        with self._errors():
            if writing is not None:
                yield PostgresRows(writing)
                return
            with self._opened().connection() as connection:
                yield PostgresRows(connection)

    @contextlib.contextmanager
    def open_writer(self) -> Iterator[Rows]:
        """A connection inside a transaction, while nobody else writes (see `rows.Database`)."""
        outer: Connection | None = getattr(self._mine, "connection", None)
        with self._errors(), contextlib.ExitStack() as stack:
            if outer is not None:
                stack.enter_context(outer.transaction())
                yield PostgresRows(outer)
                return
            if not self._queue.acquire():
                raise StoreError(f"store in schema {self._schema}: others are at work on it")
            stack.callback(self._queue.release)
            connection = stack.enter_context(self._opened().connection())
            stack.enter_context(connection.transaction())
            self._lock_writers(connection)
            self._mine.connection = connection
            stack.callback(self._forget)
            yield PostgresRows(connection)

    @contextlib.contextmanager
    def snapshot(self) -> Iterator[None]:
        """A time in which all reads of this thread see the schema as it was at its beginning."""
        with contextlib.ExitStack() as stack:
            with self._errors():
                connection = stack.enter_context(self._opened().connection())
                stack.enter_context(connection.transaction(force_rollback=True))
                connection.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
            self._mine.connection = connection
            stack.callback(self._forget)
            yield

    def close(self) -> None:
        """Let go of all connections. Later uses raise StoreError."""
        with self._lock:
            self._closed = True
            if self._pool is not None:
                self._pool.close()
                self._pool = None

    def _lock_writers(self, connection: Connection) -> None:
        """Keep writers of other processes out until the end of this transaction."""
        try:
            connection.execute("SELECT pg_advisory_xact_lock(%s)", (self._key,))
        except psycopg.errors.LockNotAvailable:  # another process: who waits behind us would wait for it anew
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
        ) as problem:  # those of the pool among them; what the caller raises in between is the caller's
            raise StoreError(f"store in schema {self._schema}: {problem}") from problem

    def _opened(self) -> ConnectionPool[Connection]:
        with self._lock:
            if self._closed:
                raise StoreError(f"store in schema {self._schema} is closed")
            if self._pool is None:
                self._pool = self._pooled()
            return self._pool

    def _pooled(self) -> ConnectionPool[Connection]:
        options: dict[str, Any] = {
            "autocommit": True,
            "connect_timeout": max(2, round(self._wait)),
            "application_name": "pagein",
        }
        # Asked once without the pool: it reports at once, and in its own words, what is wrong with the address.
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
    """Make the schema and the tables that are missing. One client at a time, or not at all."""
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
                f"schema {schema} was written by a newer pagein (step {done}, this one knows {len(steps)})"
            )
        for number, (name, statements) in enumerate(steps[done:], start=done + 1):
            for statement in statements:
                connection.execute(statement.encode())
            connection.execute("INSERT INTO migration(number, name) VALUES(%s, %s)", (number, name))
