"""An edit on a text that another session changed in the meantime is likely, and no more."""

import json
from pathlib import Path

import pytest
from tests.memory.told_journal import Journal

from pagein.memory.indexer import Indexer
from pagein.model.entries import MessageEntry
from pagein.model.messages import Message, ToolCall, ToolResult
from pagein.model.writes import Query
from pagein.store.upkeep.sqlite_upkeep import SqliteUpkeep
from pagein.upkeep import check_store

A, B = "session-a", "session-b"
Told = list[tuple[str, str, str]]


@pytest.fixture
def store(tmp_path: Path) -> SqliteUpkeep:
    return SqliteUpkeep(tmp_path / "s.pagein")


def call(journal: Journal, number: int, tool: str, arguments: dict[str, object], result: str = "ok") -> None:
    name = f"call_{number}"
    journal.add(MessageEntry(Message("assistant", (ToolCall(name, tool, json.dumps(arguments)),))))
    journal.add(MessageEntry(Message("user", (ToolResult(name, result, tool),))))


def edit(journal: Journal, number: int, old: str, new: str) -> None:
    row: dict[str, object] = {"file_path": "/w/a.py", "old_string": old, "new_string": new}
    call(journal, number, "Edit", row, "The file /w/a.py has been updated successfully.")


def read(journal: Journal, number: int, text: str) -> None:
    shown = "\n".join(f"{at:6}\t{line}" for at, line in enumerate(text.split("\n"), 1))
    call(journal, number, "Read", {"file_path": "/w/a.py"}, shown)


def told(store: SqliteUpkeep) -> Told:
    """Session, deed and known of every version, in the order of their times."""
    Indexer(store).catch_up()
    (file,) = store.objects(Query(types=frozenset({"file"})))
    return [
        (str(one.writer.session)[-1], str(one.metadata["op"]), str(one.metadata["known"]))
        for one in sorted(store.history(file.id), key=lambda one: (one.at, one.number))
    ]


def begin(store: SqliteUpkeep, at: float = 100.0) -> Journal:
    journal = Journal(store, A, at)
    journal.write("call_w", "a = 1\nb = 2\nc = 3\n")
    return journal


def test_an_edit_on_a_text_that_another_session_changed_is_likely_until_it_is_read_again(store: SqliteUpkeep) -> None:
    ours = begin(store)
    theirs = Journal(store, B, 110.0)
    read(theirs, 1, "a = 1\nb = 2\nc = 3")
    edit(theirs, 2, "b = 2", "b = 22")
    ours._at = 120.0
    edit(ours, 3, "c = 3", "c = 33")
    edit(ours, 4, "a = 1", "a = 11")
    read(ours, 5, "a = 11\nb = 22\nc = 33")
    edit(ours, 6, "a = 11", "a = 12")
    expected = [
        ("a", "write", "whole"), ("b", "edit", "whole"), ("a", "edit", "likely"), ("a", "edit", "likely"),
        ("a", "read", "whole"), ("a", "edit", "whole"),
    ]  # fmt: skip
    assert [one for one in told(store) if one != ("b", "read", "whole")] == expected
    assert check_store(store).findings == []
    before = told(store)
    Indexer(store).drop(store)
    assert told(store) == before


def test_a_session_that_only_read_the_same_text_puts_nothing_in_doubt(store: SqliteUpkeep) -> None:
    ours = begin(store)
    theirs = Journal(store, B, 110.0)
    read(theirs, 1, "a = 1\nb = 2\nc = 3")
    ours._at = 120.0
    edit(ours, 3, "c = 3", "c = 33")
    assert told(store)[-1] == ("a", "edit", "whole")


def test_a_session_that_read_another_text_shows_that_the_file_changed(store: SqliteUpkeep) -> None:
    ours = begin(store)
    theirs = Journal(store, B, 110.0)
    read(theirs, 1, "a = 1\nb = 5\nc = 3")
    ours._at = 120.0
    edit(ours, 3, "c = 3", "c = 33")
    assert told(store)[-1] == ("a", "edit", "likely")


def test_what_another_session_did_before_or_after_puts_nothing_in_doubt(store: SqliteUpkeep) -> None:
    earlier = Journal(store, B, 10.0)
    earlier.write("call_b", "b = 2\n")
    ours = begin(store)
    later = Journal(store, f"{B}b", 300.0)
    later.write("call_c", "c = 3\n")
    ours._at = 120.0
    edit(ours, 3, "c = 3", "c = 33")
    assert ("a", "edit", "whole") in told(store)


def test_an_indexer_that_begins_anew_goes_on_as_one_that_went_on(store: SqliteUpkeep) -> None:
    ours = begin(store)
    theirs = Journal(store, B, 110.0)
    theirs.write("call_b", "c = 3\nd = 4\n")
    ours._at = 120.0
    edit(ours, 3, "c = 3", "c = 33")
    Indexer(store).catch_up()
    edit(ours, 4, "a = 1", "a = 11")
    assert [known for session, _, known in told(store) if session == "a"] == ["whole", "likely", "likely"]
