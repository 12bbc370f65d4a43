"""A file is named by its machine and its path: equal paths on two machines are two files, and a moved file stays one."""

import json
import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.memory.told_journal import Journal

from pagein.engine.recall.named_objects import find_object
from pagein.errors import BadInput
from pagein.memory.file_sightings import NewNote, journal_notes
from pagein.memory.indexer import Indexer
from pagein.memory.projection_check import projection_faults
from pagein.model.entries import MessageEntry
from pagein.model.memory_notes import FileSightingNote, SessionPlaceNote, SightingOp
from pagein.model.messages import Message, ToolCall, ToolResult
from pagein.model.names import ContentHash
from pagein.model.versions import Version
from pagein.model.writes import Query
from pagein.store.upkeep.postgres_upkeep import PostgresUpkeep
from pagein.store.upkeep.sqlite_upkeep import SqliteUpkeep
from pagein.tools.blame_commands import blame
from pagein.workspace.git_blame import GitAbsence

Store = SqliteUpkeep | PostgresUpkeep
PATH = "/w/a.py"


@pytest.fixture(params=["sqlite", "postgres"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Store]:
    made: Store
    if request.param == "postgres":
        made = PostgresUpkeep(request.getfixturevalue("postgres"), f"homes_{os.urandom(4).hex()}")
    else:
        made = SqliteUpkeep(tmp_path / "one.pagein")
    yield made
    made.close()


def place(store: Store, session: str, machine: str, *, follows: bool = False) -> None:
    journal_notes(store, [NewNote(SessionPlaceNote(session, machine, "/w", follows), 1.0)])


def sight(
    store: Store,
    op: SightingOp,
    text: str | None,
    path: str = PATH,
    *,
    before: str = "",
    at: float = 500.0,
    by_person: bool = False,
) -> None:
    digest = "" if text is None else ContentHash.of(text.encode()).hex
    note = FileSightingNote("one", path, op, before, digest=digest, size=len(text or ""), is_by_person=by_person)
    journal_notes(store, [NewNote(note, at, text)])


def run(journal: Journal, call_id: str, command: str) -> None:
    call = ToolCall(call_id, "Bash", json.dumps({"command": command}))
    journal.add(MessageEntry(Message("assistant", (call,))))
    journal.add(MessageEntry(Message("user", (ToolResult(call_id, "", "Bash"),))))


def files(store: Store, **where: str) -> list[Version]:
    return list(store.objects(Query(types=frozenset({"file"}), where=where, deleted=None)))


def is_made_again(store: Store) -> bool:
    """Whether the objects come out of the journals as they are, and the check of the projection finds nothing."""
    told = [(one.id, one.number, one.object_hash, one.at) for one in files(store)]
    faults = list(projection_faults(store))
    Indexer(store).drop(store)
    Indexer(store).catch_up()
    return faults == [] and [(one.id, one.number, one.object_hash, one.at) for one in files(store)] == told


def answers(store: Store, text: str, machine: str | None) -> list[str]:
    return [one["answer"] for one in blame(store, PATH, text, GitAbsence("none"), machine=machine)["lines"]]


def test_equal_paths_on_two_machines_are_two_files(store: Store) -> None:
    for session, machine in (("a", "one"), ("b", "two")):
        place(store, session, machine)
        Journal(store, session).write(f"call-{session}", f"{session} = 1\n")  # type: ignore[arg-type]  # either store
    Indexer(store).catch_up()
    assert answers(store, "a = 1\nb = 1\n", "one") == ["agent", "unknown"]
    assert answers(store, "a = 1\nb = 1\n", "two") == ["unknown", "agent"]
    Journal(store, "c").write("call-c", "c = 1\n")  # type: ignore[arg-type]  # either store
    Indexer(store).catch_up()
    found = {str(one.metadata["home"]): store.content(one) for one in files(store, path=PATH)}
    assert found == {"one": "a = 1\n", "two": "b = 1\n", "": "c = 1\n"}
    with pytest.raises(BadInput) as problem:
        find_object(store, PATH)
    assert all(words in str(problem.value) for words in ("on machine one", "on machine two", "on an unknown machine"))
    assert is_made_again(store)


def test_a_file_that_was_met_before_the_machine_was_known_stays_one_object(store: Store) -> None:
    first = Journal(store, "a")  # type: ignore[arg-type]  # either store
    first.write("call-1", "a = 1\n")
    Indexer(store).catch_up()
    place(store, "a", "one")
    first.write("call-2", "a = 2\n")
    sight(store, "change", "a = 3\n")
    Indexer(store).catch_up()
    (found,) = files(store)
    assert (found.number, found.metadata["home"], store.content(found)) == (3, "one", "a = 3\n")
    assert find_object(store, PATH).id == found.id
    assert is_made_again(store)


def test_a_sighting_of_a_file_that_no_session_touched_makes_no_object(store: Store) -> None:
    place(store, "a", "one")
    sight(store, "change", "a = 1\n")
    Indexer(store).catch_up()
    assert files(store) == []


def test_a_followed_file_that_moves_is_the_same_object_and_its_old_path_is_free(store: Store) -> None:
    place(store, "a", "one", follows=True)
    agent = Journal(store, "a")  # type: ignore[arg-type]  # either store
    agent.write("call-1", "a = 1\n")
    run(agent, "call-2", "mv /w/a.py /w/b.py")
    Indexer(store).catch_up()
    (moved,) = files(store)
    assert (moved.metadata["path"], moved.metadata["op"], moved.metadata["before"]) == ("/w/b.py", "move", PATH)
    sight(store, "move", "a = 1\n", "/w/c.py", before="/w/b.py")
    agent.write("call-3", "new = 1\n")
    Indexer(store).catch_up()
    (there,) = files(store, path="/w/c.py")
    (new,) = files(store, path=PATH)
    assert there.id == moved.id
    assert (new.id, store.content(new)) != (moved.id, "a = 1\n")
    sight(store, "delete", None, "/w/c.py", at=600.0)
    Indexer(store).catch_up()
    (gone,) = files(store, last_path="/w/c.py")
    assert gone.id == moved.id
    assert gone.deleted
    sight(store, "change", "back = 1\n", "/w/c.py", at=700.0)
    Indexer(store).catch_up()
    (back,) = files(store, path="/w/c.py")
    assert back.id == moved.id
    assert is_made_again(store)


def test_blame_gives_a_change_to_a_person_only_if_the_sighting_says_so(store: Store) -> None:
    place(store, "a", "one", follows=True)
    Journal(store, "a").write("call-1", "first = 1\nsecond = 2\n")  # type: ignore[arg-type]  # either store
    sight(store, "change", "first = 1\nsecond = 2\nthird = 3\n")
    text = "first = 1\nsecond = 2 + two\nthird = 3\nfourth = 4\n"
    sight(store, "change", text, at=600.0, by_person=True)
    Indexer(store).catch_up()
    assert answers(store, text, "one") == ["agent", "mixed", "unknown", "person"]


def test_what_two_gateways_saw_at_the_same_time_happened_once(store: Store) -> None:
    place(store, "a", "one", follows=True)
    Journal(store, "a").write("call-1", "a = 1\n")  # type: ignore[arg-type]  # either store
    for text in ("a = 2\n", "a = 1\n", "a = 2\n"):
        for _ in range(2):
            sight(store, "change", text)
    for _ in range(2):
        sight(store, "move", "a = 2\n", "/w/b.py", before=PATH)
    for _ in range(2):
        sight(store, "delete", None, "/w/b.py")
    Indexer(store).catch_up()
    (gone,) = files(store)
    told = [(one.metadata["op"], store.content(one)) for one in store.history(gone.id)]
    changes = [("change", "a = 2\n"), ("change", "a = 1\n"), ("change", "a = 2\n")]
    assert told == [("write", "a = 1\n"), *changes, ("move", "a = 2\n"), ("delete", None)]
    assert is_made_again(store)
