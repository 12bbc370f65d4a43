"""The store for teams, opened to be looked after. Needs the extra `pagein[postgres]`."""

import contextlib
from collections.abc import Iterator, Sequence
from typing import Final

from pagein.store.postgres.postgres_store import PostgresStore
from pagein.store.search.postgres_index import empty_postgres_index
from pagein.store.sql.sql_erasure import SqlErasure
from pagein.store.upkeep.sql_upkeep import SqlUpkeep

_HOLDING: Final = ("blob", "object", "entry", "version", "reference", "field", "document", "request")


class PostgresUpkeep(PostgresStore, SqlUpkeep, SqlErasure):
    """A WholeStore in one schema of a database. PostgreSQL counts by itself, never gives a number twice, and tidies up in its own time."""

    @contextlib.contextmanager
    def snapshot(self) -> Iterator[None]:
        with self._database.snapshot():
            yield

    def shrink(self) -> None:
        """Autovacuum does it."""

    def scrub(self) -> Sequence[str]:
        empty_postgres_index(self._database)
        with self._database.open_reader() as rows:
            for table in _HOLDING:
                rows.execute(f"VACUUM FULL {table}")
        return ("PostgreSQL: its write-ahead log, replicas and backups are its own; ask whoever runs it",)

    def faults(self) -> Sequence[str]:
        with self._database.open_reader() as rows:
            rows.execute("SELECT 1").fetchone()  # a server that is away is no fault of what it keeps
        return ()
