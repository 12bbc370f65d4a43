"""Pin actions on a session: their effects, their times, and their limits."""

from pathlib import Path

import pytest
from tests.engine.window.sized_sessions import ASK, EAGER, PRICED, begun, body, ids, opened, says, shown, turn, whole

from pagein.engine.session import Session
from pagein.errors import BadInput, NotRecallable
from pagein.model.messages import Message, Text, ToolCall, ToolResult
from pagein.policy.eviction.overflow import ORDERED, RESTORED
from pagein.providers.wire import check_messages


def test_a_pinned_result_stays_when_its_age_has_come(tmp_path: Path) -> None:
    with opened(tmp_path, EAGER) as engine:
        session = begun(engine, "ab")
        session.hand.pin("a")
        says(session, turn("c"), turn("d"), turn("e"))
        assert "a" in whole(session)
        assert "b" not in whole(session)


def test_what_was_pinned_may_leave_once_it_is_unpinned(tmp_path: Path) -> None:
    with opened(tmp_path, EAGER) as engine:
        session = begun(engine, "a")
        session.hand.pin("a")
        says(session, turn("b"), turn("c"))
        session.hand.unpin("a")
        says(session, turn("d"), turn("e"), turn("f"))
        assert "a" not in whole(session)
        assert session.recall(ids(session)["a"]) == body("a")


def test_an_ordered_epoch_takes_what_is_old_enough_and_nothing_else(tmp_path: Path) -> None:
    with opened(tmp_path) as engine:
        session = begun(engine)
        assert whole(session) == set("abcde")
        session.hand.epoch()
        (prepared,) = says(session, turn("f"))
        assert prepared.opened is not None
        assert prepared.opened.reason == ORDERED
        assert whole(session) == set("ef")
        assert says(session, turn("g"))[0].opened is None, "an order holds for one call"


def test_an_order_with_nothing_to_do_does_nothing_and_is_spent(tmp_path: Path) -> None:
    with opened(tmp_path) as engine:
        session = begun(engine, "a")
        session.hand.epoch()
        assert says(session, turn("b"))[0].opened is None
        assert [one.opened for one in says(session, turn("c"), turn("d"), turn("e"))] == [None] * 3


def test_a_dropped_result_leaves_with_the_next_epoch_however_young(tmp_path: Path) -> None:
    with opened(tmp_path) as engine:
        session = begun(engine)
        session.hand.drop("d")
        session.hand.epoch()
        says(session, turn("f"))
        assert whole(session) == set("ef")
        assert session.recall(ids(session)["d"]) == body("d")


def test_what_the_model_has_not_seen_yet_is_not_dropped_before_it_has(tmp_path: Path) -> None:
    with opened(tmp_path) as engine:
        session = begun(engine, "a")
        for message in turn("b"):
            session.append(message)
        session.hand.drop("b")
        session.hand.epoch()
        session.advance()
        assert "b" in whole(session)
        session.hand.epoch()
        says(session, turn("c"))
        assert "b" not in whole(session)


def test_a_dropped_result_alone_does_not_open_an_epoch(tmp_path: Path) -> None:
    with opened(tmp_path) as engine:
        session = begun(engine)
        session.hand.drop("d")
        assert says(session, turn("f"))[0].opened is None
        assert "d" in whole(session)


def test_a_vetoed_result_never_leaves_and_one_that_is_out_stays_out(tmp_path: Path) -> None:
    with opened(tmp_path) as engine:
        session = begun(engine, "abc")
        session.hand.veto("b")
        session.hand.epoch()
        says(session, turn("d"), turn("e"))
        session.hand.veto("a")
        session.hand.epoch()
        says(session, turn("f"), turn("g"))
        assert "b" in whole(session)
        assert "a" not in whole(session)


def test_a_restored_result_stands_where_it_stood_exactly(tmp_path: Path) -> None:
    with opened(tmp_path) as engine:
        session = begun(engine)
        before = shown(session)
        session.hand.epoch()
        says(session, turn("f"))
        assert shown(session)["b"] != before["b"]
        session.hand.restore(ids(session)["b"])
        assert says(session, turn("g"))[0].opened is None, "it waits for an epoch"
        session.hand.epoch()
        (prepared,) = says(session, turn("h"))
        assert prepared.opened is not None
        assert [one.call_id for one in prepared.opened.restored] == ["b"]
        assert shown(session)["b"] == before["b"]
        assert check_messages(session.last_request(), "anthropic") == []


