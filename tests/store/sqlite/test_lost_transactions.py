"""SQLite rolls back a whole transaction by itself after an error of the disk: what is written later in the same turn must not stay alone."""

import os
from pathlib import Path

import pytest

from pagein.errors import StoreError
from pagein.model.names import ContentHash
from pagein.store.sqlite.sqlite_store import SqliteStore


def limit_pages(store: SqliteStore, more: int) -> None:
    with store._database.open_reader() as connection:
        (pages,) = connection.execute("PRAGMA page_count").fetchone()
        connection.execute(f"PRAGMA max_page_count={pages + more}")


def write_on(store: SqliteStore) -> None:
    """Go on with a turn after a write of it was refused, as a decision does."""
    with store.exclusive():
        store.put(b"with the others")
        with pytest.raises(StoreError, match="full"):
            store.put(os.urandom(300_000))
        limit_pages(store, 1000)
        store.put(b"after it, when there is room")


def test_a_write_after_a_full_disk_is_not_stored_without_those_before(tmp_path: Path) -> None:
    store = SqliteStore(tmp_path / "one.pagein")
    store.put(b"before")
    limit_pages(store, 0)
    with pytest.raises(StoreError):
        write_on(store)
    assert list(store.names()) == [ContentHash.of(b"before")]
    with store.exclusive():
        store.put(b"the next turn")
    assert store.get(ContentHash.of(b"the next turn")) == b"the next turn"
    store.close()


def test_a_write_within_a_snapshot_keeps_no_later_one_out(tmp_path: Path) -> None:
    store = SqliteStore(tmp_path / "one.pagein")
    with store._database.snapshot():
        store.put(b"undone with the snapshot")
    store.put(b"stays")
    assert list(store.names()) == [ContentHash.of(b"stays")]
    store.close()
