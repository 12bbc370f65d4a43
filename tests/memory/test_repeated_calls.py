"""A fork and a compaction repeat calls that were made before: they happened once."""

from pathlib import Path

import pytest
from tests.memory.told_journal import UNIQUE, Journal

from pagein.memory.indexer import Indexer
from pagein.memory.object_orders import give_order
from pagein.memory.projection_check import projection_faults
from pagein.model.chats import ChatCall, turns_from_value
from pagein.model.entries import CompactionEntry, MessageEntry, NoteEntry, RequestSent
from pagein.model.journal_notes import PrefixDigests
from pagein.model.links import Resolution
from pagein.model.memory_notes import ObjectNameNote
from pagein.model.messages import Message, ToolCall, ToolResult
from pagein.model.references import Reference
from pagein.model.versions import Version
from pagein.model.writes import Query
from pagein.store.upkeep.sqlite_upkeep import SqliteUpkeep
from pagein.tools.session_commands import chat


@pytest.fixture
def store(tmp_path: Path) -> SqliteUpkeep:
    return SqliteUpkeep(tmp_path / "one.pagein")


def objects(store: SqliteUpkeep, kind: str) -> list[Version]:
    Indexer(store).catch_up()
    return sorted(store.objects(Query(types=frozenset({kind}), deleted=None)), key=lambda one: one.sequence)


def fork(store: SqliteUpkeep, call_id: str) -> None:
    main = Journal(store, "main")
    main.say("write it")
    main.write(call_id, "one\n")
    forked = Journal(store, "forked", at=500.0)
    forked.say("write it")
    forked.write(call_id, "one\n")
    forked.answer("done")
    forked.say("and again")
    forked.write("toolu_02B09q90qw90lq917835lq9", "two\n")
    forked.answer("done")


def test_a_call_that_a_fork_repeats_made_one_version_of_its_file(store: SqliteUpkeep) -> None:
    fork(store, UNIQUE)
    (file,) = objects(store, "file")
    told = [(one.writer.session, store.content(one)) for one in store.history(file.id)]
    assert told == [("main", "one\n"), ("forked", "two\n")]
    assert [one.id for one in objects(store, "toolcall")] == [UNIQUE, "toolu_02B09q90qw90lq917835lq9"]
    store.close()


def test_the_chat_of_a_fork_refers_to_the_first_call(store: SqliteUpkeep) -> None:
    fork(store, UNIQUE)
    chat = next(one for one in objects(store, "chat") if one.metadata["session_id"] == "forked")
    (turn,) = turns_from_value(store.additional(chat, "turns.1.1"))
    assert [step.object.target for step in turn.steps if isinstance(step, ChatCall)] == [UNIQUE]
    store.close()


def test_calls_of_an_id_that_is_no_random_one_are_told_apart(store: SqliteUpkeep) -> None:
    fork(store, "3.Write.1")
    (file,) = objects(store, "file")
    assert len(store.history(file.id)) == 3
    assert len(objects(store, "toolcall")) == 3
    store.close()


def test_objects_of_forks_are_the_same_when_they_are_made_again(store: SqliteUpkeep) -> None:
    fork(store, UNIQUE)
    kinds = ("file", "toolcall", "chat")
    grown = [(one.id, one.number, one.object_hash) for kind in kinds for one in objects(store, kind)]
    Indexer(store).drop(store)
    assert [(one.id, one.number, one.object_hash) for kind in kinds for one in objects(store, kind)] == grown
    store.close()


def test_words_after_words_begin_another_turn(store: SqliteUpkeep) -> None:
    journal = Journal(store, "main")
    journal.say("This session is being continued from a previous conversation that ran out of context.")
    journal.say("first")
    journal.say("second")
    journal.write(UNIQUE, "one\n")
    (file,) = objects(store, "file")
    assert file.metadata["turn"] == 2
    (session,) = objects(store, "session")
    assert session.metadata["title"] == "first"
    store.close()


def test_words_that_a_client_repeats_after_a_compaction_are_the_words_said_before(store: SqliteUpkeep) -> None:
    journal = Journal(store, "main")
    for words in ("first", "second"):
        journal.say(words)
        journal.answer("Done.")
    journal.add(CompactionEntry())
    journal.say("first")
    journal.say("second")
    journal.say("Another language model started to solve this problem and produced a summary of it: all is well")
    journal.write(UNIQUE, "one\n")
    journal.say("first")  # now the user says it again
    users = sorted(objects(store, "user"), key=lambda one: one.at)
    assert [store.content(one) for one in users] == ["first", "second", "first"]
    (file,) = objects(store, "file")
    asked = file.metadata["user_ref"]
    assert isinstance(asked, Reference)
    assert asked.target == users[1].id  # the words in whose turn the compaction was
    store.close()


