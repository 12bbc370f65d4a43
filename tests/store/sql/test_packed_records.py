"""Records in their short forms: each comes back, and the hash of the content is stored once."""

import json
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pagein.errors import DamagedBlob
from pagein.model.versions import Draft
from pagein.store.sql.packed_records import RECORDS, full_record, shorten_record
from pagein.store.sql.sql_blobs import raw
from pagein.store.upkeep.postgres_upkeep import PostgresUpkeep
from pagein.store.upkeep.sqlite_upkeep import SqliteUpkeep
from pagein.testing.object_store import a_file, object_number, put

# few bytes, among them the marks, so that hashes are made of marks and equal one another
HASHES = st.one_of(
    st.binary(min_size=32, max_size=32), st.lists(st.sampled_from([1, 2]), min_size=32, max_size=32).map(bytes)
)


@given(st.lists(HASHES, max_size=4), st.one_of(st.none(), HASHES), st.integers(0, 1), st.text())
def test_a_record_comes_back_from_its_short_form(
    names: list[bytes], content: bytes | None, again: int, title: str
) -> None:
    named = [*names, *([content] * again if content is not None else [])]
    record = json.dumps(
        {
            "additional": {f"part {place}": one.hex() for place, one in enumerate(named)},
            "content": None if content is None else content.hex(),
            "metadata": {"title": title, "digits": "0" * 63, "content": [one.hex() for one in named]},
        }
    )
    assert full_record(shorten_record(record, content), content) == record
    assert full_record(shorten_record(record)) == record


def test_the_hash_of_a_content_is_in_the_row_of_its_version_alone(tmp_path: Path) -> None:
    with closing(SqliteUpkeep(tmp_path / "one.pagein")) as store:
        version = put(store, a_file(1, "a text"))
        assert version.content_hash is not None
        with store._database.open_reader() as rows:
            (short,) = RECORDS.load(rows, [version.sequence]).values()
        assert raw(version.content_hash) not in short
        assert store.log() == (version,)


def many(number: int, **parts: str) -> Draft:
    return Draft(id=object_number(number), type="chat", metadata={"n": number}, additional=parts)


def sealed(store: SqliteUpkeep | PostgresUpkeep) -> None:
    while store.bundle_more():
        pass


def shorts_of(store: SqliteUpkeep | PostgresUpkeep) -> list[bytes]:
    with store._database.open_reader() as rows:
        return list(RECORDS.load(rows, range(1, 1_000)).values())


@pytest.fixture
def small_segments(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pagein.store.sql.sql_versions.RECORDS", replace(RECORDS, most=10))


@pytest.mark.usefixtures("small_segments")
def test_hashes_of_additional_fields_are_short_in_segments(store: SqliteUpkeep | PostgresUpkeep) -> None:
    versions = [put(store, many(1, **{f"turn {one}": f"said {one}" for one in range(last)})) for last in range(1, 36)]
    sealed(store)
    assert list(store.log()) == versions
    assert [store.additional(versions[-1], f"turn {one}") for one in range(35)] == [f"said {one}" for one in range(35)]
    names = [raw(name) for name in versions[-1].additional.values()]
    inside = [short for short in shorts_of(store) if not any(name in short for name in names)]
    assert len(inside) == 30
    assert sum(name[:6] in short for name in names for short in inside) == sum(range(1, 31))


@pytest.mark.damages_store
@pytest.mark.usefixtures("small_segments")
def test_blobs_that_begin_alike_are_told_apart(store: SqliteUpkeep | PostgresUpkeep) -> None:
    first = [put(store, many(number, part=f"text {number}")) for number in range(1, 11)]
    sealed(store)
    names = [raw(one.additional["part"]) for one in first]
    with store._database.open_writer() as rows:
        for number, name in enumerate(names):  # before and behind the blob itself
            other = name[:6] + bytes([255 * (number % 2)]) * 26
            rows.execute("INSERT INTO blob(hash, codec, data) VALUES(?, 0, ?)", (other, b"other"))
    assert list(store.log()) == first
    again = [put(store, many(number, part=f"text {number}", more="")) for number in range(1, 11)]
    sealed(store)
    assert list(store.log()) == [*first, *again]
    assert sum(name in short for name in names for short in shorts_of(store)) == 10


@pytest.mark.damages_store
@pytest.mark.usefixtures("small_segments")
def test_a_record_whose_blob_is_lost_is_damaged_until_the_blob_is_stored_again(tmp_path: Path) -> None:
    with closing(SqliteUpkeep(tmp_path / "one.pagein")) as store:
        versions = [put(store, many(number, part=f"text {number}")) for number in range(1, 11)]
        sealed(store)
        with store._database.open_writer() as rows:
            rows.execute("DELETE FROM blob WHERE hash = ?", (raw(versions[4].additional["part"]),))
        with pytest.raises(DamagedBlob):
            store.current(object_number(5))
        assert [store.current(object_number(number)) for number in (4, 6)] == [versions[3], versions[5]]
        store.put(b'"text 5"')
        assert list(store.log()) == versions
