"""A text that was erased in a store stays erased in the stores that import its export."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.memory.told_journal import Journal

from pagein import erasure
from pagein.errors import BadInput
from pagein.memory.indexer import Indexer
from pagein.model.entries import MessageEntry
from pagein.model.messages import Message, ToolCall, ToolResult
from pagein.model.writes import Query
from pagein.store.upkeep.sqlite_upkeep import SqliteUpkeep
from pagein.testing.memory_upkeep import MemoryUpkeep
from pagein.testing.upkeep_contract import export_all, import_all
from pagein.upkeep import check_store, import_from

LINES = "north wind\nsilent harbour\nthird bench"
NUMBERED = "\n".join(f"{number:6}\t{line}" for number, line in enumerate(LINES.split("\n"), 1))
FIRST, SECOND = "the first of two secrets", "the second of two secrets"
LONG = "this sentence is long enough for a tombstone of its own, and is said twice"


@pytest.fixture
def here(tmp_path: Path) -> Iterator[SqliteUpkeep]:
    store = SqliteUpkeep(tmp_path / "here.pagein")
    yield store
    store.close()


@pytest.fixture(params=["memory", "sqlite"])
def there(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[MemoryUpkeep | SqliteUpkeep]:
    store = MemoryUpkeep() if request.param == "memory" else SqliteUpkeep(tmp_path / "there.pagein")
    yield store
    store.close()


def read_a_file(store: SqliteUpkeep) -> None:
    """Tell of a reading: the journal has the lines of the file with their numbers, the object has them as they are."""
    journal = Journal(store, "a")
    journal.say("read it")
    call = ToolCall("call_1", "Read", '{"file_path":"/w/a.py"}')
    journal.add(MessageEntry(Message("assistant", (call,))))
    journal.add(MessageEntry(Message("user", (ToolResult(call.id, NUMBERED, "Read"),))))
    Indexer(store).catch_up()


def contents_of_files(store: MemoryUpkeep | SqliteUpkeep) -> list[str | None]:
    return [store.content(one) for one in store.objects(Query(types=frozenset({"file"})))]


def forget(store: SqliteUpkeep, text: str, log: Path) -> None:
    assert erasure.forget_texts(store, (text,), None, log / "log").left == []


def test_a_text_behind_line_numbers_stays_erased(
    here: SqliteUpkeep, there: MemoryUpkeep | SqliteUpkeep, tmp_path: Path
) -> None:
    read_a_file(here)
    assert contents_of_files(here) == [LINES]
    forget(here, LINES, tmp_path)
    lines = export_all(here)
    done = import_all(there, lines)
    assert (done.added["tombstone"], done.unburied) == (1, [])
    Indexer(there).catch_up()
    assert contents_of_files(there) == contents_of_files(here)
    assert LINES not in str(contents_of_files(there))
    assert export_all(there) == lines
    assert import_all(there, lines).added == {}


def test_an_export_without_tombstones_is_imported_as_before(here: SqliteUpkeep, there: MemoryUpkeep) -> None:
    read_a_file(here)
    assert not any(b'"tombstone"' in line for line in export_all(here))
    import_all(there, export_all(here))
    assert there.tombstones() == ()


def test_a_store_with_a_key_of_its_own_says_that_it_cannot_recognise_the_text(
    here: SqliteUpkeep, there: MemoryUpkeep | SqliteUpkeep, tmp_path: Path
) -> None:
    there.secret()
    read_a_file(here)
    forget(here, LINES, tmp_path)
    done = import_all(there, export_all(here))
    assert "tombstone" not in done.added
    assert [one.split(":")[0] for one in done.unburied] == ["1 of the texts erased there"]
    assert "key of its own" in done.unburied[0]
    assert there.tombstones() == ()


def test_a_store_keeps_what_it_contains_itself(here: SqliteUpkeep, tmp_path: Path) -> None:
    """Two stores with one key: erasing in one of them takes nothing from the other, which stays sound."""
    there = SqliteUpkeep(tmp_path / "there.pagein")
    journal = Journal(here, "a")
    journal.say(f"so {FIRST}")
    Indexer(here).catch_up()
    import_all(there, export_all(here))
    Indexer(there).catch_up()
    before = [*there.entries("a")], [*there.log()]
    forget(here, FIRST, tmp_path)
    forget(here, SECOND, tmp_path)
    file = tmp_path / "export.jsonl"
    file.write_bytes(b"".join(export_all(here)))
    done = import_from(there, str(file))
    assert done.added["tombstone"] == 1
    assert "contains them" in done.unburied[0]
    assert ([*there.entries("a")], [*there.log()]) == before
    assert check_store(there).findings == []
    forget(there, FIRST, tmp_path)
    assert {*there.tombstones()} == {*here.tombstones()}
    there.close()


def test_what_another_session_quotes_of_a_forgotten_one_is_imported(
    here: SqliteUpkeep, there: MemoryUpkeep | SqliteUpkeep, tmp_path: Path
) -> None:
    """The store keeps it in spite of the tombstone, so an import of its export does too."""
    Journal(here, "a").say(LONG)
    Journal(here, "b").say(f"you said: {LONG}.")
    erasure.forget_session(here, "a", None, tmp_path / "log")
    done = import_all(there, export_all(here))
    assert done.added["tombstone"] == 1
    assert [*there.entries("b")] == [*here.entries("b")]
    Indexer(there).catch_up()
    assert export_all(there) == export_all(here)


@pytest.mark.parametrize(
    ("place", "fields"),
    [
        (1, {}),
        (-1, {}),
        (2, {"digest": "x"}),
        (2, {"chars": 0}),
        (2, {"beginning": 1.5}),
        (2, {"beginning": 1 << 64}),
        (3, {}),
    ],
)
def test_a_tombstone_out_of_place_or_form_is_refused(
    there: MemoryUpkeep | SqliteUpkeep, place: int, fields: dict[str, object]
) -> None:
    mark = {"type": "tombstone", "digest": "0" * 32, "chars": 30, "beginning": -5}
    lines = [
        {"pagein": "export", "v": 1},
        {"type": "key", "key": "ab" * 32},
        *([mark] if place == 3 else []),
        {"type": "session", "name": "a", "leaf": None, "ended": False},
    ]
    lines.insert(len(lines) if place < 0 else place, mark | fields)
    with pytest.raises(BadInput, match="nothing was imported") as refusal:
        import_all(there, [json.dumps(line).encode() + b"\n" for line in lines])
    assert "cut short" not in str(refusal.value)
