import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.store.search.pattern_texts import texts
from tests.store.search.searched_stores import Desk, indexed

from pagein.archive import archive_of
from pagein.model.search_query import Search
from pagein.store.search.index_builder import grow
from pagein.store.search.shelves import Shelf, VersionShelf
from pagein.store.search.sql_shelf import SqlShelf
from pagein.store.sqlite.sqlite_store import SqliteStore
from pagein.store.upkeep.sqlite_upkeep import SqliteUpkeep


def test_large_contents_make_batches_of_their_own(tmp_path: Path) -> None:
    desk = indexed(tmp_path)
    assert desk.index is not None
    desk.put("small")
    desk.put("x" * 1_200_000)
    desk.put("small too")
    seen = []
    while grow(desk.index, desk.shelf):
        seen.append(desk.index.covered_place(desk.shelf))
    assert seen == [1, 2, 3]


_BUILD = """
import sys
from pathlib import Path
from pagein.store.search.index_builder import grow
from pagein.store.search.sqlite_index import SqliteIndex
from pagein.store.search.sql_shelf import SqlShelf
from pagein.store.sqlite.sqlite_store import SqliteStore
place = Path(sys.argv[1])
index, shelf = SqliteIndex(place / "store.pagein-search"), SqlShelf(SqliteStore(place / "store.pagein"))
print("ready", flush=True)
while grow(index, shelf):
    pass
print("done", flush=True)
"""


@pytest.mark.parametrize("moment", [0.01, 0.03, 0.06, 0.1, 0.15, 0.2])
def test_a_builder_that_is_killed_leaves_an_index_that_can_be_gone_on_with(tmp_path: Path, moment: float) -> None:
    store = SqliteStore(tmp_path / "store.pagein")
    desk = indexed(tmp_path, store)
    for number in range(250):
        desk.put(f"text {number} " + "filling words " * 200)
    process = subprocess.Popen([sys.executable, "-c", _BUILD, str(tmp_path)], stdout=subprocess.PIPE)  # noqa: S603 - our own
    assert process.stdout is not None
    process.stdout.readline()
    time.sleep(moment)
    os.kill(process.pid, signal.SIGKILL)
    process.wait()
    process.stdout.close()
    assert len(desk.find("text 77 ").hits) == 1
    desk.build()
    assert desk.find("text 77 ").looked_into == 1
    assert len(desk.find("text 2 ").hits) == 1
    store.close()


def test_two_processes_build_one_index_together(tmp_path: Path) -> None:
    store = SqliteStore(tmp_path / "store.pagein")
    desk = indexed(tmp_path, store)
    for number in range(300):
        desk.put(f"text {number} " + "filling words " * 50)
    command = [sys.executable, "-c", _BUILD, str(tmp_path)]
    processes = [subprocess.Popen(command, stdout=subprocess.PIPE) for _ in range(2)]  # noqa: S603 - our own
    for process in processes:
        out, _ = process.communicate(timeout=300)
        assert out.split() == [b"ready", b"done"]
    assert desk.index is not None
    assert desk.index.covered_place(desk.shelf) == 300
    assert desk.find("text 299 ").looked_into == 1
    store.close()


def test_an_archive_brings_its_index_along(tmp_path: Path) -> None:
    store = SqliteUpkeep(tmp_path / "store.pagein")
    desk = Desk(store)
    desk.put("needle")
    with archive_of(store) as archive:
        assert archive.index.catch_up().made == 1
        assert archive.index.catch_up().followed == 0
        assert archive.search(Search(pattern="no such needle")).looked_into == 0
        assert len(archive.search(Search(pattern="needle")).hits) == 1
    assert desk.store.current("call-1") is not None
    store.close()


# --- the shelf of a SQL store says what the store's own answers say ---


@settings(max_examples=25, deadline=None)
@given(contents=st.lists(st.tuples(st.integers(0, 2), texts, st.booleans()), min_size=1, max_size=12))
def test_a_sql_shelf_says_what_the_port_says(
    tmp_path_factory: pytest.TempPathFactory, contents: list[tuple[int, str, bool]]
) -> None:
    store = SqliteStore(tmp_path_factory.mktemp("store") / "store.pagein")
    desk = Desk(store)
    for key, content, long in contents:
        body = content + ("some filling so that differences pay\n" * 20 if long else "")
        desk.put(body, key=f"call-{key}", path=f"p/{key}", nickname=f"name {key}", additional={"summary": content})
    plain: Shelf = VersionShelf(store)
    fast: Shelf = SqlShelf(store)
    assert fast.last() == plain.last()
    things = plain.between(0, 99)
    assert fast.between(0, 99) == things
    assert fast.between(2, 4) == plain.between(2, 4)
    assert fast.between(3, 3) == ()
    assert fast.at([5, 2, 99]) == plain.at([5, 2, 99]) == tuple(thing for thing in things if thing.place in (2, 5))
    for name in ("call-1", "name 2", "nobody"):
        assert fast.of(name) == plain.of(name)
    for thing in things:
        assert fast.newest({thing.id}) == plain.newest({thing.id})
        assert fast.mark(thing.place) == plain.mark(thing.place)
        names = [part for _, part in thing.parts if not isinstance(part, bytes)]
        assert fast.load(names) == plain.load(names)
    assert fast.mark(99) == plain.mark(99) == ""
    store.close()


@pytest.mark.damages_store
def test_the_index_names_damaged_versions_and_finds_the_others(tmp_path: Path) -> None:
    import sqlite3

    path = tmp_path / "store.pagein"
    store = SqliteStore(path)
    desk = Desk(store)
    for number in range(6):
        desk.put(f"needle {number} " + f"{number} words\n" * 100)
    store.close()
    with sqlite3.connect(path) as connection:
        connection.execute("UPDATE version SET record = '{}' WHERE sequence = 2")
        connection.execute("UPDATE blob SET data = x'00112233' WHERE number = 3")
        connection.execute("DELETE FROM blob WHERE number = 5")
    connection.close()
    store = SqliteStore(path)
    shelf = SqlShelf(store)
    from pagein.store.search.searcher import Searcher

    results = Searcher([shelf]).search(Search(pattern="needle"))
    assert [hit.where.id for hit in results.hits] == ["call-6", "call-4", "call-1"]
    assert sorted(one.id for one in results.unsearched) == ["call-3", "call-5", "version 2"]
    store.close()
