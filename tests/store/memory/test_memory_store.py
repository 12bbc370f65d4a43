import pytest

from pagein.errors import DamagedBlob
from pagein.model.names import ContentHash
from pagein.testing.blob_store import BlobStoreContract, JournalStoreContract
from pagein.testing.memory_journals import MemoryJournals

pytestmark = pytest.mark.damages_store


@pytest.fixture
def store() -> MemoryJournals:
    return MemoryJournals()


class TestMemoryBlobs(BlobStoreContract):
    pass


class TestMemoryJournals(JournalStoreContract):
    pass


def test_wrong_bytes_are_not_handed_out(store: MemoryJournals) -> None:
    name = store.put(b"body")
    store._blobs[name] = b"other"
    with pytest.raises(DamagedBlob):
        store.get(ContentHash.of(b"body"))
