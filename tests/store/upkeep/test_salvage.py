"""What a repair left is read back: the old file of a store, and lines that earlier repairs took out of journals."""

import base64
import json
import shutil
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from pagein.errors import BadInput
from pagein.model.entries import Entry, is_bridge
from pagein.store.sql.sql_lines import move_lines
from pagein.store.upkeep.rebuild import rebuilt
from pagein.store.upkeep.salvage import tables_of
from pagein.store.upkeep.sqlite_upkeep import SqliteUpkeep
from pagein.testing.lived_in_store import LivedIn, make_lived_in_store
from pagein.testing.upkeep_contract import export_all
from pagein.upkeep import check_store, import_from, repair_file

pytestmark = pytest.mark.damages_store


@pytest.fixture
def lived(tmp_path: Path) -> LivedIn:
    return make_lived_in_store(tmp_path / "one.pagein", tmp_path / "work", 11, 100)


def test_an_old_file_is_read_into_a_store(lived: LivedIn, tmp_path: Path) -> None:
    store = SqliteUpkeep(lived.store)
    whole = export_all(store)
    store.close()
    data = bytearray(lived.store.read_bytes())
    data[:4096] = bytes(4096)  # without the list of tables SQLite reads nothing of it
    lived.store.write_bytes(data)
    done = repair_file(lived.store)
    assert done.kept is not None
    other = SqliteUpkeep(tmp_path / "other.pagein")
    taken = import_from(other, str(done.kept))
    assert export_all(other) == whole
    assert any("first page" in one for one in taken.lost)
    again = SqliteUpkeep(lived.store)
    assert export_all(again) == whole
    assert import_from(again, str(done.kept)).added == {}
    for one in (other, again):
        assert check_store(one).is_clean
        one.close()


def test_a_repair_restores_the_single_rows_of_counting_tables(lived: LivedIn) -> None:
    """Whoever counts by it would find nothing to count."""
    connection = sqlite3.connect(lived.store)
    first = ("tally", "forgetting")
    roots = [
        connection.execute("SELECT rootpage FROM sqlite_schema WHERE name = ?", (name,)).fetchone()[0] for name in first
    ]
    connection.close()
    with lived.store.open("r+b") as file:
        for root in roots:
            file.seek((root - 1) * 4096)
            file.write(bytes(4096))
    repair_file(lived.store)
    connection = sqlite3.connect(lived.store)
    counts = {name: connection.execute(f"SELECT count(*) FROM {name}").fetchone()[0] for name in first}  # noqa: S608
    connection.close()
    assert counts == {"tally": 1, "forgetting": 1}


def test_lines_that_were_taken_out_go_back_to_their_places(lived: LivedIn, tmp_path: Path) -> None:
    """As an earlier repair left them: one entry unreadable, and all behind it in a side file."""
    store = SqliteUpkeep(lived.store)
    before = [(place, entry) for place, entry in store.news("main") if isinstance(entry, Entry)]
    cut = len(before) // 3
    gone = {place for place, _ in before[cut:]}
    lines = [line for line in store.journal_lines() if line.session == "main" and line.place in gone]
    side = tmp_path / "one.pagein.salvaged.jsonl"
    with side.open("w") as file:
        for line in lines:
            data = b"torn" if line.place == before[cut][0] else line.line
            file.write(
                json.dumps({"session": "main", "place": line.place, "line": base64.b64encode(data).decode()}) + "\n"
            )
    connection = sqlite3.connect(lived.store)
    with connection:
        own = "session = (SELECT number FROM writer_session WHERE name = 'main')"
        connection.executemany(f"DELETE FROM journal WHERE {own} AND number = ?", [(one,) for one in gone])  # noqa: S608 -- a constant
    connection.close()
    store.stand("main", before[cut - 1][1].id)
    done = import_from(store, str(side))
    assert (done.added["entry"], len(done.lost)) == (len(lines) - 1, 1)
    after = [(place, entry) for place, entry in store.news("main") if isinstance(entry, Entry)]
    assert [entry for entry in after if not is_bridge(entry[1])] == [one for one in before if one != before[cut]]
    assert store.leaf("main") == before[-1][1].id
    assert [one.id for _, one in after if is_bridge(one)] == [before[cut][1].id]
    store.append("main", [before[cut][1], before[-1][1]])
    assert list(store.news("main")) == before
    store.close()


def test_a_session_whose_name_is_lost_is_named_by_its_leaf(lived: LivedIn, tmp_path: Path) -> None:
    with closing(SqliteUpkeep(lived.store)) as store:
        before = {one.name: list(store.entries(one.name)) for one in store.sessions()}
    with closing(sqlite3.connect(lived.store)) as rows, rows:
        rows.execute("DELETE FROM writer_session")
    rebuilt(lived.store, tmp_path / "made.pagein")
    with closing(SqliteUpkeep(tmp_path / "made.pagein")) as store:
        assert {one.name: list(store.entries(one.name)) for one in store.sessions()} == before


def test_lines_of_another_store_are_refused(lived: LivedIn, tmp_path: Path) -> None:
    other = make_lived_in_store(tmp_path / "two.pagein", tmp_path / "other", 12, 40)
    store = SqliteUpkeep(other.store)
    (line, *_) = [line for line in store.journal_lines() if line.session == "main"]
    store.close()
    side = tmp_path / "two.pagein.salvaged.jsonl"
    side.write_text(
        json.dumps({"session": "elsewhere", "place": line.place, "line": base64.b64encode(line.line).decode()}) + "\n"
    )
    copy = SqliteUpkeep(Path(shutil.copy(lived.store, tmp_path / "copy.pagein")))
    before = export_all(copy)
    with pytest.raises(BadInput, match="no salvage of this store"):
        import_from(copy, str(side))
    assert export_all(copy) == before
    copy.close()


def test_each_row_of_a_store_fits_a_single_table(lived: LivedIn) -> None:
    """Where the list of tables is lost, a row is told from those of other tables by its shape alone."""
    with SqliteUpkeep(lived.store)._database.open_writer() as rows:
        while move_lines(rows, rest=True):
            pass
    with closing(sqlite3.connect(lived.store)) as rows:
        tables = tables_of(rows)
        for name in tables.keys() - {"migration", "lookup", "sqlite_sequence"}:
            alias = [column.alias for column in tables[name].columns]
            for row in rows.execute(f"SELECT * FROM {name} LIMIT 50"):  # noqa: S608 - names of our own schema
                values = [None if is_alias else value for value, is_alias in zip(row, alias, strict=True)]
                fitting = [one.name for one in tables.values() if one.fits(values)]
                assert fitting == [name], name
