"""Texts of rows in segments: every text as it was put last, whatever was merged, and nothing left of what is removed."""

import itertools
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pagein.errors import DamagedBlob, StoreError
from pagein.store.sql.packed_bytes import pack_bundle
from pagein.store.sql.packed_records import RECORDS as ALL_RECORDS
from pagein.store.sql.sql_segments import _joined_texts
from pagein.store.sql.sqlite_schema import segment_tables
from pagein.store.upkeep.postgres_upkeep import PostgresUpkeep
from pagein.store.upkeep.sqlite_upkeep import SqliteUpkeep
from pagein.testing.object_store import a_file, object_number, put

pytestmark = pytest.mark.damages_store


def text(number: int, turn: int = 0) -> bytes:
    """A text of about 700 bytes that is like its neighbours, and of which no other has the first word."""
    return b"secret-%d-%d " % (number, turn) + b"line of a log of the service, " * 20 + bytes([number % 250]) * 90


RECORDS = replace(ALL_RECORDS, size=1 << 16, most=256)
"""Small segments, so that few texts show the same."""
TOGETHER = 94
"""The number of these texts in a segment."""


@pytest.fixture
def rows() -> Iterator[sqlite3.Connection]:
    with closing(sqlite3.connect(":memory:")) as rows:
        for statement in segment_tables("record_segment"):
            rows.execute(statement)
        yield rows


def test_texts_take_less_room_together_and_stay_the_same(rows: sqlite3.Connection) -> None:
    size = "SELECT sum(length(data)), max(texts) FROM record_segment"
    for number in range(1, 200):
        RECORDS.put(rows, number * 3, text(number))
    (before, alone) = rows.execute(size).fetchone()
    merged = [RECORDS.merge(rows) for _ in range(3)]
    (after, together) = rows.execute(size).fetchone()
    assert (alone, together, merged) == (1, TOGETHER, [TOGETHER, TOGETHER, 0])
    assert after < before / 3
    wanted = {number * 3: text(number) for number in range(1, 200)}
    assert RECORDS.load(rows, range(1_000)) == wanted


def test_texts_are_not_unpacked_while_they_do_not_fill_a_segment(rows: sqlite3.Connection) -> None:
    """Each pause asks whether they do: unpacking all of them each time took a quarter of the time of the first indexing."""
    unpacked: list[bytes] = []

    def unpack_one(data: bytes) -> bytes:
        unpacked.append(data)
        return ALL_RECORDS.unpack_one(data)

    watched = replace(RECORDS, unpack_one=unpack_one)
    for number in range(1, TOGETHER):
        watched.put(rows, number, text(number))
        assert watched.merge(rows) == 0
    assert unpacked == []
    watched.put(rows, TOGETHER, text(TOGETHER))
    assert watched.merge(rows) == TOGETHER == len(unpacked)


def test_nothing_is_left_of_a_text_that_is_removed_or_changed(rows: sqlite3.Connection) -> None:
    for number in range(1, 200):
        RECORDS.put(rows, number, text(number))
    while RECORDS.merge(rows):
        pass
    RECORDS.drop(rows, [3, 90, 93, 199, 500])
    RECORDS.put(rows, 4, text(4, turn=1))
    kept = {number: text(number) for number in range(1, 200) if number not in (3, 4, 90, 93, 199)}
    assert RECORDS.load(rows, range(600)) == {**kept, 4: text(4, turn=1)}
    stored = [
        _joined_texts(bytes(data)).all() for (data,) in rows.execute("SELECT data FROM record_segment WHERE texts > 1")
    ]
    assert len(stored) == 2
    assert not any(b"secret-%d-0" % gone in one for parts in stored for one in parts.values() for gone in (3, 4, 90))


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=60, deadline=None)
@given(deeds=st.lists(st.tuples(st.sampled_from(["put", "put", "drop", "merge"]), st.integers(0, 30)), max_size=60))
def test_any_order_of_putting_merging_and_removing(
    deeds: list[tuple[str, int]],
) -> None:
    segments = replace(RECORDS, size=2_000)
    kept: dict[int, bytes] = {}
    with closing(sqlite3.connect(":memory:")) as rows:
        for statement in segment_tables("record_segment"):
            rows.execute(statement)
        for turn, (deed, number) in enumerate(deeds):
            match deed:
                case "put":
                    kept[number] = text(number, turn)
                    segments.put(rows, number, kept[number])
                case "drop":
                    segments.drop(rows, [number, number + 1])
                    kept.pop(number, None)
                    kept.pop(number + 1, None)
                case _:
                    segments.merge(rows)
            assert segments.load(rows, range(40)) == kept
            ranges = rows.execute("SELECT first, last FROM record_segment ORDER BY first").fetchall()
            assert all(one[1] < other[0] for one, other in itertools.pairwise(ranges))


