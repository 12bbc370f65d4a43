"""A store that the version before segments made: each answer stays the same while its records move, and it can be interrupted.

The file has the recordings `claude-code.jsonl`, `codex.jsonl`, `openai-chat.jsonl` and `normalised.jsonl` of the fixtures.
"""

import gzip
import os
import shutil
import signal
import sqlite3
import subprocess
import sys
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest

from pagein.store.sql.sql_lines import LINES
from pagein.store.upkeep.rebuild import rebuilt
from pagein.store.upkeep.sqlite_upkeep import SqliteUpkeep
from pagein.testing.upkeep_contract import export_all
from pagein.upkeep import check_store

OLD = Path(__file__).parents[2] / "fixtures" / "stores" / "whole-records.pagein.gz"
IN_ROWS = "SELECT count(*) FROM version WHERE length(record) > 0"
TO_MOVE = f"""SELECT ({IN_ROWS}) + (SELECT count(*) FROM unsealed)
  + (SELECT count(*) FROM journal WHERE length(line) > 0)"""  # noqa: S608 - constants
MOVE = """
import sys
from pathlib import Path
from pagein.store.sql import sql_answers, sql_versions
from pagein.store.sql.sql_lines import LINES
from pagein.store.upkeep.sqlite_upkeep import SqliteUpkeep
sql_versions._AT_ONCE = sql_answers._AT_ONCE = 1
store = SqliteUpkeep(Path(sys.argv[1]))
while store.bundle_more():
    print("moved", flush=True)
"""


@pytest.fixture
def path(tmp_path: Path) -> Path:
    path = tmp_path / "one.pagein"
    path.write_bytes(gzip.decompress(OLD.read_bytes()))
    return path


def answers(store: SqliteUpkeep) -> list[object]:
    """Everything that a store tells of its versions, and of the requests that they answer."""
    told = [
        (one, store.content(one), [store.additional(one, name) for name in one.additional], store.references(one))
        for one in store.log()
    ]
    links = [store.backlinks(name, ever=True) for name in sorted({one.id for one, *_ in told})]
    requests = sorted(store.requests())
    answered = [store.answered(request) for request, _ in requests]
    return [told, links, requests, answered]


def test_records_move_to_segments_and_every_answer_stays(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pagein.store.sql.sql_lines.LINES", replace(LINES, most=20))  # so that few lines move, too
    with closing(sqlite3.connect(path)) as rows:
        (whole,) = rows.execute(IN_ROWS).fetchone()
        hashes = [bytes(name) for (name,) in rows.execute("SELECT object_hash FROM version ORDER BY sequence")]
    with closing(SqliteUpkeep(path)) as store:
        before, exported = answers(store), export_all(store)
        versions = store.log()
        assert [bytes.fromhex(one.object_hash.hex) for one in versions] == hashes
        assert whole == len(versions) >= 40
        while store.bundle_more():
            pass
        assert answers(store) == before
        assert export_all(store) == exported
        assert check_store(store).is_clean
    with closing(sqlite3.connect(path)) as rows:
        assert rows.execute("SELECT count(*) FROM request WHERE id LIKE 'memory:%'").fetchone() == (0,)
        assert rows.execute("SELECT count(*) > 40 FROM answer").fetchone() == (1,)
        assert rows.execute("SELECT count(session), count(of_session) > 40 FROM version").fetchone() == (0, 1)
        assert rows.execute(TO_MOVE).fetchone() == (0,)
        assert rows.execute("SELECT sum(texts) FROM record_segment").fetchone() == (whole,)


@pytest.mark.damages_store  # lines of other sessions
def test_entries_move_to_short_forms_with_their_numbers_sessions_and_ids(path: Path) -> None:
    odd = [("a\\b", "0123456789abcdef"), ("a\\b", "x"), ("\0dropped", "900")]
    with closing(sqlite3.connect(path)) as rows, rows:
        line = rows.execute("SELECT codec, line FROM entry LIMIT 1").fetchone()
        for session, name in odd:
            rows.execute("INSERT INTO entry(session, id, codec, line) VALUES(?, ?, ?, ?)", (session, name, *line))
        before = rows.execute("SELECT number, session, id FROM entry ORDER BY number").fetchall()
    with closing(SqliteUpkeep(path)) as store:
        listed = [(one.place, one.session, one.id) for one in store.journal_lines()]
        assert listed == [one for one in before if one[1] != "\0dropped"]
        assert store.places(0, len(before)) == [(place, session) for place, session, _ in listed]
        assert store.last_place() == before[-1][0], "the number of a removed entry is not given again"
        assert [place for place, _ in store.news("a\\b")] == [
            place for place, session, _ in before if session == "a\\b"
        ]


def test_a_damaged_file_of_an_older_form_keeps_its_entries(path: Path, tmp_path: Path) -> None:
    with closing(SqliteUpkeep(Path(shutil.copy(path, tmp_path / "whole.pagein")))) as store:
        before = {name.name: list(store.entries(name.name)) for name in store.sessions()}
    made = tmp_path / "made.pagein"
    rebuilt(path, made)
    with closing(SqliteUpkeep(made)) as store:
        assert {name.name: list(store.entries(name.name)) for name in store.sessions()} == before
        assert check_store(store).is_clean


@pytest.mark.parametrize("moved", [1, 20, 60])
def test_a_move_that_is_killed_loses_nothing(path: Path, moved: int) -> None:
    with closing(SqliteUpkeep(path)) as store:
        before = answers(store)
    with closing(sqlite3.connect(path)) as rows:
        (all_of_them,) = rows.execute(TO_MOVE).fetchone()
    with subprocess.Popen([sys.executable, "-c", MOVE, path], stdout=subprocess.PIPE) as moving:  # noqa: S603 - our own program
        assert moving.stdout is not None
        for _ in range(moved):
            assert moving.stdout.readline() == b"moved\n"
        os.kill(moving.pid, signal.SIGKILL)
    with closing(sqlite3.connect(path)) as rows:
        (left,) = rows.execute(TO_MOVE).fetchone()
        assert left < all_of_them
    with closing(SqliteUpkeep(path)) as store:
        assert answers(store) == before
        assert check_store(store).is_clean
