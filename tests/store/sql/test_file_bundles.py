"""What the history of one file needs, bundled together: every answer as before, in few bundles, and bundled again seldom."""

import sqlite3
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from functools import cache
from hashlib import sha256
from math import log2
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pagein.errors import DamagedBlob
from pagein.model.names import ContentHash
from pagein.model.references import Reference
from pagein.model.versions import Draft, Version
from pagein.store.sql import sql_blobs
from pagein.store.sql.bundle_sources import BundleSource
from pagein.store.sql.file_bundles import FileStep, take_step
from pagein.store.sql.packed_bytes import BUNDLE, MEMBER
from pagein.store.sql.pinned_texts import ShortContents
from pagein.store.sql.sql_bundles import BlobBundle, bundle_of, load_bundle, put_bundle
from pagein.store.sql.sql_rows import Rows
from pagein.store.upkeep.postgres_upkeep import PostgresUpkeep
from pagein.store.upkeep.sqlite_upkeep import SqliteUpkeep
from pagein.testing.object_store import object_number, put
from pagein.upkeep import check_store

pytestmark = pytest.mark.damages_store
Store = SqliteUpkeep | PostgresUpkeep
FILES = 12


@cache
def line(number: int) -> str:
    return sha256(b"%d" % number).hexdigest()


def text_of(file: int, version: int) -> str:
    """Return a text of twenty lines, most of which all versions of the file have."""
    return "\n".join(line(1_000 * file + (place if place != version % 20 else 900 + version)) for place in range(20))


def write(store: Store, file: int, version: int) -> Version:
    path = f"/work/{file % 3}/{file}.py"
    draft = Draft(id=object_number(file), type="file", content=text_of(file, version), metadata={"path": path})
    return put(store, draft)


def pack(store: Store) -> int:
    """Bundle what there is, and return how many blobs, rows or texts moved."""
    done = 0
    while more := store.bundle_more(rest=True):
        done += more
    return done


def bundles_of(store: Store, names: Sequence[ContentHash]) -> Counter[int]:
    """Return how many of these blobs are in each bundle."""
    wanted = {bytes.fromhex(name.hex) for name in names}
    with store._database.open_reader() as rows:
        found = rows.execute("SELECT hash, base FROM blob WHERE codec = ?", (MEMBER,)).fetchall()
    return Counter(int(base) for name, base in found if bytes(name) in wanted)


def contents(store: Store, file: int) -> list[ContentHash]:
    return [one.content_hash for one in store.history(object_number(file)) if one.content_hash is not None]


def assert_all_there(store: Store, written: dict[int, list[int]]) -> None:
    for file, versions in written.items():
        texts = [text_of(file, version).encode() for version in versions]
        assert list(store.load([ContentHash.of(text) for text in texts])) == texts


