"""Blobs stored together in bundles: every answer as before, in less room, and nothing left of what is removed."""

import hashlib
import sqlite3
import zlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pagein.errors import DamagedBlob, MissingBlob
from pagein.model.names import ContentHash
from pagein.model.versions import Draft
from pagein.store.sql.bundle_sources import BundleSource
from pagein.store.sql.packed_bytes import AS_IT_IS, BUNDLE, DIFFERENCE, MEMBER, pack_bundle, unpack
from pagein.store.sql.pinned_texts import ShortContents
from pagein.store.sql.sql_bundles import BlobBundle, bundle_of, dissolve_bundle, load_bundle
from pagein.store.sql.sql_rows import Rows
from pagein.store.sql.sqlite_schema import BLOB_TABLES, MIGRATIONS
from pagein.store.upkeep.postgres_upkeep import PostgresUpkeep
from pagein.store.upkeep.sqlite_upkeep import SqliteUpkeep
from pagein.testing.object_store import a_file, object_number, put

pytestmark = pytest.mark.damages_store
LATER_STEPS = [name for name, _ in MIGRATIONS[[name for name, _ in MIGRATIONS].index("bundles of blobs") :]]
LINES = [f"{zlib.crc32(b'%d' % number):08x} is line {number} of a log of the service" for number in range(3_000)]
CONTENTS = [
    "\n".join(LINES[(first * 7) % 90 : (first * 7) % 90 + 40]).encode() + b" %d" % first for first in range(120)
]


@pytest.fixture(autouse=True)
def small_bundles(monkeypatch: pytest.MonkeyPatch) -> None:
    """Fill a bundle with fewer bytes, so that few contents show the same."""
    monkeypatch.setattr("pagein.store.sql.sql_bundles._SIZE", 1 << 16)
    monkeypatch.setattr("pagein.store.sql.sql_bundles._PACKED", 1 << 14)
    monkeypatch.setattr("pagein.store.sql.file_bundles._PACKED", 1 << 6)


@pytest.fixture(params=["sqlite", "postgres"])
def store(
    request: pytest.FixtureRequest, tmp_path: Path, schema: Callable[[], str]
) -> Iterator[SqliteUpkeep | PostgresUpkeep]:
    store: SqliteUpkeep | PostgresUpkeep
    if request.param == "sqlite":
        store = SqliteUpkeep(tmp_path / "one.pagein")
    else:
        store = PostgresUpkeep(request.getfixturevalue("postgres"), f"bundles_{schema()}")
    yield store
    store.close()


def bundled(store: SqliteUpkeep | PostgresUpkeep) -> int:
    """Bundle what can be bundled, and return how many blobs that were."""
    done = 0
    while more := store.bundle_more():
        done += more
    return done


def test_a_bundle_changes_no_answer_and_takes_less_room(store: SqliteUpkeep | PostgresUpkeep) -> None:
    names = store.put_many(CONTENTS)
    count, size = store.figures()
    assert bundled(store) >= 60
    assert [store.get(name) for name in names] == CONTENTS
    assert (sorted(store.names()), store.figures()[0]) == (sorted(names), count)
    assert store.figures()[1] < size / 2
    assert set(store.blob_sizes()) == set(names)
    assert sum(store.blob_sizes().values()) <= store.figures()[1]
    assert store.put_many(CONTENTS) == names
    assert bundled(store) == 0


def test_contents_that_move_to_another_bundle_while_they_are_read_together_are_not_called_damaged(
    store: SqliteUpkeep | PostgresUpkeep, monkeypatch: pytest.MonkeyPatch
) -> None:
    names = store.put_many(CONTENTS)
    bundled(store)
    moved: list[int] = []

    def load_late(rows: Rows, bundle: int) -> bytes:
        if len(moved) < 3:
            moved.append(bundle)
            with store._database.open_writer() as others:
                dissolve_bundle(others, bundle)
            assert bundled(store)
        return load_bundle(rows, bundle)

    monkeypatch.setattr("pagein.store.sql.blob_batches.load_bundle", load_late)
    assert list(store.load(names)) == CONTENTS
    assert len(moved) == 3


