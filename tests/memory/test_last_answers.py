"""The answer to the last request is the last step of its chat until the next request brings it, and then there is one step."""

import json
import random
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.memory.journal_stories import SessionStory, tell
from tests.memory.told_journal import Journal

from pagein import erasure
from pagein.engine.recall.stored_chats import read_turns
from pagein.memory.indexer import Indexer
from pagein.memory.projection_check import projection_faults
from pagein.model.chats import ChatCall
from pagein.model.codec import decode_message, encode_message
from pagein.model.entries import Entry, EntryId, MessageEntry, NoteEntry
from pagein.model.memory_notes import AnswerNote
from pagein.model.messages import Block, Message, Text, Thinking, ToolCall, ToolResult
from pagein.model.search_query import Search
from pagein.model.writes import Query
from pagein.store.search.store_search import StoreSearch
from pagein.store.upkeep.sqlite_upkeep import SqliteUpkeep
from pagein.testing.memory_upkeep import MemoryUpkeep
from pagein.tools.session_commands import chat, sessions
from pagein.upkeep import check_store


@pytest.fixture
def store() -> MemoryUpkeep:
    return MemoryUpkeep()


def seen(*blocks: Block, stop: str | None = None) -> NoteEntry:
    return NoteEntry.of(AnswerNote(encode_message(Message("assistant", blocks, stop=stop)).decode()))


def told(store: MemoryUpkeep | SqliteUpkeep, name: str = "a") -> list[str]:
    """The words of a session's chat, and its calls with their status, as `pagein chat` gives them after a catch-up."""
    Indexer(store).save_open_chats(9_000.0)
    assert list(projection_faults(store)) == []
    _, turns = chat(store, name)
    parts = [part for turn in turns for part in (*turn["said"], *turn["steps"])]
    return [
        part["text"] if part["kind"] == "text" else f"{part['tool']}: {part['status']}"
        for part in parts
        if part["kind"] in ("text", "call")
    ]


def test_the_last_answer_is_in_the_chat_and_in_the_count_of_steps(store: MemoryUpkeep) -> None:
    journal = Journal(store, "a")
    journal.say("go")
    journal.add(seen(Thinking("hm"), Text("it is done")))
    assert told(store) == ["go", "it is done"]
    assert [one["steps"] for one in sessions(store)["sessions"]] == [1]


def test_the_message_that_brings_the_answer_takes_its_place(store: MemoryUpkeep) -> None:
    journal = Journal(store, "a")
    journal.say("go")
    journal.add(seen(Thinking("hm"), Text("it is  done")))
    before = told(store)
    journal.answer("it is done\n")  # without the thinking, and with other spaces
    versions = len(store.history(store.objects(Query(types=frozenset({"chat"})))[0].id))
    assert told(store) == before
    assert len(store.history(store.objects(Query(types=frozenset({"chat"})))[0].id)) == versions, "no further version"
    journal.say("thanks")
    assert told(store) == ["go", "it is done\n", "thanks"]


def test_an_answer_that_the_client_changes_or_drops_is_not_in_the_chat(store: MemoryUpkeep) -> None:
    journal = Journal(store, "a")
    journal.say("go")
    journal.add(seen(Text("half of an ans"), Text("wer")))
    journal.answer("[interrupted]")
    assert told(store) == ["go", "[interrupted]"]
    journal.add(seen(Text("never sent back")))
    assert told(store) == ["go", "[interrupted]", "never sent back"]
    journal.say("something else")
    assert told(store) == ["go", "[interrupted]", "something else"]


def test_a_retried_request_has_its_last_answer(store: MemoryUpkeep) -> None:
    journal = Journal(store, "a")
    journal.say("go")
    for words in ("one", "two"):
        journal.add(seen(Text(words)))
    assert told(store) == ["go", "two"]


def test_an_answer_told_after_the_session_went_on_changes_nothing(store: MemoryUpkeep) -> None:
    journal = Journal(store, "a")
    journal.say("go")
    asked = journal.leaf
    journal.answer("done")
    journal.say("on")
    journal.leaf = asked
    journal.add(seen(Text("done")))
    assert told(store) == ["go", "done", "on"]


def test_calls_of_the_last_answer_are_shown_as_open_and_found(store: MemoryUpkeep) -> None:
    journal = Journal(store, "a")
    journal.say("go")
    written = json.dumps({"file_path": "/w/a.py", "content": "x" * 300 + " bergamot"})
    journal.add(seen(Text("I write it"), ToolCall("c1", "Write", written)))
    assert told(store) == ["go", "I write it", "Write: open"]
    assert [hit.where.type for hit in StoreSearch(store).search(Search(pattern="bergamot")).hits] == ["chat"]
    journal.add(MessageEntry(Message("assistant", (Text("I write it"), ToolCall("c1", "Write", written)))))
    journal.add(MessageEntry(Message("user", (ToolResult("c1", "ok", "Write"),))))
    assert told(store) == ["go", "I write it", "Write: ok"]


def test_words_between_calls_are_in_the_chat_when_someone_asks(store: MemoryUpkeep) -> None:
    journal = Journal(store, "a")
    journal.say("go")
    expected = ["go"]
    for number in range(5):
        call = ToolCall(f"c{number}", "Bash", '{"command": "ls"}')
        journal.add(MessageEntry(Message("assistant", (Text(f"step {number}"), call))))
        journal.add(MessageEntry(Message("user", (ToolResult(f"c{number}", "ok", "Bash"),))))
        expected += [f"step {number}", "Bash: ok"]
        assert told(store) == expected
    assert [one["steps"] for one in sessions(store)["sessions"]] == [10]
    assert StoreSearch(store).search(Search(pattern="step 4")).hits