@pytest.fixture(autouse=True)
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Fill bundles and runs with fewer bytes, so that few texts show the same."""
    monkeypatch.setattr("pagein.store.sql.file_bundles._PACKED", 1 << 13)
    monkeypatch.setattr("pagein.store.sql.file_bundles._PACKED_REST", 1 << 8)
    monkeypatch.setattr("pagein.store.sql.file_bundles._SIZE", 1 << 15)


@pytest.fixture(params=["sqlite", "postgres"])
def store(request: pytest.FixtureRequest, tmp_path: Path, schema: Callable[[], str]) -> Iterator[Store]:
    store: Store
    if request.param == "sqlite":
        store = SqliteUpkeep(tmp_path / "one.pagein")
    else:
        store = PostgresUpkeep(request.getfixturevalue("postgres"), f"file_bundles_{schema()}")
    with closing(store):
        yield store


def test_the_texts_of_a_file_are_together_whatever_was_written_between_them(store: Store) -> None:
    for version in range(18):
        for file in range(FILES):
            write(store, file, version)
    pack(store)
    files = {file: bundles_of(store, contents(store, file)) for file in range(FILES)}
    assert {len(bundles) for bundles in files.values()} == {1}
    assert len({bundle for bundles in files.values() for bundle in bundles}) > FILES // 3
    assert_all_there(store, {file: list(range(18)) for file in range(FILES)})
    assert check_store(store).findings == []
    assert pack(store) == 0


def test_what_is_new_is_bundled_in_runs_and_no_text_is_bundled_often(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    moved: list[int] = []

    def put_counted(rows: Rows, bundle: BlobBundle) -> int:
        moved.append(put_bundle(rows, bundle))
        return moved[-1]

    monkeypatch.setattr(sql_blobs, "put_bundle", put_counted)
    monkeypatch.setattr("pagein.store.sql.file_bundles._SIZE", 1 << 20)
    rounds = 40
    for version in range(rounds):
        for file in range(FILES):
            write(store, file, version)
        pack(store)
        assert pack(store) == 0
    most = log2(rounds) + 1
    counts = [len(bundles_of(store, contents(store, file))) for file in range(FILES)]
    assert max(counts) <= most
    assert sum(moved) <= most * rounds * FILES
    assert_all_there(store, {file: list(range(rounds)) for file in range(FILES)})


def test_nothing_is_away_in_any_step_and_another_process_goes_on_with_a_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("pagein.store.sql.file_bundles._SIZE", 1 << 16)
    path = tmp_path / "one.pagein"
    written = {file: list(range(30)) for file in range(FILES)}
    with closing(SqliteUpkeep(path)) as store:
        for version in range(15):
            for file in range(FILES):
                write(store, file, version)
        pack(store)
        for version in range(15, 30):
            for file in range(FILES):
                write(store, file, version)
    steps = moved = 0
    dissolved = False
    while moved or not steps:
        with closing(SqliteUpkeep(path)) as store:  # as after kill -9: nothing but the file is left of the step before
            moved, steps = store.bundle_more(rest=True), steps + 1
            assert_all_there(store, written)
            with store._database.open_reader() as rows:
                waiting = rows.execute("SELECT count(*) FROM alone").fetchall()
        dissolved = dissolved or waiting > [(15 * FILES,)]
    with closing(SqliteUpkeep(path)) as store:
        assert {len(bundles_of(store, contents(store, file))) for file in range(FILES)} == {1}
    assert (steps > 12, dissolved) == (True, True)


def test_a_step_reads_no_more_where_its_run_is_larger(tmp_path: Path) -> None:
    taken: list[float] = []
    for files in (30, 120):
        with closing(SqliteUpkeep(tmp_path / f"{files}.pagein")) as store:
            with store.exclusive():
                for file in range(files):
                    for version in range(12):
                        write(store, file, version)
            ticks, steps = list[int](), list[int]()
            with store._database.open_reader() as rows:
                rows.set_progress_handler(lambda ticks=ticks: ticks.append(1), 100)  # type: ignore[misc]
            moved = 1
            while moved:
                before = len(ticks)
                moved = store.bundle_more(rest=True)
                steps.append(len(ticks) - before)
            assert len(steps) > files // 2
            taken.append(sorted(steps)[len(steps) // 2])
            assert sum(steps) < 3 * len(steps) * taken[0]  # the order, which is made once, included
    assert taken[1] < 1.2 * taken[0]


def test_a_run_of_an_earlier_pagein_goes_on(tmp_path: Path) -> None:
    path = tmp_path / "one.pagein"
    with closing(SqliteUpkeep(path)) as store:
        for version in range(18):
            for file in range(FILES):
                write(store, file, version)
        for _ in range(3):
            assert store.bundle_more(rest=True)
    with closing(sqlite3.connect(path)) as rows, rows:
        assert rows.execute("SELECT count(*) FROM file_order").fetchone() > (FILES,)
        rows.execute("DROP TABLE file_order")
        rows.execute("DELETE FROM migration WHERE name = 'order of the texts of files'")
    with closing(SqliteUpkeep(path)) as store:
        pack(store)
        with store._database.open_reader() as rows:
            assert rows.execute("SELECT count(*) FROM alone").fetchone() == (0,)
        assert {len(bundles_of(store, contents(store, file))) for file in range(FILES)} == {1}
        assert_all_there(store, {file: list(range(18)) for file in range(FILES)})


def test_the_arguments_of_edits_are_with_the_texts_of_the_file_and_others_are_not(store: Store) -> None:
    arguments = {}
    for version in range(6):
        for file in range(FILES):
            made = write(store, file, version)
            for deed in ("edit", "write"):
                args = {"new": line(file), "old": line(version), "deed": deed}
                files = (made.static(relation=deed), Reference("nobody", relation="edit"))[: 1 + (deed == "write")]
                draft = Draft(
                    id=f"{deed} {file} {version}",
                    type="toolcall",
                    content="ok",
                    metadata={"file_refs": files},
                    additional={"args": args},
                )
                arguments[deed, file, version] = put(store, draft).additional["args"]
    pack(store)
    for file in range(FILES):
        edits = [arguments["edit", file, version] for version in range(6)]
        assert bundles_of(store, contents(store, file)).keys() == bundles_of(store, edits).keys()
    with store._database.open_reader() as rows:
        (noted,) = rows.execute("SELECT count(*) FROM file_text").fetchone() or (0,)
    assert noted == 2 * 6 * FILES


def test_nothing_is_left_of_a_removed_text(store: Store) -> None:
    for version in range(12):
        for file in range(FILES):
            write(store, file, version)
    pack(store)
    gone = text_of(3, 5).encode()
    assert store.drop_blobs([ContentHash.of(gone)]) == 1
    pack(store)
    with store._database.open_reader() as rows:
        bundles = rows.execute("SELECT number FROM blob WHERE codec = ?", (BUNDLE,)).fetchall()
        assert not any(line(3_905).encode() in load_bundle(rows, int(number)) for (number,) in bundles)
        stray = "SELECT count(*) FROM file_text WHERE number NOT IN (SELECT number FROM blob)"
        assert (bundles != [], rows.execute(stray).fetchall()) == (True, [(0,)])
    left = {file: [version for version in range(12) if (file, version) != (3, 5)] for file in range(FILES)}
    assert_all_there(store, left)
    assert pack(store) == 0


def test_a_text_that_is_removed_while_its_bundle_is_made_is_in_no_bundle(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    for version in range(8):
        for file in range(FILES):
            write(store, file, version)
    gone: list[int] = []

    def remove_meanwhile(contents: ShortContents, likely: Sequence[BundleSource] = ()) -> BlobBundle:
        if not gone:
            gone.append(store.drop_blobs([ContentHash.of(next(iter(contents.contents.values())))]))
        return bundle_of(contents, likely)

    monkeypatch.setattr("pagein.store.sql.file_bundles.bundle_of", remove_meanwhile)
    pack(store)
    assert pack(store) + gone[0] > 1
    left = {file: [version for version in range(8) if (file, version) != (0, 0)] for file in range(FILES)}
    assert_all_there(store, left)


def test_a_run_ends_where_its_bundle_gets_the_number_of_a_dissolved_one(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("pagein.store.sql.file_bundles._SIZE", 1 << 20)
    for version in range(5):
        for file in range(FILES):
            write(store, file, version)
    written: list[int] = []

    def write_meanwhile(contents: ShortContents, likely: Sequence[BundleSource] = ()) -> BlobBundle:
        for version in range(5, 12) if not written else ():
            written.extend(write(store, file, version).sequence for file in range(FILES))
        return bundle_of(contents, likely)

    monkeypatch.setattr("pagein.store.sql.file_bundles.bundle_of", write_meanwhile)
    steps = 0
    while store.bundle_more(rest=True):
        steps += 1
        assert (
            steps < 20
        )  # the bundle of the first run is the newest blob as the second run begins, and is dissolved first
    assert len(written) == 7 * FILES
    assert {len(bundles_of(store, contents(store, file))) for file in range(FILES)} == {1}
    assert_all_there(store, {file: list(range(12)) for file in range(FILES)})


def test_a_run_that_another_process_begins_between_two_halves_of_a_step_is_not_ended(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    for version in range(6):
        for file in (1, 4, 7, 10, 2, 5, 8, 11):
            write(store, file, version)
    pack(store)
    for version in range(25):  # the first by path: they fill a bundle, and one more text waits alone
        write(store, 0, version)
    write(store, 3, 0)
    begun: list[int] = []

    def take_late(rows: Rows, step: FileStep) -> int:
        if not begun:  # the other process had computed the same step
            begun.append(take_step(rows, step))
        return take_step(rows, step)

    monkeypatch.setattr("pagein.store.sql.sql_blobs.take_step", take_late)
    pack(store)
    assert begun == [26]
    with store._database.open_reader() as rows:
        left = (
            "SELECT count(*) FROM file_text JOIN blob ON blob.number = file_text.number WHERE codec = ? AND base <= run"
        )
        assert rows.execute(left, (MEMBER,)).fetchone() == (0,)


def test_a_damaged_text_stays_where_it_is_and_holds_no_other_up(tmp_path: Path) -> None:
    path = tmp_path / "one.pagein"
    with closing(SqliteUpkeep(path)) as store:
        for version in range(8):
            for file in range(FILES):
                write(store, file, version)
        for change in ("UPDATE alone SET packed = zeroblob(99) WHERE number = 40", "SELECT 1"):
            with closing(sqlite3.connect(path)) as rows, rows:
                rows.execute(change)
            pack(store)
        with closing(sqlite3.connect(path)) as rows:
            (name,) = rows.execute("SELECT hash FROM blob WHERE number = 40").fetchone()
            others = rows.execute("SELECT count(*) FROM alone WHERE number <> 40").fetchone()
        with pytest.raises(DamagedBlob):
            store.get(ContentHash(bytes(name).hex()))
        assert others < (20,)  # those that were deltas against it
        assert pack(store) == 0


def test_a_damaged_bundle_does_not_end_a_later_run(tmp_path: Path) -> None:
    path = tmp_path / "one.pagein"
    with closing(SqliteUpkeep(path)) as store:
        for version in range(8):
            for file in range(FILES):
                write(store, file, version)
        pack(store)
        with closing(sqlite3.connect(path)) as rows, rows:
            rows.execute(
                "UPDATE blob SET data = zeroblob(99) WHERE number = (SELECT min(number) FROM blob WHERE codec = 5)"
            )
        new = [text_of(file, version) for version in range(8, 16) for file in range(FILES, 2 * FILES)]
        for version in range(8, 16):
            for file in range(FILES, 2 * FILES):
                write(store, file, version)
        pack(store)
        assert pack(store) == 0
        assert list(store.load([ContentHash.of(text.encode()) for text in new])) == [text.encode() for text in new]


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=25, deadline=None)
@given(
    deeds=st.lists(
        st.tuples(st.sampled_from(["write", "write", "step", "pack", "drop"]), st.integers(0, 5), st.integers(0, 9)),
        min_size=6,
        max_size=40,
    )
)
def test_any_order_of_writing_bundling_and_removing(
    tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch, deeds: list[tuple[str, int, int]]
) -> None:
    monkeypatch.setattr("pagein.store.sql.file_bundles._PACKED", 1 << 11)
    monkeypatch.setattr("pagein.store.sql.file_bundles._SIZE", 1 << 12)
    kept: set[tuple[int, int]] = set()
    with closing(SqliteUpkeep(tmp_path_factory.mktemp("any") / "one.pagein")) as store:
        for deed, file, version in deeds:
            match deed:
                case "write":
                    for one in range(version + 1):
                        write(store, file, one)
                    kept |= {(file, one) for one in range(version + 1)}
                case "step":
                    store.bundle_more()
                case "pack":
                    pack(store)
                    assert pack(store) == 0
                case _:
                    store.drop_blobs([ContentHash.of(text_of(file, version).encode())])
                    kept.discard((file, version))
            texts = [text_of(*one).encode() for one in sorted(kept)]
            assert list(store.load([ContentHash.of(text) for text in texts])) == texts
