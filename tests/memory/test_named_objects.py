"""Names that a person gives to objects of sessions that are taken in further afterwards."""

from tests.memory.told_journal import UNIQUE, Journal

from pagein.memory.indexer import Indexer
from pagein.memory.object_orders import give_order
from pagein.model.memory_notes import ObjectNameNote
from pagein.model.writes import EVERYTHING
from pagein.testing.memory_upkeep import MemoryUpkeep
from pagein.tools.session_commands import chat
from pagein.tools.version_commands import show


def test_a_name_hides_nothing_that_was_recorded_before_it_and_taken_in_later() -> None:
    store = MemoryUpkeep()
    journal = Journal(store, "told", 100.0)
    journal.write(UNIQUE, "one\n")
    Indexer(store).save_open_chats(150.0)
    for number, one in enumerate([one for one in store.objects(EVERYTHING) if one.type in ("chat", "file")]):
        give_order(store, ObjectNameNote(one.id, f"nick-{number}"), 5_000.0, Indexer(store).catch_up)
    journal.write(f"{UNIQUE}2", "two\n")
    journal.answer("last words")
    Indexer(store).save_open_chats(6_000.0)

    assert "last words" in str([*chat(store, "told")[1]])
    assert show(store, "/w/a.py")["content"] == "two\n"
    assert sorted(filter(None, (one.nickname for one in store.objects(EVERYTHING)))) == ["nick-0", "nick-1"]