def test_a_restored_result_is_as_young_as_what_is_said_then(tmp_path: Path) -> None:
    with opened(tmp_path, EAGER) as engine:
        session = begun(engine)
        out = [call for call in "abcde" if call not in whole(session)]
        session.hand.restore(out[0])
        session.hand.epoch()
        says(session, turn("f"))
        assert out[0] in whole(session)
        says(session, turn("g"), turn("h"), turn("i"), turn("j"))
        assert out[0] not in whole(session)
        assert session.recall(ids(session)[out[0]]) == body(out[0])


def test_pinning_what_is_out_brings_it_back_for_good(tmp_path: Path) -> None:
    with opened(tmp_path, EAGER) as engine:
        session = begun(engine)
        assert "a" not in whole(session)
        session.hand.pin("a")
        session.hand.epoch()
        says(session, turn("f"), turn("g"), turn("h"), turn("i"), turn("j"))
        assert "a" in whole(session)


def test_what_is_to_come_back_comes_for_nothing_when_the_cache_is_cold(tmp_path: Path) -> None:
    with opened(tmp_path, PRICED) as engine:
        session = begun(engine)
        session.hand.epoch()
        says(session, turn("f"))
        for one in ("c", "d", "e", "f"):
            session.hand.veto(one)
        session.hand.restore("a")
        for message in turn("g"):
            session.append(message)
        assert session.advance(at=1000.0).opened is None
        for message in turn("h"):
            session.append(message)
        prepared = session.advance(at=5000.0)
        assert prepared.opened is not None
        assert prepared.opened.reason == RESTORED
        assert "a" in whole(session)


def test_a_preview_that_is_restored_becomes_the_whole_text(tmp_path: Path) -> None:
    import pagein
    from pagein.policy.eviction.residency import PRICED as DEFAULT

    assert DEFAULT.previews is not None
    with pagein.open(tmp_path / "s.db", workspace=tmp_path) as engine:
        session = engine.session("one")
        session.append(ASK)
        big = "line\n" * 4000
        call = ToolCall("big", "Bash", "{}")
        says(session, [Message("assistant", (call,)), Message("tool", (ToolResult("big", big, "Bash"),))])
        (one,) = session.hand.window()
        assert one.form == "preview"
        session.hand.restore(one.object_id)
        session.hand.epoch()
        says(session, [Message("assistant", (Text("ok"),)), Message("user", (Text("go on"),))])
        assert shown(session)["big"] == big


def test_an_answer_that_stands_for_other_text_is_not_restored(tmp_path: Path) -> None:
    with opened(tmp_path) as engine:
        session = engine.session("one")
        session.append(ASK)
        marker = "[readcache: unchanged, 3 lines]\n" + "x" * 400
        said = [
            Message("assistant", (ToolCall("m", "read", "{}"),)),
            Message("tool", (ToolResult("m", marker, "read"),)),
        ]
        says(session, said, turn("b"), turn("c"))
        session.hand.epoch()
        says(session, turn("d"))
        with pytest.raises(NotRecallable, match="rests on text shown earlier"):
            session.hand.restore("m")


def test_wishes_that_cannot_come_true_are_refused_and_say_why(tmp_path: Path) -> None:
    with opened(tmp_path) as engine:
        session = begun(engine, "abc")
        hand = session.hand
        with pytest.raises(BadInput, match="no tool result 'nobody'"):
            hand.pin("nobody")
        with pytest.raises(BadInput, match="nothing to restore"):
            hand.restore("a")
        with pytest.raises(NotRecallable, match="never existed"):
            hand.pin("pg-00000000-00000000")
        with pytest.raises(BadInput, match="pg-"):
            hand.pin("pg-nonsense")
        hand.epoch()
        says(session, turn("d"))
        with pytest.raises(BadInput, match="out already"):
            hand.drop("a")
        other = begun(engine, "x", name="two")
        with pytest.raises(BadInput, match="never stood in the window of session 'two'"):
            other.hand.pin(ids(session)["a"])
        other.append(Message("assistant", (ToolCall("small", "Bash", "{}"),)))
        other.append(Message("tool", (ToolResult("small", "tiny", "Bash"),)))
        with pytest.raises(BadInput, match="never leaves"):
            other.hand.drop("small")


def test_a_switched_off_session_decides_nothing_and_goes_on_when_it_is_on_again(tmp_path: Path) -> None:
    with opened(tmp_path, EAGER) as engine:
        session = begun(engine, "a")
        session.hand.off()
        says(session, *(turn(one) for one in "bcdef"))
        assert whole(session) == set("abcdef")
        session.hand.on()
        says(session, turn("g"))
        assert "a" not in whole(session)


