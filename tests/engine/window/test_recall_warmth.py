"""What was recalled lately is not paged out again yet."""

import json
from pathlib import Path

from tests.engine.window.sized_sessions import begun, body, ids, opened, says, turn, whole

from pagein.engine.session import Session
from pagein.model.journal_notes import RecallNote
from pagein.model.messages import Message, ToolCall, ToolResult
from pagein.policy.eviction.recall_warmth import WARM_CALLS
from pagein.testing.eager_residency import eager


def peeked(session: Session, object_id: str, call_id: str) -> list[Message]:
    """The model peeks at it: what a recall tool journals, and the result."""
    text = session.recall(object_id)
    session.note(RecallNote("peek", (object_id,), call_id))
    call = ToolCall(call_id, "peek", json.dumps({"id": object_id}))
    return [Message("assistant", (call,)), Message("tool", (ToolResult(call_id, text, "peek"),))]


def test_the_result_of_a_recall_stays_while_it_is_warm(tmp_path: Path) -> None:
    quick = eager(batch_tokens=100, keep_calls=1, min_tokens=100)
    with opened(tmp_path, quick) as engine:
        session = begun(engine, "abc")
        assert "a" not in whole(session)
        says(session, peeked(session, ids(session)["a"], "p"))
        stayed = 0
        for name in "defghi":
            says(session, turn(name))
            stayed += "p" in whole(session)
        assert stayed == WARM_CALLS - 1, "it is seen by as many calls as it is warm for, and leaves then"
        assert session.recall(ids(session)["p"]) == body("a")


def test_an_ordered_epoch_leaves_what_is_warm(tmp_path: Path) -> None:
    quick = eager(batch_tokens=100_000, keep_calls=1, min_tokens=100)
    with opened(tmp_path, quick) as engine:
        session = begun(engine, "abc")
        session.hand.epoch()
        says(session, turn("d"))
        says(session, peeked(session, ids(session)["a"], "p"))
        session.hand.epoch()
        says(session, turn("e"))
        assert "p" in whole(session)
        assert "d" not in whole(session)
        (row,) = [one for one in session.hand.window() if one.call_id == "p"]
        assert "warm" in row.marks


def test_warmth_is_of_the_branch(tmp_path: Path) -> None:
    quick = eager(batch_tokens=100_000, keep_calls=1, min_tokens=100)
    with opened(tmp_path, quick) as engine:
        session = begun(engine, "abc")
        session.hand.epoch()
        says(session, turn("d"))
        place = session.leaf
        object_id = ids(session)["a"]
        session.note(RecallNote("peek", (object_id,), "d"))
        assert [one.call_id for one in session.hand.window() if "warm" in one.marks] == ["a", "d"]
        session.move(place)
        assert not [one for one in session.hand.window() if "warm" in one.marks]
