"""Evicted results in an export, of which a text was erased or whose content expired."""

import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from pagein import erasure
from pagein.model.entries import Entry, EpochEntry, MessageEntry, PagedOut
from pagein.model.messages import Message, ToolCall, ToolResult
from pagein.model.names import ContentHash
from pagein.model.objects import StoredObject
from pagein.store.upkeep.collection import Retention
from pagein.store.upkeep.sqlite_upkeep import SqliteUpkeep
from pagein.testing.blob_store import an_object
from pagein.testing.upkeep_contract import export_all, import_all
from pagein.upkeep import check_store, garbage

SECRET = "a dove at nine"  # noqa: S105 - a test's
RESULT = f"before\n{SECRET}\nbehind"


@pytest.fixture
def here(tmp_path: Path) -> Iterator[SqliteUpkeep]:
    store = SqliteUpkeep(tmp_path / "here.pagein")
    yield store
    store.close()


@pytest.fixture
def there(tmp_path: Path) -> Iterator[SqliteUpkeep]:
    store = SqliteUpkeep(tmp_path / "there.pagein")
    yield store
    store.close()


def say(store: SqliteUpkeep) -> StoredObject:
    """Journal a call and its result, and store the result as an object."""
    evicted = an_object(store, RESULT.encode())
    call = Message("assistant", (ToolCall("call-1", "Bash", '{"command":"ls"}'),))
    result = Message("user", (ToolResult("call-1", RESULT, "Bash"),))
    store.append("session", [Entry("1", None, MessageEntry(call)), Entry("2", "1", MessageEntry(result, (9,)))])
    store.put_objects([(evicted, RESULT.encode())])
    return evicted


def evict(store: SqliteUpkeep, evicted: StoredObject, behind: str, content: ContentHash) -> None:
    stub = f"[evicted: {evicted.id}]"
    paged = PagedOut("call-1", str(evicted.id), content, 9, evicted.chars, stub, 1, 0)
    store.append("session", [Entry("epoch", behind, EpochEntry(1, 1, (paged,)))])


def forget(store: SqliteUpkeep, tmp_path: Path) -> None:
    assert erasure.forget_texts(store, (SECRET,), None, tmp_path / "log").left == []


@pytest.mark.parametrize("is_evicted", [True, False], ids=["evicted before", "evicted after it was exchanged"])
def test_a_store_that_has_a_result_whole_takes_in_what_was_erased_elsewhere(
    here: SqliteUpkeep, there: SqliteUpkeep, tmp_path: Path, *, is_evicted: bool
) -> None:
    evicted = say(here)
    if is_evicted:
        evict(here, evicted, "2", evicted.content)
    import_all(there, export_all(here))
    forget(here, tmp_path)
    if not is_evicted:
        made = here.find(evicted.id)
        assert made is not None
        evict(here, evicted, here.leaf("session") or "", made.content)
    done = import_all(there, export_all(here))
    assert done.added["entry"] >= 1
    found = there.find(evicted.id)
    assert found is not None
    assert there.get(found.content).decode() == RESULT  # known records stay, until they are erased here
    assert check_store(there).findings == []
    names = set(there.names())
    assert import_all(there, export_all(here)).added.get("entry", 0) == 0
    assert set(there.names()) == names

    forget(there, tmp_path)
    assert SECRET not in b"".join(export_all(there)).decode()
    assert check_store(there).findings == []


def test_a_short_text_that_was_erased_with_its_session_does_not_come_back(here: SqliteUpkeep, tmp_path: Path) -> None:
    evicted = say(here)
    evict(here, evicted, "2", evicted.content)
    before = export_all(here)
    assert erasure.forget_session(here, "session", None, tmp_path / "log").left == []
    import_all(here, before)
    assert ContentHash.of(RESULT.encode()) not in set(here.names())
    assert check_store(here).findings == []


def test_an_expired_result_comes_back_with_its_session(here: SqliteUpkeep, there: SqliteUpkeep) -> None:
    there.secret()  # a key of its own: of an object with another key a record stays
    evicted = say(here)
    evict(here, evicted, "2", evicted.content)
    lines = export_all(here)
    import_all(there, lines)
    there.end_session("session")
    garbage(there, Retention(idle=0.0, keep=0.0), time.time() + 10, apply=True)
    assert [one.kind for one in there.paged_objects()] == ["expired"]
    assert import_all(there, lines).added["object"] == 1
    assert there.find(evicted.id) == evicted
    assert there.get(evicted.content).decode() == RESULT
    assert check_store(there).findings == []