def test_a_damaged_segment_costs_its_own_texts_alone(rows: sqlite3.Connection) -> None:
    for number in range(1, 200):
        RECORDS.put(rows, number, text(number))
    while RECORDS.merge(rows):
        pass
    rows.execute("UPDATE record_segment SET data = zeroblob(50) WHERE first = 1")
    left = set(range(TOGETHER + 1, 200))
    assert set(RECORDS.load(rows, range(300))) == left
    RECORDS.drop(rows, [5, 100])
    assert set(RECORDS.load(rows, range(300))) == left - {100}


@pytest.mark.parametrize("damaged", [{1}, {2}, {50}, {1, 2, 3, 90}, set(range(1, 60, 2))])
def test_a_damaged_lone_text_holds_no_other_up(rows: sqlite3.Connection, damaged: set[int]) -> None:
    for number in range(1, 301):
        RECORDS.put(rows, number, text(number))
    for number in damaged:
        rows.execute("UPDATE record_segment SET data = zeroblob(50) WHERE first = ?", (number,))
    while RECORDS.merge(rows):
        pass
    assert RECORDS.end(rows) > 200
    assert RECORDS.load(rows, range(400)) == {one: text(one) for one in range(1, 301) if one not in damaged}


@pytest.mark.parametrize("data", [b"", b"\0" * 4, b"\0\0\0\1" + b"\0" * 5])
def test_a_segment_that_is_none_is_damage(data: bytes) -> None:
    packed, _ = pack_bundle([data])
    if data == b"\0" * 4:
        assert _joined_texts(packed).all() == {}
    else:
        with pytest.raises(DamagedBlob):
            _joined_texts(packed)


@pytest.fixture(params=["sqlite", "postgres"])
def store(
    request: pytest.FixtureRequest, tmp_path: Path, schema: Callable[[], str]
) -> Iterator[SqliteUpkeep | PostgresUpkeep]:
    store: SqliteUpkeep | PostgresUpkeep
    if request.param == "sqlite":
        store = SqliteUpkeep(tmp_path / "one.pagein")
    else:
        store = PostgresUpkeep(request.getfixturevalue("postgres"), f"segments_{schema()}")
    yield store
    store.close()


def test_versions_answer_the_same_from_segments(
    store: SqliteUpkeep | PostgresUpkeep, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("pagein.store.sql.sql_versions.RECORDS", replace(RECORDS, most=10))
    for number in range(45):
        put(store, a_file(1 + number % 7, f"content {number}"))
    before = (store.log(), [store.history(object_number(one)) for one in range(1, 8)])
    while store.bundle_more():
        pass
    with store._database.open_reader() as rows:
        joined = rows.execute("SELECT sum(texts) FROM record_segment WHERE texts > 1").fetchone()
    assert joined is not None
    assert joined[0] == 40
    assert (store.log(), [store.history(object_number(one)) for one in range(1, 8)]) == before
    put(store, a_file(1, "the last"))
    assert store.history(object_number(1))[:-1] == before[1][0]


def test_a_version_without_its_record_is_damaged_and_no_other(store: SqliteUpkeep | PostgresUpkeep) -> None:
    for number in range(1, 4):
        put(store, a_file(number, "content"))
    with store._database.open_writer() as rows:
        RECORDS.drop(rows, [2])
    assert store.current(object_number(1)) is not None
    with pytest.raises(StoreError):
        store.current(object_number(2))
