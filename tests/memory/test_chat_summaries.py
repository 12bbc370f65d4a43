"""Summaries of chats: written when asked for, kept as fields, and shown in the window of a later session."""

from collections.abc import Callable
from pathlib import Path

import pytest
from tests.memory.told_journal import Journal

import pagein
from pagein.errors import BadInput
from pagein.memory.chat_summaries import summarise_chat
from pagein.memory.indexer import Indexer
from pagein.memory.projection_check import projection_faults
from pagein.model.versions import Version
from pagein.model.writes import Query
from pagein.store.upkeep.sqlite_upkeep import SqliteUpkeep
from pagein.testing.memory_upkeep import MemoryUpkeep

CHATS = Query(types=frozenset({"chat"}))


def told(store: SqliteUpkeep | MemoryUpkeep) -> Journal:
    journal = Journal(store, "first")
    journal.say("Where is the login?")
    journal.answer("In auth.py.")
    journal.say("Fix it.")
    journal.answer("Done.")
    Indexer(store).catch_up()
    return journal


def model(prompts: list[str]) -> Callable[[str], str]:
    def ask(prompt: str) -> str:
        prompts.append(prompt)
        return f"summary {len(prompts)}\n"

    return ask


def newest(store: SqliteUpkeep | MemoryUpkeep) -> Version:
    return store.objects(CHATS)[0]


def test_a_chat_is_summarised_by_two_questions_and_its_summaries_are_fields() -> None:
    store, prompts = MemoryUpkeep(), list[str]()
    told(store)
    done = summarise_chat(store, newest(store).id, model(prompts), at=900.0)
    assert "Where is the login?" in prompts[0]
    assert "In auth.py." in prompts[0]
    assert "summary 1" in prompts[1]
    assert [store.additional(done, name) for name in ("long_summary", "short_summary")] == ["summary 1", "summary 2"]
    assert done.metadata["summarised_turns"] == 2
    assert done.additional["long_summary"] != done.additional["short_summary"]  # each has a hash of its own
    assert list(projection_faults(store)) == []
    before = newest(store).object_hash
    Indexer(store).drop(store)
    Indexer(store).catch_up()
    assert newest(store).object_hash == before


def test_nothing_is_written_without_a_summary() -> None:
    store = MemoryUpkeep()
    told(store)
    chat = newest(store)
    with pytest.raises(BadInput, match="the model gave no summary"):
        summarise_chat(store, chat.id, lambda _: " ", at=900.0)

    def fails(_: str) -> str:
        raise TimeoutError

    with pytest.raises(TimeoutError):
        summarise_chat(store, chat.id, fails, at=900.0)
    assert newest(store).number == chat.number
    session = store.objects(Query(types=frozenset({"session"})))[0]
    with pytest.raises(BadInput, match="is no chat with turns"):
        summarise_chat(store, session.id, model([]), at=900.0)


def test_an_earlier_chat_is_activated_as_its_summary_or_in_parts(tmp_path: Path) -> None:
    with pagein.open(tmp_path / "s.db", workspace=tmp_path) as engine:
        store = SqliteUpkeep(tmp_path / "s.db")
        journal = told(store)
        chat = newest(store).id
        session = engine.session("second")
        assert session.pools.activate(chat).text == f"Object is locked: {chat}"
        assert session.pools.activate(f"{chat}#summary").text == f"Object not found: {chat}#summary"
        summarise_chat(store, chat, model([]), at=900.0)
        journal.say("And then?")  # a chat that goes on keeps the summary of what was
        journal.answer("That is all.")
        store.close()
        assert session.pools.activate(f"{chat}#summary").text == f"Activated {chat}#summary"
        assert session.pools.activate(f"{chat}#2").text == f"Activated {chat}#2"
        assert session.pools.activate(f"{chat}#9").is_error
        (summary, text), (_, turn) = session.pools.active_texts()
        assert (text, summary.args) == ("summary 1", "summary 2")
        assert "Fix it." in turn
        assert "Where is the login?" not in turn
        assert session.pools.deactivate(f"{chat}#2").text == f"Deactivated {chat}#2"