def test_what_is_no_longer_than_its_place_would_be_stays_in_its_row(store: SqliteUpkeep | PostgresUpkeep) -> None:
    spans = [b"[[1,%d]]" % number for number in range(1, 1_200)]  # of eight bytes, too, as long as a place
    names = store.put_many(spans)
    store.put_many(CONTENTS)
    assert bundled(store) >= 60
    assert (list(store.load(names)), store.get(names[42])) == (spans, spans[42])
    with store._database.open_reader() as rows:
        where = {
            bytes(name): (codec, bytes(data))
            for name, codec, data in rows.execute("SELECT hash, codec, data FROM blob").fetchall()
        }
    assert [where[bytes.fromhex(name.hex)] for name in names] == [(AS_IT_IS, one) for one in spans]
    assert store.drop_blobs(names[:5]) == 5
    assert list(store.load(names[5:])) == spans[5:]


def test_the_words_of_users_stay_out_of_bundles(store: SqliteUpkeep | PostgresUpkeep) -> None:
    texts = [content.decode() for content in CONTENTS]
    for number, text in enumerate(texts):
        put(store, Draft(id=object_number(number), type="user" if number % 2 else "note", content=text))
    assert bundled(store) >= 30
    with store._database.open_reader() as rows:
        found = rows.execute("SELECT hash FROM blob WHERE codec = ?", (MEMBER,)).fetchall()
    members = {bytes(name) for (name,) in found}
    asked = {hashlib.sha256(text.encode()).digest() for text in texts[1::2]}
    assert members
    assert asked.isdisjoint(members)
    assert list(store.load([ContentHash.of(text.encode()) for text in texts])) == CONTENTS


def test_a_large_blob_that_packs_small_holds_no_other_up(store: SqliteUpkeep | PostgresUpkeep) -> None:
    store.put(b"=" * 100_000)
    names = store.put_many(CONTENTS)
    assert bundled(store) >= 60
    assert [store.get(name) for name in names] == CONTENTS


def test_nothing_is_left_of_a_removed_member(store: SqliteUpkeep | PostgresUpkeep) -> None:
    names = store.put_many(CONTENTS)
    bundled(store)
    gone, left = names[3], [name for name in names if name != names[3]]
    assert store.drop_blobs([gone]) == 1
    with pytest.raises(MissingBlob):
        store.get(gone)
    with store._database.open_reader() as rows:
        bundles = rows.execute("SELECT data FROM blob WHERE codec = ?", (BUNDLE,)).fetchall()
        waiting = rows.execute("SELECT packed FROM alone JOIN blob ON blob.number = alone.number").fetchall()
        orphans = rows.execute("SELECT count(*) FROM alone WHERE number NOT IN (SELECT number FROM blob)").fetchone()
    assert not any(CONTENTS[3] in unpack(BUNDLE, bytes(data)) for (data,) in bundles)
    assert (len(waiting) >= 20, orphans) == (True, (0,))
    assert [store.get(name) for name in left] == [one for one in CONTENTS if one != CONTENTS[3]]
    assert bundled(store)  # the others are bundled again
    assert [store.get(name) for name in left] == [one for one in CONTENTS if one != CONTENTS[3]]


def test_a_version_is_a_delta_against_a_member(store: SqliteUpkeep | PostgresUpkeep) -> None:
    put(store, a_file(1, CONTENTS[0].decode()))
    store.put_many(CONTENTS)
    bundled(store)
    put(store, a_file(1, CONTENTS[0].decode() + "\nmore"))
    first, second = store.history(object_number(1))
    assert (store.content(first), store.content(second)) == (CONTENTS[0].decode(), CONTENTS[0].decode() + "\nmore")
    assert store.drop_blobs([ContentHash.of(CONTENTS[0])]) == 1
    assert store.content(second) == CONTENTS[0].decode() + "\nmore"


