import inspect
import re
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from pagein.ports import ObjectStore
from pagein.store.memory.memory_store import MemoryStore
from pagein.store.postgres.postgres_store import PostgresStore
from pagein.store.sqlite.sqlite_store import SqliteStore
from pagein.testing import object_links, object_versions
from pagein.testing.blob_store import BlobStoreContract, JournalStoreContract
from pagein.testing.durable_store import DurableStoreContract, SnapshotStoreContract
from pagein.testing.layer_store import LayerStoreContract
from pagein.testing.memory_upkeep import MemoryUpkeep
from pagein.testing.object_store import ObjectStoreContract

pytestmark = pytest.mark.damages_store


class TestMemoryObjects(ObjectStoreContract):
    @pytest.fixture
    def store(self) -> MemoryStore:
        return MemoryStore()


class TestSqliteObjects(ObjectStoreContract):
    @pytest.fixture
    def store(self, tmp_path: Path) -> Iterator[SqliteStore]:
        store = SqliteStore(tmp_path / "one.pagein")
        yield store
        store.close()


class OnDisk:
    @pytest.fixture
    def open_store(self, tmp_path: Path) -> Callable[[], SqliteStore]:
        return lambda: SqliteStore(tmp_path / "one.pagein")


class TestSqliteLayers(LayerStoreContract):
    @pytest.fixture
    def store(self, tmp_path: Path) -> Iterator[SqliteStore]:
        store = SqliteStore(tmp_path / "one.pagein")
        yield store
        store.close()


class TestMemoryLayers(LayerStoreContract):
    @pytest.fixture
    def store(self) -> MemoryUpkeep:
        return MemoryUpkeep()


class TestSqliteAfterRestarts(OnDisk, DurableStoreContract):
    pass


class TestSqliteSnapshots(OnDisk, SnapshotStoreContract):
    pass


class OnPostgres:
    @pytest.fixture
    def store(self, postgres: str, schema: Callable[[], str]) -> Iterator[PostgresStore]:
        store = PostgresStore(postgres, schema())
        yield store
        store.close()

    @pytest.fixture
    def open_store(self, postgres: str, schema: Callable[[], str]) -> Callable[[], PostgresStore]:
        name = schema()
        return lambda: PostgresStore(postgres, name)


class TestPostgresObjects(OnPostgres, ObjectStoreContract):
    pass


class TestPostgresBlobs(OnPostgres, BlobStoreContract):
    pass


class TestPostgresJournals(OnPostgres, JournalStoreContract):
    pass


class TestPostgresLayers(OnPostgres, LayerStoreContract):
    pass


class TestPostgresAfterRestarts(OnPostgres, DurableStoreContract):
    pass


class TestPostgresSnapshots(OnPostgres, SnapshotStoreContract):
    pass


def test_the_contract_tests_every_method_of_the_port() -> None:
    promised = {name for name in vars(ObjectStore) if not name.startswith("_")} - {"close"}
    source = inspect.getsource(object_links) + inspect.getsource(object_versions)
    asked = set(re.findall(r"\bstore\.(\w+)\(", source))
    assert promised - asked == set()
