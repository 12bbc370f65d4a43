"""A version of a chat holds several steps: what came after the newest one is shown too."""

from pathlib import Path

import pytest
from tests.memory.told_journal import UNIQUE, Journal

from pagein.memory.indexer import Indexer
from pagein.store.upkeep.sqlite_upkeep import SqliteUpkeep
from pagein.tools.session_commands import chat


@pytest.mark.parametrize("count", [1, 3, 20])
def test_the_calls_of_a_conversation_that_ended_without_an_answer_are_all_shown(tmp_path: Path, count: int) -> None:
    store = SqliteUpkeep(tmp_path / "one.pagein")
    journal = Journal(store, "main")
    journal.say("write it")
    journal.write(UNIQUE, "one\n")
    journal.answer("done")
    journal.say("and again")
    names = [f"toolu_02B09q90qw90lq9178{number:03}" for number in range(count)]
    for name in names:
        journal.write(name, f"{name}\n")
    Indexer(store).catch_up()
    _, turns = chat(store, "main")
    shown = [[part["object"] for part in turn["steps"] if part["kind"] == "call"] for turn in turns]
    assert shown == [[UNIQUE], names]
    _, turns = chat(store, "main", turns="1")
    assert [part["kind"] for turn in turns for part in turn["steps"]] == ["call", "text"]
    store.close()
