"""Journal lines that share the texts of results with blobs: exact, kept once, and safe to collect."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pagein.model.codec import encode_entry
from pagein.model.entries import Entry, MessageEntry
from pagein.model.messages import Message, Text, ToolResult
from pagein.model.names import ContentHash
from pagein.model.objects import ObjectId, Origin, StoredObject
from pagein.store.sql.packed_bytes import pack_line, unpack_line
from pagein.store.upkeep.collection import Retention, plan
from pagein.store.upkeep.sqlite_upkeep import SqliteUpkeep

LONG = "\n".join(f'line {number} of é \U0001f9ca \\ " a result\t' for number in range(40))


@pytest.fixture
def store(tmp_path: Path) -> Iterator[SqliteUpkeep]:
    store = SqliteUpkeep(tmp_path / "one.pagein")
    yield store
    store.close()


def entry(name: str, *texts: str) -> Entry:
    blocks = tuple(ToolResult(f"call-{number}", text, "bash") for number, text in enumerate(texts))
    return Entry(name, None, MessageEntry(Message("tool", blocks)))


@given(st.lists(st.text(alphabet=st.characters(codec=None)) | st.text(min_size=180, max_size=400), max_size=3))
def test_a_line_is_unpacked_as_it_was(texts: list[str]) -> None:
    line = encode_entry(entry("a", *texts))
    packed = pack_line(line)
    assert unpack_line(packed.codec, packed.data, packed.texts.__getitem__) == line


def test_bytes_that_look_like_marks_stay_as_they_are() -> None:
    line = b'{"type":"tool_result","text":"' + b"x" * 300 + b'","odd":"\1' + b"y" * 32 + b'"}'
    packed = pack_line(line)
    assert unpack_line(packed.codec, packed.data, packed.texts.__getitem__) == line


def test_a_result_is_stored_once_for_the_journal_and_for_the_object(store: SqliteUpkeep) -> None:
    store.append("one", [entry("a", LONG, "short")])
    before = store.figures()
    store.append("two", [entry("b", LONG)])
    store.put(LONG.encode())
    assert store.figures() == before
    (line,) = (line for line in store.journal_lines() if line.session == "two")
    assert line.texts == (ContentHash.of(LONG.encode()),)
    assert line.line == encode_entry(entry("b", LONG))


def test_content_that_a_journal_shares_is_no_garbage(store: SqliteUpkeep) -> None:
    store.append("one", [entry("a", LONG)])
    assert plan(store, Retention(), 0.0).blobs == frozenset()


def test_a_line_outlives_the_blob_that_it_shared(store: SqliteUpkeep) -> None:
    told = entry("a", LONG, LONG[:-1])
    store.append("one", [told])
    assert store.drop_blobs([ContentHash.of(LONG.encode())]) == 1
    assert list(store.entries("one")) == [told]
    assert store.entry("one", "a") == told
    assert not store.has(ContentHash.of(LONG.encode()))


def test_evicted_content_is_kept_in_the_journal_too(store: SqliteUpkeep) -> None:
    """Law 1 has two legs."""
    store.append("one", [entry("a", LONG)])
    content = ContentHash.of(LONG.encode())
    origin = Origin("one", "call-0")
    name = ObjectId.of(content, origin, store.secret())
    stored = StoredObject(name, content, "result", "w", origin, "", 1, len(LONG))
    assert store.put_objects([(stored, LONG.encode())]) == frozenset()
    store.append("one", [entry("b", LONG)])
    assert [line.texts for line in store.journal_lines()] == [(), ()]


@pytest.mark.damages_store
def test_a_line_without_its_text_is_told_as_unreadable(store: SqliteUpkeep) -> None:
    store.append("one", [entry("a", LONG), Entry("b", "a", MessageEntry(Message("user", (Text("hello"),))))])
    with store._database.open_writer() as rows:
        rows.execute("DELETE FROM blob")
    first, second = store.entries("one")
    assert "missing" in getattr(first, "why", "")
    assert isinstance(second, Entry)
