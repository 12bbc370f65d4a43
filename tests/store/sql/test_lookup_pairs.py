"""Pairs of lookup keys and objects: as they were put, in any order, also from a store with a row for each."""

import sqlite3
from collections.abc import Iterator
from contextlib import closing

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pagein.errors import DamagedBlob
from pagein.model.versions import Draft
from pagein.model.writes import Query, Write
from pagein.store.sql.lookup_pairs import documents_with, drop_pair, join_pairs, put_pair
from pagein.store.sql.sqlite_schema import JOINED_PAIRS, LAYER_TABLE, LOOKUP_TABLES
from pagein.store.upkeep.postgres_upkeep import PostgresUpkeep
from pagein.store.upkeep.sqlite_upkeep import SqliteUpkeep
from pagein.testing.object_store import a_file, object_number, put

pytestmark = pytest.mark.damages_store


@pytest.fixture
def rows() -> Iterator[sqlite3.Connection]:
    with closing(sqlite3.connect(":memory:", isolation_level=None)) as rows:
        for statement in (LAYER_TABLE, *LOOKUP_TABLES, JOINED_PAIRS[0]):
            rows.execute(statement)
        yield rows


def test_a_damaged_row_is_no_answer_and_goes_with_its_objects(rows: sqlite3.Connection) -> None:
    for document in (3, 5, 8):
        put_pair(rows, 1, document)
    rows.execute("UPDATE lookup SET further = x'c1'")
    with pytest.raises(DamagedBlob, match="pagein reindex"):
        documents_with(rows, (1,))
    for document in (5, 8, 3):
        drop_pair(rows, 1, document)
    put_pair(rows, 1, 8)
    assert documents_with(rows, (1,)) == {8}


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=120, deadline=None)
@given(
    most=st.integers(1, 5),
    older=st.sets(st.tuples(st.integers(0, 3), st.integers(1, 40)), max_size=30),
    deeds=st.lists(st.tuples(st.sampled_from(["put", "drop", "join"]), st.integers(0, 3), st.integers(1, 40))),
)
def test_any_order_of_putting_dropping_and_joining(
    rows: sqlite3.Connection,
    monkeypatch: pytest.MonkeyPatch,
    most: int,
    older: set[tuple[int, int]],
    deeds: list[tuple[str, int, int]],
) -> None:
    monkeypatch.setattr("pagein.store.sql.lookup_pairs.MOST", most)
    monkeypatch.setattr("pagein.store.sql.lookup_pairs._AT_ONCE", 3)
    monkeypatch.setattr("pagein.store.sql.sql_rows._AT_ONCE", 3)
    rows.execute("DELETE FROM lookup")
    rows.execute("DELETE FROM layer")
    rows.executemany("INSERT INTO lookup(key, document) VALUES(?, ?)", older)
    rows.execute(JOINED_PAIRS[1])
    kept = set(older)
    for deed, key, document in deeds:
        if deed == "put":
            put_pair(rows, key, document)
            kept.add((key, document))
        elif deed == "drop":
            drop_pair(rows, key, document)
            kept.discard((key, document))
        else:
            join_pairs(rows)
        assert {(key, one) for key in range(4) for one in documents_with(rows, (key,))} == kept
    while join_pairs(rows):
        pass
    assert documents_with(rows, range(4)) == {document for _, document in kept}
    assert rows.execute("SELECT count(*) FROM layer").fetchone() == (0,)


def test_pairs_of_an_older_store_take_less_room_when_they_are_joined(rows: sqlite3.Connection) -> None:
    rows.executemany("INSERT INTO lookup(key, document) VALUES(?, ?)", [(n % 20, n) for n in range(1, 8_001)])
    rows.execute(JOINED_PAIRS[1])
    wanted = documents_with(rows, (7,))
    assert [join_pairs(rows) for _ in range(21)][-1] == 0
    assert documents_with(rows, (7,)) == wanted
    (count, size) = rows.execute("SELECT count(*), sum(length(further)) FROM lookup").fetchone()
    assert (count, size < 8_200) == (40, True)


def test_many_objects_with_one_key_are_found_by_it_and_by_others(store: SqliteUpkeep | PostgresUpkeep) -> None:
    for number in range(1, 301):
        tags = {"all": True, "rest": number % 7}
        put(store, Draft(id=object_number(number), type="note", metadata=tags))
    asked = Query(where={"all": True, "rest": 3})
    assert [one.id for one in store.objects(asked)] == [object_number(n) for n in range(300, 0, -1) if n % 7 == 3]
    assert len(store.objects(Query(where={"all": True}))) == 300
    assert store.objects(Query(where={"all": True, "rest": 8})) == ()
    put(store, Draft(id=object_number(3), type="note", metadata={"all": True}))
    assert object_number(3) not in [one.id for one in store.objects(asked)]


def test_the_latest_versions_by_time_count_the_first_one_too(store: SqliteUpkeep | PostgresUpkeep) -> None:
    times = (5.0, 2.0, 9.0, 5.0)
    for number, at in enumerate(times, start=1):
        store.write(Write(f"r{number}", a_file(1, f"text {number}"), at))
    one = object_number(1)
    assert [version.number for version in store.latest_versions(one)] == [3, 4, 1, 2]
    for most in range(1, 5):
        assert [version.number for version in store.latest_versions(one, most)] == [3, 4, 1, 2][:most]
    found = {at: store.as_of(one, at) for at in (1.0, 2.0, 4.0, 5.0, 9.0)}
    assert {at: one and one.number for at, one in found.items()} == {1.0: None, 2.0: 2, 4.0: 2, 5.0: 4, 9.0: 3}
