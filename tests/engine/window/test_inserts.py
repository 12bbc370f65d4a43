"""Texts in every window: pinned texts, and the pages of the manifest."""

import json
from pathlib import Path

import pytest
from tests.engine.window.sized_sessions import ASK, EAGER, begun, ids, opened, says, spoken, turn

from pagein.errors import BadInput
from pagein.model.messages import Message, Text, ToolCall, ToolResult
from pagein.model.pins import name_of
from pagein.policy.clients.profile import accesses
from pagein.policy.stubs.manifest import tokens_of
from pagein.providers.validity import Api
from pagein.providers.wire import check_messages

RULE = "Never touch the migrations.\n  Not even \u2028 a little. \U0001f9ca"
APIS: tuple[Api, ...] = ("anthropic", "openai_chat", "openai_responses")


def test_a_pinned_text_enters_with_the_next_request_once_and_verbatim(tmp_path: Path) -> None:
    with opened(tmp_path) as engine:
        session = begun(engine, "a")
        session.hand.say(RULE)
        before = session.last_request()
        (prepared,) = says(session, turn("b"))
        assert prepared.keep == len(before), "nothing that was sent changed"
        says(session, turn("c"), turn("d"))
        assert sum(RULE in text for text in spoken(session)) == 1
        for api in APIS:
            assert check_messages(session.last_request(), api) == []


def test_it_survives_an_epoch_and_the_hosts_compaction(tmp_path: Path) -> None:
    with opened(tmp_path, EAGER) as engine:
        session = begun(engine, "a")
        session.hand.say(RULE)
        session.hand.say("And be kind.")
        says(session, *(turn(one) for one in "bcdef"))
        assert sum(RULE in text for text in spoken(session)) == 1
        session.note_compaction()
        session.append(Message("user", (Text("summary so far", injected="compact_summary"),)))
        session.advance()
        assert [RULE in text for text in spoken(session)] == [False, True, False]
        assert "And be kind." in spoken(session)[2]
        for api in APIS:
            assert check_messages(session.last_request(), api) == []


def test_what_the_compaction_kept_is_not_said_twice(tmp_path: Path) -> None:
    with opened(tmp_path) as engine:
        session = begun(engine, "ab")
        session.hand.say(RULE)
        says(session, turn("c"))
        session.note_compaction(kept=2)
        says(session, turn("d"))
        assert sum(RULE in text for text in spoken(session)) == 1


def test_the_same_request_again_is_the_same_request(tmp_path: Path) -> None:
    with opened(tmp_path) as engine:
        session = begun(engine, "a")
        session.hand.say(RULE)
        before = session.last_request()
        again = session.advance()
        assert (again.tail, session.last_request()) == ((), before)


def test_a_text_that_was_taken_back_does_not_come_back(tmp_path: Path) -> None:
    with opened(tmp_path) as engine:
        session = begun(engine, "a")
        session.hand.say(RULE)
        says(session, turn("b"))
        session.hand.unsay(name_of(RULE))
        says(session, turn("c"))
        assert sum(RULE in text for text in spoken(session)) == 1, "what was sent stays"
        session.note_compaction()
        session.append(ASK)
        session.advance()
        assert not any(RULE in text for text in spoken(session))


def test_a_text_that_every_request_cannot_carry_is_refused(tmp_path: Path) -> None:
    with opened(tmp_path) as engine:
        session = begun(engine, "a")
        with pytest.raises(BadInput, match="every request would carry it"):
            session.hand.say("x" * 100_000)
        with pytest.raises(BadInput, match="pinned: none"):
            session.hand.unsay("text-1")


def test_a_pinned_text_holds_after_a_restart_and_is_no_turn_of_the_user(tmp_path: Path) -> None:
    with opened(tmp_path) as engine:
        session = begun(engine, "a")
        session.hand.say(RULE)
        says(session, turn("b"))
        before = session.last_request()
    with opened(tmp_path) as engine:
        again = engine.session("one")
        assert again.window() == before
        again.note_compaction()
        again.append(ASK)
        again.advance()
        assert RULE in spoken(again)[-1]


def pages(texts: list[str]) -> list[str]:
    return [text for text in texts if text.startswith("## RLM External Context")]


def test_without_the_setting_nothing_is_listed(tmp_path: Path) -> None:
    with opened(tmp_path, EAGER) as engine:
        assert pages(spoken(begun(engine, "abcdefgh"))) == []


def test_the_manifest_is_written_at_an_epochs_edge_and_only_added_to(tmp_path: Path) -> None:
    with opened(tmp_path, EAGER, manifest=True) as engine:
        session = begun(engine, "")
        epochs, seen = 0, list[str]()
        for name in "abcdefghijkl":
            (prepared,) = says(session, turn(name))
            now = pages(spoken(session))
            assert now[: len(seen)] == seen, "what was written is never changed"
            epochs += prepared.opened is not None
            assert len(now) == epochs, "a page for each edge, none in between"
            seen = now
        assert epochs > 1
        assert "(page 2, in addition to those before)" in seen[1]
        listed = "\n".join(seen)
        for object_id in ids(session).values():
            assert listed.count(f"| {object_id} | toolcall |") == 1
        for api in APIS:
            assert check_messages(session.last_request(), api) == []


def test_after_a_compaction_the_next_edge_lists_everything_on_one_page(tmp_path: Path) -> None:
    with opened(tmp_path, EAGER, manifest=True) as engine:
        session = begun(engine, "abcdefgh")
        objects = set(ids(session).values())
        assert len(objects) > 2
        session.note_compaction()
        session.append(ASK)
        session.advance()
        (page,) = pages(spoken(session))
        assert objects == {one for one in objects if f"| {one} |" in page}
        assert tokens_of(page) <= 2000


def test_a_row_of_the_manifest_carries_the_path_of_its_file(tmp_path: Path) -> None:
    with opened(tmp_path, EAGER, manifest=True) as engine:
        session = begun(engine, "")
        for number in range(6):
            asked = json.dumps({"file_path": f"src/part_{number}.py"})
            call = ToolCall(f"r{number}", "Read", asked, accesses("Read", asked))
            session.append(Message("assistant", (call,)))
            session.append(Message("tool", (ToolResult(call.id, f"text {number}\n" * 90, "Read"),)))
            session.advance()
        rows = [line for page in pages(spoken(session)) for line in page.splitlines() if line.startswith("| pg-")]
        assert rows
        assert all("src/part_" in row for row in rows)