def test_deltas_are_in_bundles_and_what_is_based_on_them_stays(store: SqliteUpkeep | PostgresUpkeep) -> None:
    texts = [CONTENTS[0].decode() + "\n" + "\n".join(LINES[:number]) for number in range(1, 9)]
    for text in texts[:6]:
        put(store, a_file(1, text))
    store.put_many(CONTENTS)
    assert bundled(store)
    with store._database.open_reader() as rows:
        left = rows.execute("SELECT count(*) FROM blob WHERE codec = ?", (DIFFERENCE,)).fetchone()
    for text in texts[6:]:
        put(store, a_file(1, text))
    assert left == (0,)
    assert [store.content(one) for one in store.history(object_number(1))] == texts
    assert store.drop_blobs([ContentHash.of(texts[5].encode())]) == 1
    assert [store.content(one) for one in store.history(object_number(1)) if one.number != 6] == texts[:5] + texts[6:]
    assert store.load([ContentHash.of(text.encode()) for text in texts[6:]]) == [text.encode() for text in texts[6:]]


def test_a_blob_that_is_removed_while_its_bundle_is_made_is_in_no_bundle(
    store: SqliteUpkeep | PostgresUpkeep, monkeypatch: pytest.MonkeyPatch
) -> None:
    names = store.put_many(CONTENTS)

    def remove_meanwhile(contents: ShortContents, _: Sequence[BundleSource]) -> BlobBundle:
        assert store.drop_blobs([names[2]]) == 1
        return bundle_of(contents)

    with monkeypatch.context() as patched:
        patched.setattr("pagein.store.sql.sql_blobs.bundle_of", remove_meanwhile)
        assert store.bundle_more() == 0
    with store._database.open_reader() as rows:
        assert rows.execute("SELECT count(*) FROM blob WHERE codec = ?", (BUNDLE,)).fetchone() == (0,)
    assert bundled(store)
    assert [store.get(name) for name in names if name != names[2]] == [one for one in CONTENTS if one != CONTENTS[2]]