def test_the_window_says_what_stands_there_and_what_is_said_of_it(tmp_path: Path) -> None:
    with opened(tmp_path) as engine:
        session = begun(engine)
        session.hand.pin("d")
        session.hand.drop("e")
        session.hand.epoch()
        says(session, turn("f"))
        session.hand.restore("a")
        rows = {one.call_id: one for one in session.hand.window()}
        assert (rows["a"].form, rows["a"].marks, rows["a"].tokens) == ("stub", ("restoring",), len(body("a")))
        assert rows["a"].object_id.startswith("pg-")
        assert rows["a"].description == rows["a"].description.strip() == "a begins - 2 lines"
        assert (rows["d"].form, rows["d"].marks, rows["d"].leaves) == ("whole", ("pinned",), True)
        assert rows["d"].description.startswith("d begins")
        assert rows["e"].form == "stub"


def test_a_fork_keeps_the_parents_pins_and_a_sibling_does_not_see_the_forks(tmp_path: Path) -> None:
    with opened(tmp_path, EAGER) as engine:
        session = begun(engine, "ab")
        session.hand.pin("a")
        fork = session.fork("fork")
        fork.hand.pin("b")
        for one in (session, fork):
            says(one, *(turn(name) for name in "cdef"))
        assert {"a", "b"} <= whole(fork)
        assert "a" in whole(session)
        assert "b" not in whole(session)


def test_a_branch_that_parts_before_a_pin_does_not_know_of_it(tmp_path: Path) -> None:
    with opened(tmp_path, EAGER) as engine:
        session = begun(engine, "a")
        place = session.leaf
        session.hand.pin("a")
        session.move(place)
        says(session, *(turn(one) for one in "bcdef"))
        assert "a" not in whole(session)


def test_a_restart_gives_the_same_window(tmp_path: Path) -> None:
    with opened(tmp_path, EAGER) as engine:
        session = begun(engine)
        session.hand.pin("c")
        session.hand.restore("a")
        session.hand.epoch()
        says(session, turn("f"), turn("g"))
        before = session.last_request()
    with opened(tmp_path, EAGER) as engine:
        again = engine.session("one")
        assert again.window() == before
        assert again.hand.wishes.pinned == {"c"}


def test_another_process_pins_in_a_running_session(tmp_path: Path) -> None:
    with opened(tmp_path, EAGER) as engine, opened(tmp_path, EAGER) as other:
        session = begun(engine, "a")
        for message in turn("b"):
            session.append(message)
        other.session("one").hand.pin("a")
        session.advance()
        assert session.hand.wishes.pinned == {"a"}
        says(session, *(turn(one) for one in "cdef"))
        assert "a" in whole(session)
        assert "b" not in whole(session)


def test_a_wish_counts_once_however_often_it_is_taken_over(tmp_path: Path) -> None:
    with opened(tmp_path, EAGER) as engine, opened(tmp_path, EAGER) as other:
        session = begun(engine, "a")
        session.append(Message("assistant", (Text("hm"),)))
        other.session("one").hand.epoch()
        session.append(ASK)
        session.advance()
        session.append(Message("assistant", (Text("hm"),)))
        session.append(ASK)
        assert not session.hand.wishes.epoch_now


def test_the_least_wish_of_a_sub_agent_is_its_own(tmp_path: Path) -> None:
    with opened(tmp_path, EAGER) as engine:
        parent = begun(engine, "ab")
        parent.hand.pin("a")
        child = begun(engine, "abcdef", name="child")
        assert not child.hand.wishes.pinned
        assert "a" not in whole(child)


def test_what_stands_on_another_branch_is_found_there_and_the_session_stays_where_it_is(tmp_path: Path) -> None:
    with opened(tmp_path, EAGER) as engine:
        session = begun(engine, "ab")
        fork = session.leaf
        says(session, turn("c"))
        aside = session.leaf
        session.move(fork)
        says(session, turn("d"))
        here = session.last_request()
        session.hand.pin("c")
        assert session.window() == here
        assert not session.hand.wishes.pinned
        says(session, *(turn(one) for one in "efgh"))
        assert "d" not in whole(session)
    with opened(tmp_path, EAGER) as engine:
        again = engine.session("one")
        assert "h" in whole_of(again.window())
        tips = {one.parent for one in again.journal}
        (end,) = [one.id for one in again.journal if one.id not in tips and aside in _names(again, one.id)]
        again.move(end)
        assert again.hand.wishes.pinned == {"c"}
        says(again, *(turn(one) for one in "ijkl"))
        assert "c" in whole(again)
        assert "a" not in whole(again)


def _names(session: Session, leaf: str) -> set[str]:
    return {one.id for one in session.journal.branch(leaf)}


def whole_of(messages: list[Message]) -> set[str]:
    blocks = [block for message in messages for block in message.blocks if isinstance(block, ToolResult)]
    return {block.call_id for block in blocks if not block.text.startswith("[pagein: ")}
