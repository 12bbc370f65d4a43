"""A store on each database, to test what both keep in the same tables."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from pagein.store.upkeep.postgres_upkeep import PostgresUpkeep
from pagein.store.upkeep.sqlite_upkeep import SqliteUpkeep


@pytest.fixture(params=["sqlite", "postgres"])
def store(
    request: pytest.FixtureRequest, tmp_path: Path, schema: Callable[[], str]
) -> Iterator[SqliteUpkeep | PostgresUpkeep]:
    """A new store. On the server of the tests, each has a schema of its own."""
    if request.param == "sqlite":
        opened: SqliteUpkeep | PostgresUpkeep = SqliteUpkeep(tmp_path / "one.pagein")
    else:
        opened = PostgresUpkeep(request.getfixturevalue("postgres"), f"sql_{schema()}")
    yield opened
    opened.close()