def test_a_read_that_the_client_answers_by_an_earlier_one_refers_to_the_file(store: SqliteUpkeep) -> None:
    journal = Journal(store, "main")
    journal.say("look")
    journal.write(UNIQUE, "one\n")
    unchanged = "Wasted call — file unchanged since your last Read. Refer to that earlier tool_result instead."
    journal.add(MessageEntry(Message("assistant", (ToolCall("call_r", "Read", '{"file_path":"/w/a.py"}'),))))
    journal.add(MessageEntry(Message("user", (ToolResult("call_r", unchanged, "Read"),))))
    (file,) = objects(store, "file")
    assert file.number == 1
    links = {one.source.id: one.reference.relation for one in store.backlinks(file.id)}
    assert links["call_r"] == "read"
    store.close()


def test_a_command_of_the_client_begins_no_turn_and_gives_no_title(store: SqliteUpkeep) -> None:
    journal = Journal(store, "main")
    journal.say(
        "<command-name>/clear</command-name>\n  <command-message>clear</command-message>\n  <command-args></command-args>"
    )
    journal.say("<local-command-stdout></local-command-stdout>")
    journal.say("write it")
    journal.write(UNIQUE, "one\n")
    (file,) = objects(store, "file")
    assert file.metadata["turn"] == 1
    assert [store.content(one) for one in objects(store, "user")] == ["write it"]
    (session,) = objects(store, "session")
    assert session.metadata["title"] == "write it"
    store.close()


def test_a_call_refers_to_the_page_of_its_turn(store: SqliteUpkeep) -> None:
    journal = Journal(store, "main")
    for turn in range(2):
        journal.say(f"write it {turn}")
        journal.write(f"{UNIQUE}{turn}", f"{turn}\n")
    found = sorted(objects(store, "toolcall"), key=lambda one: one.at)
    fields = [one.metadata["chat_ref"].field for one in found]  # type: ignore[union-attr]
    assert fields == ["turns.1.1", "turns.2.1"]
    assert all(isinstance(store.resolve(one.metadata["chat_ref"]), Resolution) for one in found)  # type: ignore[arg-type]
    store.close()


def test_the_versions_of_a_session_are_in_the_order_of_their_times(store: SqliteUpkeep) -> None:
    journal = Journal(store, "main")
    journal.say("begin")
    journal._at = 50.0  # a client's clock
    journal.add(NoteEntry.of(PrefixDigests("claude-opus-4-6")))
    journal.say("go on")
    (session,) = objects(store, "session")
    history = store.history(session.id)
    assert len(history) > 1
    assert [one.at for one in history] == sorted(one.at for one in history)
    assert store.latest_versions(session.id, 1)[0].number == session.number
    store.close()


def test_entries_without_a_time_have_that_of_the_request_before(store: SqliteUpkeep) -> None:
    journal = Journal(store, "main", at=None)
    journal.add(NoteEntry.of(PrefixDigests("claude-opus-4-6")))
    journal.say("write it")
    journal.add(RequestSent(0, 1, 700.0))
    journal.write(UNIQUE, "one\n")
    (file,) = objects(store, "file")
    assert file.at == 700.0
    (session,) = objects(store, "session")
    assert session.metadata["models"] == ("claude-opus-4-6",)
    store.close()


def test_a_note_does_not_take_the_name_of_the_call_that_writes_it(store: SqliteUpkeep) -> None:
    one = Journal(store, "one")
    one.say("note it")
    one.write("call_9", "# nine\n", "/w/call_9.md")
    later = Journal(store, "later", at=500.0)
    later.say("go on")
    assert [call.id for call in objects(store, "toolcall")] == ["call_9"]
    assert [note.nickname for note in objects(store, "note")] == [None]
    assert len(objects(store, "session")) == 2


def test_a_name_that_a_person_gives_to_a_repeated_call_is_no_fault(store: SqliteUpkeep) -> None:
    fork(store, UNIQUE)
    Indexer(store).catch_up()
    give_order(store, ObjectNameNote(UNIQUE, "first"), 1_000.0)
    assert list(projection_faults(store)) == []


def test_the_name_of_a_call_or_of_words_shows_the_whole_turn_also_of_a_branch_that_was_left(
    store: SqliteUpkeep,
) -> None:
    journal = Journal(store, "main")
    journal.say("begin")
    journal.answer("begun")
    begun = journal.leaf
    for place, words in enumerate(("try one way", "try another")):
        journal.leaf = begun
        journal.say(words)
        for step in range(2):
            journal.write(f"call-{place}-{step}", f"{words} {step}\n")
        journal.answer("tried")
        Indexer(store).catch_up()
    calls = {one.id: one for one in objects(store, "toolcall")}
    asked = [one.id for one in objects(store, "user") if (store.content(one) or "").startswith("try")]
    for place, words in enumerate(asked):
        for name in (f"call-{place}-0", f"call-{place}-1", words):
            (turn,) = chat(store, name)[1]
            found = [step["object"] for step in turn["steps"] if step["kind"] == "call"]
            assert found == [calls[f"call-{place}-{step}"].id for step in range(2)], name
    store.close()
