"""Answers to requests: short for those of the indexer, and the same answer for a repeated request of any kind."""

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from pagein.model.writes import Write, Written
from pagein.store.sql.sql_removal import drop_documents
from pagein.store.upkeep.sqlite_upkeep import SqliteUpkeep
from pagein.testing.object_store import a_file, object_number

SAME_HALF = ("memory:" + "0f" * 16, "memory:" + "0f" * 8 + "00" * 8)
"""Two ids of the indexer whose first halves are the same."""
OTHERS = (
    "memory:0F" + "0f" * 15,
    "memory:" + "0f" * 15,
    "memory:",
    "by hand",
    "memory:" + "ff" * 16,
    "memory:" + "00" * 16,
)


@pytest.fixture
def store(tmp_path: Path) -> Iterator[SqliteUpkeep]:
    with closing(SqliteUpkeep(tmp_path / "one.pagein")) as store:
        yield store


def test_each_request_has_its_own_answer_and_id(store: SqliteUpkeep) -> None:
    asked = [Write(request, a_file(number), 1.0) for number, request in enumerate((*SAME_HALF, *OTHERS), 1)]
    first = [store.write(write) for write in asked]
    assert all(isinstance(one, Written) and one.change == "created" for one in first)
    for write, done in zip(asked, first, strict=True):
        again = store.write(write)
        assert isinstance(again, Written)
        assert isinstance(done, Written)
        assert (again.version, again.change, again.repeated) == (done.version, "created", True)
        assert store.answered(write.request) == done.version
    assert sorted(store.requests()) == sorted((write.request, at) for at, write in enumerate(asked, 1))
    assert store.answered("memory:" + "0f" * 8 + "11" * 8) is None


def test_a_request_of_the_indexer_takes_few_bytes(store: SqliteUpkeep, tmp_path: Path) -> None:
    store.write(Write(SAME_HALF[0], a_file(1), 1.0))
    store.write(Write("same again", a_file(1), 2.0))
    with closing(sqlite3.connect(tmp_path / "one.pagein")) as rows:
        assert rows.execute("SELECT length(rest), sequence, change FROM answer").fetchall() == [(8, 1, 0)]
        assert rows.execute("SELECT id, sequence, change FROM request").fetchall() == [("same again", 1, "unchanged")]


@pytest.mark.parametrize("many", [1, 600])
def test_answers_go_with_their_objects(store: SqliteUpkeep, tmp_path: Path, many: int) -> None:
    with store.exclusive():
        for number in range(many + 1):
            store.write(Write(f"memory:{number:032x}", a_file(number), 1.0))
    with closing(sqlite3.connect(tmp_path / "one.pagein")) as rows:
        keep = object_number(0)
        (kept,) = rows.execute("SELECT number FROM document WHERE id = ?", (keep,)).fetchone()
    with store._database.open_writer() as writer:
        found = writer.execute("SELECT number FROM document WHERE number <> ?", (kept,)).fetchall()
        drop_documents(writer, [number for (number,) in found])
    assert list(store.requests()) == [(f"memory:{0:032x}", 1)]
