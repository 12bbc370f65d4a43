"""Evicted results are found by search, also after they were dropped or stored again."""

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from tests.store.search.searched_stores import Desk

from pagein.archive import Archive, archive_of
from pagein.model.names import ContentHash
from pagein.model.objects import ObjectId, Origin, StoredObject
from pagein.model.search_query import Search
from pagein.store.search.index_builder import grow
from pagein.store.search.paged_shelf import PagedShelf
from pagein.store.search.sqlite_index import SqliteIndex
from pagein.store.sql.sql_blobs import SqlBlobs
from pagein.store.sql.sqlite_schema import ALONE_TABLE, APPLICATION_ID, MIGRATIONS, Schema
from pagein.store.sqlite.sqlite_database import SqliteDatabase
from pagein.store.upkeep.sqlite_upkeep import SqliteUpkeep


@pytest.fixture
def store(tmp_path: Path) -> Iterator[SqliteUpkeep]:
    store = SqliteUpkeep(tmp_path / "store.pagein")
    yield store
    store.close()


def paged_out(store: SqlBlobs, text: str, call: str = "c", session: str = "s") -> ObjectId:
    content = text.encode()
    name, origin = ContentHash.of(content), Origin(session, call)
    known = ObjectId.of(name, origin, store.secret())
    stored = StoredObject(known, name, "toolcall", "/w", origin, f"result of {call}", tokens=1, chars=len(text))
    assert store.put_objects([(stored, content)]) == frozenset()
    return known


def found(archive: Archive, pattern: str, **asked: object) -> list[str]:
    results = archive.search(Search(pattern=pattern, **asked))  # type: ignore[arg-type]
    return [hit.where.id for hit in results.hits]


def test_evicted_results_are_found_newest_first_behind_the_versions(store: SqliteUpkeep) -> None:
    first, second = paged_out(store, "needle one", "a"), paged_out(store, "needle two", "b")
    Desk(store).put("needle in a version")
    with archive_of(store) as archive:
        assert found(archive, "needle") == ["call-1", str(second), str(first)]
        assert found(archive, "needle", session="s") == [str(second), str(first)]
        assert found(archive, "result of a", fields=frozenset({"metadata"})) == [str(first)]
        pages, after = [], None
        while True:
            results = archive.search(Search(pattern="needle", limit=1, after=after))
            pages += [hit.where.id for hit in results.hits]
            after = results.next
            if after is None:
                break
        assert pages == ["call-1", str(second), str(first)]


def test_an_object_dropped_and_stored_again_is_found_through_the_index(tmp_path: Path, store: SqliteUpkeep) -> None:
    shelf, index = PagedShelf(store), SqliteIndex(tmp_path / "store.pagein-search")
    kept, dropped = paged_out(store, "needle kept", "a"), paged_out(store, "needle dropped", "b")
    store.drop_objects([dropped])
    while grow(index, shelf):
        pass
    with archive_of(store) as archive:
        assert found(archive, "needle") == [str(kept)]
        assert paged_out(store, "needle dropped", "b") == dropped
        while grow(index, shelf):
            pass
        assert found(archive, "needle") == [str(dropped), str(kept)]
        assert archive.search(Search(pattern="needle dropped")).looked_into == 1
    store.drop_objects([dropped, kept])
    later = paged_out(store, "needle later", "c")
    with archive_of(store) as archive:
        assert found(archive, "needle") == [str(later)]
    index.close()


def test_the_index_outlives_a_collection(tmp_path: Path, store: SqliteUpkeep) -> None:
    shelf, index = PagedShelf(store), SqliteIndex(tmp_path / "store.pagein-search")
    objects = [paged_out(store, f"needle {number}", f"c{number}") for number in range(20)]
    while grow(index, shelf):
        pass
    store.drop_objects(objects[10:])
    assert index.covered_place(shelf) == 20
    with archive_of(store) as archive:
        assert found(archive, "needle 7") == [str(objects[7])]
        assert archive.search(Search(pattern="needle 7")).looked_into == 1
        assert found(archive, "needle 17") == []
    index.close()


def test_older_stores_get_the_order_of_their_evicted_results(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    place = [name for name, _ in MIGRATIONS].index("places of paged-out objects")
    path = tmp_path / "old.pagein"
    older = SqlBlobs(SqliteDatabase(path, Schema(APPLICATION_ID, "a store", MIGRATIONS[:place])))
    monkeypatch.setattr(older, "forgettings", lambda: 0)  # code of that time did not ask
    with closing(sqlite3.connect(path)) as rows, rows:  # bytes did not wait in a table of their own
        with older.exclusive():
            pass
        rows.execute(ALONE_TABLE)
    known = [paged_out(older, f"needle {number}", f"c{number}") for number in range(3)]
    older.close()
    with closing(sqlite3.connect(path)) as rows, rows:
        rows.execute(
            "UPDATE blob SET data = (SELECT packed FROM alone WHERE alone.number = blob.number) WHERE number IN (SELECT number FROM alone)"
        )
        rows.execute("DROP TABLE alone")
    store = SqliteUpkeep(path)
    with archive_of(store) as archive:
        assert found(archive, "needle") == [str(one) for one in reversed(known)]
    store.close()
