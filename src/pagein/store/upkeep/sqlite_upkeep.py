"""Embedded store with maintenance operations.

SQLite would reuse the number of a deleted last row. So before rows are deleted, a placeholder takes the next number: an entry without
a session, and the empty blob.
"""

import contextlib
from collections.abc import Iterator, Sequence

from pagein.errors import StoreError
from pagein.store.sql.short_names import NOBODY, entry_key
from pagein.store.sql.sql_blobs import put_blob, raw
from pagein.store.sql.sql_erasure import SqlErasure
from pagein.store.sql.sql_rows import Rows
from pagein.store.sqlite.sqlite_store import SqliteStore
from pagein.store.upkeep.collection import NO_BYTES
from pagein.store.upkeep.sql_upkeep import SqlUpkeep


class SqliteUpkeep(SqliteStore, SqlUpkeep, SqlErasure):
    """A WholeStore in a single file."""

    @contextlib.contextmanager
    def snapshot(self) -> Iterator[None]:
        with self._database.snapshot():
            yield

    def shrink(self) -> None:
        with contextlib.suppress(StoreError), self._database.open_reader() as connection:
            connection.execute("VACUUM")
            connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()

    def scrub(self) -> Sequence[str]:
        with self._database.open_reader() as connection:
            connection.execute("PRAGMA secure_delete=ON")
            connection.execute("VACUUM")
            busy = connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
        if busy is None or busy[0]:
            return (f"{self._database.path.name}-wal: another process reads the store; run it again once that is done",)
        return ()

    def faults(self) -> Sequence[str]:
        from pagein.store.upkeep.rebuild import (
            fault_of_log,  # its tables take longer to make than most commands to answer
        )

        with self._database.open_reader() as connection:
            rows = connection.execute("PRAGMA integrity_check").fetchall()
        of_log = fault_of_log(self._database.path)
        return (*(str(row[0]) for row in rows if row[0] != "ok"), *([of_log] if of_log else ()))

    def _hold_numbers(self, rows: Rows) -> None:
        found = rows.execute("SELECT max(number) FROM journal").fetchone()
        last = None if found is None else found[0]
        if last is not None:
            rows.execute(
                "INSERT INTO journal(number, session, id, codec, line) VALUES(?, ?, ?, 0, x'')",
                (last + 1, NOBODY, entry_key(str(last + 1))),
            )
            rows.execute("DELETE FROM journal WHERE session = ? AND number <= ?", (NOBODY, last))

    def _hold_blob_numbers(self, rows: Rows) -> None:
        put_blob(rows, b"")
        rows.execute("UPDATE blob SET number = (SELECT max(number) + 1 FROM blob) WHERE hash = ?", (raw(NO_BYTES),))