def test_bundles_and_deltas_of_an_older_form_move_into_larger_bundles(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "one.pagein"
    versions = [CONTENTS[0].decode() + f"\nversion {number}" for number in range(5)]
    with closing(SqliteUpkeep(path)) as store:
        monkeypatch.setattr("pagein.store.sql.sql_bundles._SIZE", 1 << 14)
        names = store.put_many(CONTENTS)
        bundled(store)
        for text in versions:
            put(store, a_file(1, text))
    with closing(sqlite3.connect(path)) as rows, rows:  # where the form before had deltas
        rows.execute(
            "UPDATE blob SET data = (SELECT packed FROM alone WHERE alone.number = blob.number) WHERE codec = 2"
        )
        rows.execute("DELETE FROM alone WHERE number IN (SELECT number FROM blob WHERE codec = 2)")
        rows.execute("INSERT INTO unsealed(number) SELECT number FROM blob WHERE codec IN (2, 5)")
        (before,) = rows.execute("SELECT count(*) FROM blob WHERE codec = 5").fetchone()
    monkeypatch.setattr("pagein.store.sql.sql_bundles._SIZE", 1 << 17)
    with closing(SqliteUpkeep(path)) as store:
        assert [store.get(name) for name in names] == CONTENTS
        bundled(store)
        with store._database.open_reader() as rows:
            after = rows.execute("SELECT count(*) FROM blob WHERE codec = ?", (BUNDLE,)).fetchone()
            left = rows.execute("SELECT count(*) FROM unsealed").fetchone()
        assert (after is not None and 0 < after[0] < before / 2, left) == (True, (0,))
        assert [store.get(name) for name in names] == CONTENTS
        assert [store.content(one) for one in store.history(object_number(1))] == versions


def test_a_damaged_bundle_is_noticed_and_its_members_are_healed(tmp_path: Path) -> None:
    with closing(SqliteUpkeep(tmp_path / "one.pagein")) as store:
        names = store.put_many(CONTENTS)
        bundled(store)
        with closing(sqlite3.connect(tmp_path / "one.pagein")) as rows, rows:
            rows.execute("UPDATE blob SET data = zeroblob(99) WHERE codec = ?", (BUNDLE,))
            members = {bytes(name) for (name,) in rows.execute("SELECT hash FROM blob WHERE codec = ?", (MEMBER,))}
        hurt = [name for name in names if bytes.fromhex(name.hex) in members]
        assert len(hurt) >= 60
        for name in hurt:
            with pytest.raises(DamagedBlob):
                store.get(name)
        store.put_many(CONTENTS)
        assert [store.get(name) for name in names] == CONTENTS


def test_a_file_of_an_older_form_is_read_and_bundled_as_it_grows(tmp_path: Path) -> None:
    path = tmp_path / "one.pagein"
    with closing(SqliteUpkeep(path)) as store:
        old = store.put_many(CONTENTS[:10])
    with closing(sqlite3.connect(path)) as rows, rows:
        rows.execute("UPDATE blob SET data = (SELECT packed FROM alone WHERE alone.number = blob.number)")
        rows.execute("DROP TABLE alone")
        rows.execute("CREATE INDEX version_by_hash ON version(document, object_hash)")
        rows.execute("DROP TABLE record_segment")
        rows.execute("DROP INDEX version_in_full")
        rows.execute("DROP TABLE line_segment")
        rows.execute("DROP TABLE journal")
        rows.execute(next(one for one in BLOB_TABLES if "TABLE entry" in one))
        rows.execute("CREATE TRIGGER snapshot_dropped AFTER DELETE ON entry BEGIN DELETE FROM snapshot; END")
        rows.execute("DROP TABLE unsealed")
        rows.execute("DROP TABLE answer")
        rows.execute("DROP INDEX version_with_session")
        rows.execute("DROP TABLE writer_session")
        rows.execute("ALTER TABLE version DROP COLUMN of_session")
        rows.execute("DROP TABLE reference_segment")
        rows.execute("ALTER TABLE lookup DROP COLUMN further")
        rows.executemany("DELETE FROM migration WHERE name = ?", [(name,) for name in LATER_STEPS])
    with closing(SqliteUpkeep(path)) as store:
        assert [store.get(name) for name in old] == CONTENTS[:10]
        new = store.put_many(CONTENTS[10:])
        assert bundled(store)
        assert [store.get(name) for name in (*old, *new)] == CONTENTS


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=15, deadline=None)
@given(
    deeds=st.lists(st.tuples(st.sampled_from(["put", "bundle", "drop"]), st.integers(0, 11)), min_size=4, max_size=14)
)
def test_any_order_of_storing_bundling_and_removing(
    monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory, deeds: list[tuple[str, int]]
) -> None:
    monkeypatch.setattr("pagein.store.sql.sql_bundles._SIZE", 3_000)
    monkeypatch.setattr("pagein.store.sql.sql_bundles._PACKED", 500)
    kept: set[bytes] = set()
    with closing(SqliteUpkeep(tmp_path_factory.mktemp("any") / "one.pagein")) as store:
        for deed, number in deeds:
            some = CONTENTS[number * 10 : number * 10 + 3]
            match deed:
                case "put":
                    store.put_many(some)
                    kept.update(some)
                case "bundle":
                    store.bundle_more()
                case _:
                    store.drop_blobs([ContentHash.of(one) for one in some])
                    kept.difference_update(some)
            names = [name for name in store.names() if name != ContentHash.of(b"")]
            assert {store.get(name) for name in names} == kept


@given(contents=st.lists(st.binary(max_size=50), max_size=9))
def test_each_content_comes_out_of_its_bundle(contents: list[bytes]) -> None:
    data, places = pack_bundle(contents)
    assert [unpack(MEMBER, place, unpack(BUNDLE, data)) for place in places] == contents


@pytest.mark.parametrize(
    ("place", "bundle"), [(b"", b"abc"), (bytes(7), b"abc"), (bytes(7) + b"\4", b"abc"), (bytes(8), None)]
)
def test_a_damaged_place_is_damage(place: bytes, bundle: bytes | None) -> None:
    with pytest.raises(DamagedBlob):
        unpack(MEMBER, place, bundle)
