"""The store for teams, opened to be looked after. Needs the extra `pagein[postgres]`."""

import contextlib
from collections.abc import Iterator, Sequence

from pagein.store.postgres import PostgresStore
from pagein.store.sql_upkeep import SqlUpkeep


class PostgresUpkeep(SqlUpkeep, PostgresStore):
    """A WholeStore in one schema of a database. PostgreSQL counts by itself, never gives a number twice, and tidies up in its own time."""

    @contextlib.contextmanager
    def snapshot(self) -> Iterator[None]:
        with self._database.snapshot():
            yield

    def shrink(self) -> None:
        """Autovacuum does it."""

    def faults(self) -> Sequence[str]:
        return ()
