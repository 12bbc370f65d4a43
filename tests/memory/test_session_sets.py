"""The sets of a session object, and the files that entered its pools, as objects of the store."""

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

import pagein
from pagein import Settings
from pagein.engine.session import Session
from pagein.memory.indexer import Indexer
from pagein.memory.projection_check import projection_faults
from pagein.memory.session_sets import PAGE, fields_of
from pagein.model.entries import NoteEntry
from pagein.model.journal_notes import ClientNote
from pagein.model.json_text import encode_json
from pagein.model.messages import Message, Text, ToolCall, ToolResult
from pagein.model.pool_notes import PoolAct, PoolNote
from pagein.model.versions import Version
from pagein.model.writes import Query
from pagein.policy.pools.pool_fold import PoolFold
from pagein.policy.pools.pool_values import PoolRules
from pagein.store.upkeep.sqlite_upkeep import SqliteUpkeep


@pytest.fixture
def session(tmp_path: Path) -> Iterator[Session]:
    (tmp_path / "a.md").write_text("# A\n")
    with pagein.open(tmp_path / "store.db", workspace=tmp_path) as engine:
        made = engine.session("s")
        made.work_in(str(tmp_path))
        yield made


def work(session: Session, call_id: str, output: str) -> None:
    session.append(Message("user", (Text("Go on."),)))
    session.append(Message("assistant", (ToolCall(call_id, "bash", "{}"),)))
    session.append(Message("tool", (ToolResult(call_id, output, "bash"),)))


def of_type(session: Session, type_: str) -> list[Version]:
    session.keep()
    return [one for one in session.objects.find() if one.type == type_]


def test_the_session_object_has_the_sets_of_the_branch(session: Session, tmp_path: Path) -> None:
    work(session, "tc-1", "one")
    assert "active_set" not in of_type(session, "session")[0].additional
    file = session.pools.read("a.md").id
    session.pools.pin("tc-1")
    session.pools.deactivate("a.md")
    told = of_type(session, "session")[0]
    fields = {name: session.objects.field(told, name) for name in session.pools.sets()}
    assert fields == session.pools.sets() == {
        "active_set": ("tc-1",), "inactive_set": (file,), "pinned_set": ("tc-1",)
    }  # fmt: skip
    with closing(SqliteUpkeep(tmp_path / "store.db")) as store:
        assert list(projection_faults(store)) == []
        before = [(one.id, one.object_hash) for one in store.objects(Query())]
        Indexer(store).drop(store)
        Indexer(store).catch_up()
        assert [(one.id, one.object_hash) for one in store.objects(Query())] == before


def test_a_file_that_was_read_into_the_pool_is_the_object_of_this_id(session: Session) -> None:
    work(session, "tc-1", "one")
    file = session.pools.read("a.md").id
    found = of_type(session, "note")
    assert [(one.id, session.objects.content(one)) for one in found] == [(file, "# A\n")]


def test_sets_begin_with_the_first_note_also_in_a_long_session_and_after_a_way_back(session: Session) -> None:
    for number in range(20):
        work(session, f"tc-{number}", "x")
    place = session.leaf
    session.pools.activate("tc-0")
    work(session, "left", "x")
    session.keep()
    of_type(session, "session")
    session.move(place)
    session.pools.activate("tc-1")
    told = of_type(session, "session")[0]
    assert session.objects.field(told, "active_set") == session.pools.sets()["active_set"]
    assert "tc-1" in session.pools.sets()["active_set"]
    assert "tc-0" not in session.pools.sets()["active_set"]


def test_the_inactive_set_is_in_pages_of_which_a_change_touches_one() -> None:
    acts = tuple(PoolAct("list", f"o{number}", "file", "text", f"v{number}", 1) for number in range(2 * PAGE + 1))
    fold = PoolFold("s")
    walk = fold.walk([NoteEntry.of(PoolNote(acts))])
    before = fields_of(walk.state)
    assert [len(before[name]) for name in ("inactive_set", "inactive_set.2", "inactive_set.3")] == [PAGE, PAGE, 1]
    after = fields_of(fold.step(walk, NoteEntry.of(PoolNote((PoolAct("activate", "o300"),)))).state)
    assert [name for name in after if after[name] != before[name]] == ["active_set", "inactive_set.2"]


def stored_sets(session: Session) -> dict[str, object]:
    told = of_type(session, "session")[0]
    return {name: session.objects.field(told, name) for name in session.pools.sets()}


def test_the_sets_follow_the_bounds_of_the_sessions_settings(tmp_path: Path) -> None:
    for number in range(3):
        (tmp_path / f"{number}.md").write_text(f"# {number}\n")
    for bounds in (PoolRules(by_hand=1), PoolRules(1, 1, 2), PoolRules()):
        with pagein.open(tmp_path / "store.db", workspace=tmp_path, settings=Settings(pools=bounds)) as engine:
            session = engine.session("s")
            for number in range(3):
                session.pools.read(f"{number}.md")
                work(session, f"tc-{bounds.by_hand}-{number}", "x")
            session.pools.activate("0.md")
            assert stored_sets(session) == session.pools.sets()
            session.append(Message("user", (Text("Go on."),)))
            assert stored_sets(session) == session.pools.sets()


def test_the_sets_follow_an_edit_of_a_file_that_was_read_through_the_pools(session: Session, tmp_path: Path) -> None:
    session.append(Message("user", (Text("Go on."),)))
    session.note(ClientNote("pi"))
    file = session.pools.read("a.md").id
    edit = encode_json({"path": str(tmp_path / "a.md"), "oldText": "# A", "newText": "# B"}).decode()
    session.append(Message("assistant", (ToolCall("edit", "edit", edit),)))
    session.append(Message("tool", (ToolResult("edit", "ok", "edit"),)))
    session.append(Message("user", (Text("Go on."),)))
    assert file in session.pools.sets()["active_set"]
    assert session.pools.text(file) == "# B\n"
    assert stored_sets(session) == session.pools.sets()


def test_the_sets_follow_a_client_that_names_files_in_its_folder(session: Session) -> None:
    session.note(ClientNote("pi"))
    session.append(Message("user", (Text("Go on."),)))
    session.append(Message("assistant", (ToolCall("tc-1", "read", '{"path": "b.md"}'),)))
    session.append(Message("tool", (ToolResult("tc-1", "# B\n", "read"),)))
    session.pools.read("a.md")
    assert stored_sets(session) == session.pools.sets()


def test_the_pools_follow_a_session_into_its_folder(tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "a.md").write_text("# A\n")
    with pagein.open(tmp_path / "store.db", workspace=tmp_path) as engine:
        session = engine.session("s")
        work(session, "tc-1", "x")
        before = session.pools
        assert before.read("a.md").is_error
        session.work_in(str(tmp_path / "in"))
        file = session.pools.read("a.md").id
        assert session.pools.state.index[file].path == str(tmp_path / "in" / "a.md")
        assert session.pools.find("a.md") == before.find("a.md") == session.pools.state.index[file]
        assert stored_sets(session) == session.pools.sets()
