"""`pagein check` proves that the objects agree with the journals."""

import json
import random
import sqlite3
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.memory.journal_stories import SessionStory, tell
from tests.memory.told_journal import UNIQUE, Journal

from pagein import wiring
from pagein.memory.indexer import Indexer
from pagein.memory.projection_check import projection_faults
from pagein.model.object_names import object_name
from pagein.model.versions import Draft, Writer
from pagein.model.writes import Query, Write
from pagein.store.sql.short_names import OF_SESSION, entry_key
from pagein.store.sqlite.sqlite_store import SqliteStore
from pagein.store.upkeep.sqlite_upkeep import SqliteUpkeep
from pagein.upkeep import check_store, reindex

pytestmark = pytest.mark.damages_store


@pytest.fixture
def store(tmp_path: Path) -> SqliteUpkeep:
    random_ = random.Random(5)  # noqa: S311 - not for secrets
    made = SqliteUpkeep(tmp_path / "one.pagein")
    for _ in tell(made, [SessionStory("a", random_), SessionStory("b", random_)], random_, 60):
        pass
    Indexer(made).catch_up()
    return made


def test_objects_that_were_made_from_journals_are_proved(store: SqliteUpkeep) -> None:
    report = check_store(store)
    assert report.findings == []
    assert report.counts["projection"] == store.last_place()
    store.close()


def test_entries_that_were_not_followed_yet_are_no_fault(store: SqliteUpkeep) -> None:
    random_ = random.Random(6)  # noqa: S311 - not for secrets
    for _ in tell(store, [SessionStory("c", random_)], random_, 10):
        pass
    assert list(projection_faults(store)) == []
    store.close()


def forge(store: SqliteStore) -> str:
    """Write a version in the indexer's name that no entry gives."""
    (user,) = store.objects(Query(types=frozenset({"user"}), limit=1))
    draft = user.draft("words that nobody said")
    store.write(Write("forged", draft, user.at, writer=Writer("index", "words", user.writer.session)))
    return user.id


def lose(store: SqliteStore) -> str:
    """Lose the answer of a write."""
    (call,) = store.objects(Query(types=frozenset({"toolcall"}), limit=1))
    with sqlite3.connect(store._database.path) as rows:
        rows.execute("DELETE FROM answer WHERE sequence = ?", (call.sequence,))
    return call.id


def alter(store: SqliteStore) -> str:
    """Let an entry say something else than its object."""
    (user,) = store.objects(Query(types=frozenset({"user"}), limit=1))
    with sqlite3.connect(store._database.path) as rows:
        last = f"SELECT max(number) FROM journal WHERE {OF_SESSION}"  # noqa: S608 -- a constant
        number = rows.execute(last, (user.writer.session,)).fetchone()[0]
        line = json.dumps({"v": 1, "id": "x", "entry": "said", "message": {"role": "user", "blocks": []}})
        rows.execute(
            "UPDATE journal SET codec = 0, id = ?, line = ? WHERE number = ?", (entry_key("x"), line.encode(), number)
        )
    return ""


@pytest.mark.parametrize("damage", [forge, lose, alter])
def test_an_object_that_differs_from_its_journal_is_told(
    store: SqliteUpkeep, damage: Callable[[SqliteStore], str]
) -> None:
    name = damage(store)
    findings = [one for one in check_store(store).findings if one.kind == "projection"]
    assert findings
    assert any(name in one.where for one in findings)
    assert "pagein reindex" in findings[0].why
    reindex(store, wiring.layers_of(store))
    assert [one for one in check_store(store).findings if one.kind == "projection"] == []
    store.close()


def test_objects_stay_when_their_journal_is_removed(store: SqliteUpkeep) -> None:
    before = {one.id for one in store.objects(Query(where={"session": "a"}))}
    store.drop_sessions(["a"])
    assert list(projection_faults(store)) == []
    reindex(store, wiring.layers_of(store))
    assert {one.id for one in store.objects(Query(where={"session": "a"}))} == before
    assert list(projection_faults(store)) == []
    store.close()


def test_the_command_makes_the_objects_again(store: SqliteUpkeep, tmp_path: Path) -> None:
    count = len(store.log())
    store.close()
    command = [sys.executable, "-m", "pagein", "reindex", "--store", str(tmp_path / "one.pagein"), "--json"]
    done = json.loads(subprocess.run(command, capture_output=True, check=True).stdout)  # noqa: S603 -- our own command
    memory, search = done["layers"]
    assert (memory["layer"], memory["made"], memory["behind"]) == ("memory", count, 0)
    assert (search["layer"], search["behind"]) == ("search", 0)


def test_an_object_that_the_store_refuses_stops_no_other_and_is_told(tmp_path: Path) -> None:
    store = SqliteUpkeep(tmp_path / "two.pagein")
    foreign = Draft(id=object_name("session", "a", at=101.0), type="artifact", content="somebody's")
    store.write(Write("mine", foreign, 1.0))
    for name in ("a", "b"):
        told = Journal(store, name)
        told.say(f"hello {name}")
        told.write(f"{UNIQUE}{name}", "one\n", f"/w/{name}.py")
        told.answer("done")
    indexer = Indexer(store)
    assert indexer.catch_up().behind == 0
    sessions = store.objects(Query(types=frozenset({"session"})))
    assert [one.metadata["session_id"] for one in sessions] == ["b"]
    assert store.content(store.objects(Query(where={"path": "/w/a.py"}))[0]) == "one\n"
    assert indexer.catch_up().followed == 0
    findings = check_store(store).findings
    assert findings
    assert {one.where for one in findings} == {f"session {foreign.id}"}
    assert store.content(store.current(foreign.id) or pytest.fail("it is gone")) == "somebody's"
    store.close()