def test_a_question_makes_one_version_of_what_is_new_and_then_none(store: MemoryUpkeep) -> None:
    journal = Journal(store, "a")
    journal.say("go")
    journal.write("c1", "text")
    Indexer(store).save_open_chats(9_000.0)
    last, place = store.log()[-1].sequence, store.last_place()
    Indexer(store).save_open_chats(9_001.0)
    assert (store.log()[-1].sequence, store.last_place()) == (last, place)


def test_an_answer_that_was_cut_short_is_labelled(store: MemoryUpkeep) -> None:
    journal = Journal(store, "a")
    journal.say("go")
    journal.add(seen(Text("half an ans"), stop="cut short"))
    assert told(store) == ["go", "half an ans"]
    _, turns = chat(store, "a")
    assert [part.get("cut_short") for turn in turns for part in turn["steps"]] == [True]


@given(st.integers(0, 2**32), st.integers(1, 40))
@settings(max_examples=40)
def test_after_a_question_the_chat_of_the_newest_branch_is_complete(seed: int, steps: int) -> None:
    store, random_ = MemoryUpkeep(), random.Random(seed)  # noqa: S311 - not for secrets
    story = SessionStory("s", random_)
    for _ in tell(store, [story], random_, steps):
        if random_.random() < 0.3:
            Indexer(store).catch_up()
        if random_.random() < 0.1:
            Indexer(store).save_open_chats(9_000.0)
    Indexer(store).save_open_chats(9_000.0)
    branch = list(_branch(store))
    if branch:
        found = [
            " ".join(block.text.split())
            for version in store.objects(Query(types=frozenset({"chat"})))
            for _, turn in read_turns(store, version)
            for step in (*turn.said, *turn.steps)
            if not isinstance(step, ChatCall)
            for block in step.blocks
            if isinstance(block, Text)
        ]
        assert all(found.count(words) == 1 for words in branch), (branch, found)


def _branch(store: MemoryUpkeep) -> Iterator[str]:
    """The texts of the branch of the last message that was journaled, with the last answer if no message follows it."""
    entries = {one.id: one for one in store.entries("s") if isinstance(one, Entry)}
    messages = [one for one in entries.values() if isinstance(one.body, MessageEntry)]
    if not messages:
        return
    last = messages[-1]
    at: EntryId | None = last.id
    while at is not None:
        entry = entries[at]
        if isinstance(entry.body, MessageEntry):
            yield from (" ".join(one.text.split()) for one in entry.body.message.blocks if isinstance(one, Text))
        at = entry.parent
    behind = [one for one in entries.values() if isinstance(one.body, NoteEntry) and _owner(entries, one) == last.id]
    notes = [one.body.note for one in behind if isinstance(one.body, NoteEntry)]
    answers = [decode_message(one.message.encode()) for one in notes if isinstance(one, AnswerNote)]
    if answers and isinstance(answers[-1], Message):
        yield from (" ".join(one.text.split()) for one in answers[-1].blocks if isinstance(one, Text))


def _owner(entries: dict[EntryId, Entry], entry: Entry) -> EntryId | None:
    while not isinstance(entry.body, MessageEntry):
        if entry.parent is None:
            return None
        entry = entries[entry.parent]
    return entry.id


def test_a_forgotten_text_leaves_the_last_answer(tmp_path: Path) -> None:
    buried = "the pearls are under the third stone"
    with closing(SqliteUpkeep(tmp_path / "s.pagein")) as store:
        journal = Journal(store, "a")
        journal.say("where are they?")
        written = json.dumps({"file_path": "/w/a.md", "content": f"{buried}\n" * 3})
        journal.add(seen(Text(f"well, {buried}."), ToolCall("c1", "Write", written)))
        assert buried in "".join(told(store))
        erasure.forget_texts(store, (buried,), None, tmp_path / "log")
        assert not [where for where, data in erasure._contents(store) if buried.encode() in data]
        assert check_store(store).findings == []
        assert "".join(told(store)).startswith("where are they?well, [pagein: withheld")
        erasure.forget_session(store, "a", None, tmp_path / "log")
        assert not [where for where, data in erasure._contents(store) if b"well, " in data]
        assert check_store(store).findings == []


def test_a_forgotten_text_with_quotes_and_lines_leaves_the_call_of_a_last_answer(tmp_path: Path) -> None:
    buried = 'the "pearls" are\nunder the na\u00efve \\ third stone'
    with closing(SqliteUpkeep(tmp_path / "s.pagein")) as store:
        journal = Journal(store, "a")
        journal.say("where are they?")
        journal.add(seen(ToolCall("c1", "Bash", json.dumps({"command": f"echo {buried}"}))))
        told(store)
        assert erasure.forget_texts(store, (buried,), tmp_path / "s.pagein", tmp_path / "log").left == []
        assert not [where for where, data in erasure._contents(store) if b"third stone" in data]


def test_a_forgotten_session_is_not_told_again_by_its_last_answer(tmp_path: Path) -> None:
    words = "the pearls are under the third stone of the garden"
    with closing(SqliteUpkeep(tmp_path / "s.pagein")) as store:
        journal = Journal(store, "a")
        journal.say("where are they?")
        journal.add(seen(Text(words)))
        erasure.forget_session(store, "a", None, tmp_path / "log")
        assert [one.start for one in store.forgotten().finds(f"well, {words}")] == [6]
