"""The windows of a fresh sub-agent and of a lossless session, and the answers about lost content."""

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
from tests.engine.window.sized_sessions import ASK, begun, ids, opened, says, shown, turn

import pagein
from pagein.engine.engine import Settings
from pagein.errors import NotRecallable
from pagein.model.messages import Message, Text, ToolCall, ToolResult
from pagein.policy.eviction.residency import PRICED, Residency
from pagein.testing.desk import Desk, mode_of, numbered_text


def test_a_fresh_sub_agent_never_gets_its_parents_markers(tmp_path: Path) -> None:
    desk = Desk(tmp_path, tmp_path / "s.db")
    try:
        desk.put("a.py", numbered_text(200))
        parent = desk.session("parent")
        first = parent.read("a.py")
        assert mode_of(parent.read("a.py")) == "unchanged"
        child = desk.session("parent/child").read("a.py")
        assert (mode_of(child), child.text) == ("full", first.text)
        at_root = parent.fork("fork")
        assert mode_of(at_root.read("a.py")) == "unchanged", "a fork has its parent's window"
        parent.move(None)
        assert mode_of(parent.read("a.py")) == "full", "a branch from the root has nothing"
    finally:
        desk.close()


def test_a_lossless_only_session_is_served_no_preview(tmp_path: Path) -> None:
    big = "line of a log\n" * 2000
    said = [Message("assistant", (ToolCall("big", "Bash", "{}"),)), Message("tool", (ToolResult("big", big, "Bash"),))]
    for residency, whole in ((PRICED, False), (Residency(previews=None), True)):
        with pagein.open(":memory:", workspace=tmp_path, settings=Settings(residency)) as engine:
            session = engine.session("one")
            session.append(ASK)
            (prepared,) = says(session, said)
            assert (shown(session)["big"] == big) is whole
            assert bool(prepared.previewed) is not whole


@pytest.mark.damages_store
def test_what_is_gone_is_told_to_have_expired_never_existed_or_be_elsewhere(tmp_path: Path) -> None:
    with opened(tmp_path) as engine, opened(tmp_path, workspace="there") as elsewhere:
        session = begun(engine, "abcd")
        session.hand.epoch()
        says(session, turn("e"))
        known = ids(session)
        other = begun(elsewhere, "a", name="other")
        said = {
            "never existed": (session, "pg-00000000-00000000"),
            "another workspace": (other, known["a"]),
        }
        for why, (asked, name) in said.items():
            for wish in (asked.hand.pin, asked.hand.restore, asked.recall):
                with pytest.raises(NotRecallable, match=why):
                    wish(name)
        with closing(sqlite3.connect(tmp_path / "store.db")) as store, store:
            store.execute("DELETE FROM blob")
        for wish in (session.hand.pin, session.hand.restore, session.recall):
            with pytest.raises(NotRecallable, match="has expired"):
                wish(known["b"])
        session.append(Message("assistant", (Text("hm"),)))
