"""PostgreSQL store with maintenance operations. Needs the extra `pagein[postgres]`."""

import contextlib
from collections.abc import Iterator, Sequence
from typing import Final

from pagein.store.postgres.postgres_store import PostgresStore
from pagein.store.search.postgres_index import empty_postgres_index
from pagein.store.sql.sql_erasure import SqlErasure
from pagein.store.sql.sql_rows import Rows
from pagein.store.upkeep.sql_upkeep import SqlUpkeep

_HOLDING: Final = (
    "blob",
    "alone",
    "file_order",
    "file_text",
    "line_text",
    "object",
    "journal",
    "line_segment",
    "version",
    "writer_session",
    "record_segment",
    "reference",
    "reference_segment",
    "lookup",
    "lookup_text",
    "document",
    "request",
    "answer",
)


class PostgresUpkeep(PostgresStore, SqlUpkeep, SqlErasure):
    """A WholeStore in a schema of a database.

    PostgreSQL itself never reuses numbers, and frees space in its own time.
    """

    @contextlib.contextmanager
    def snapshot(self) -> Iterator[None]:
        with self._database.snapshot():
            yield

    def _take_number(self, rows: Rows, place: int) -> None:
        sequence = "pg_get_serial_sequence('journal', 'number')"
        known = f"coalesce(pg_sequence_last_value({sequence}::regclass), 0)"
        rows.execute(f"SELECT setval({sequence}, ?) WHERE {known} < ?", (place, place)).fetchall()

    def shrink(self) -> None:
        """Do nothing: autovacuum frees the space."""

    def scrub(self) -> Sequence[str]:
        empty_postgres_index(self._database)
        with self._database.open_reader() as rows:
            for table in _HOLDING:
                rows.execute(f"VACUUM FULL {table}")
        return ("PostgreSQL: its write-ahead log, replicas and backups are its own; ask whoever runs it",)

    def faults(self) -> Sequence[str]:
        with self._database.open_reader() as rows:
            rows.execute(
                "SELECT 1"
            ).fetchone()  # an unreachable server raises StoreError: it is not a fault of the content
        return ()
