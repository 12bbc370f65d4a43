from collections.abc import Iterator
from itertools import count
from pathlib import Path

import pytest

from pagein.store.upkeep.postgres_upkeep import PostgresUpkeep
from pagein.store.upkeep.sqlite_upkeep import SqliteUpkeep
from pagein.testing.lived_in_store import make_lived_in_store
from pagein.testing.memory_upkeep import MemoryUpkeep
from pagein.testing.upkeep_contract import WholeStoreContract, export_all, import_all, note_entry
from pagein.upkeep import check_store

_SCHEMAS = count()


@pytest.fixture
def kept(postgres: str) -> Iterator[PostgresUpkeep]:
    store = PostgresUpkeep(postgres, f"upkeep_{next(_SCHEMAS)}")
    yield store
    store.close()


class TestMemory(WholeStoreContract):
    @pytest.fixture
    def store(self) -> MemoryUpkeep:
        return MemoryUpkeep()


class TestSqlite(WholeStoreContract):
    @pytest.fixture
    def store(self, tmp_path: Path) -> Iterator[SqliteUpkeep]:
        store = SqliteUpkeep(tmp_path / "one.pagein")
        yield store
        store.close()


class TestPostgres(WholeStoreContract):
    @pytest.fixture
    def store(self, kept: PostgresUpkeep) -> PostgresUpkeep:
        return kept


def test_a_store_moves_from_sqlite_to_postgres_and_back(kept: PostgresUpkeep, tmp_path: Path) -> None:
    lived = make_lived_in_store(tmp_path / "one.pagein", tmp_path / "work", 1, 80)
    here, back = SqliteUpkeep(lived.store), SqliteUpkeep(tmp_path / "back.pagein")
    lines = export_all(here)
    import_all(kept, lines)
    assert export_all(kept) == lines
    assert check_store(kept).is_clean
    import_all(back, export_all(kept))
    assert export_all(back) == lines
    here.close()
    back.close()


@pytest.mark.parametrize("table", ["blob", "journal"])
def test_numbers_of_rows_that_went_are_not_given_again(tmp_path: Path, table: str) -> None:
    """Others remember by numbers how far they have come; SQLite alone would give the last one twice."""
    store = SqliteUpkeep(tmp_path / "one.pagein")

    def numbers() -> list[int]:
        with store._database.open_reader() as rows:
            return [number for (number,) in rows.execute(f"SELECT number FROM {table} ORDER BY number").fetchall()]  # noqa: S608

    names = store.put_many([b"one", b"two", b"three"])
    store.append("a", [note_entry(name) for name in "123"])
    seen = numbers()[-1]
    for _ in range(3):
        store.drop_blobs(names)
        store.drop_sessions(["a"])
        names = store.put_many([b"one", b"two", b"three"])
        store.append("a", [note_entry(name) for name in "123"])
        fresh = numbers()[-3:]
        assert fresh[0] > seen
        seen = fresh[-1]
    store.close()
