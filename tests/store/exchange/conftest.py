"""Two stores: one that is exported, and one that takes the export in."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from pagein.store.upkeep.sqlite_upkeep import SqliteUpkeep


@pytest.fixture
def store(tmp_path: Path) -> Iterator[SqliteUpkeep]:
    store = SqliteUpkeep(tmp_path / "one.pagein")
    yield store
    store.close()


@pytest.fixture
def fresh(tmp_path: Path) -> Iterator[SqliteUpkeep]:
    store = SqliteUpkeep(tmp_path / "two.pagein")
    yield store
    store.close()
