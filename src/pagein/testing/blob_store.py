"""The contracts of a store, as tests. Subclass a contract and provide the fixture `store`."""

# ruff: noqa: S101 -- these are tests that ship

import pytest

from pagein.errors import MissingBlob
from pagein.model.entries import CompactionEntry, Entry, MessageEntry, NoteEntry
from pagein.model.messages import Message, Text, UnreadableLine
from pagein.model.names import ContentHash
from pagein.model.objects import ObjectId, Origin, StoredObject
from pagein.ports import BlobStore, JournalStore

HARD_CONTENTS = (
    b"",
    b"\0",
    b"plain",
    b"\xff\xfe not utf-8",
    b"line\n" * 50_000,
    bytes(range(256)) * 40,
)


def an_object(store: BlobStore, content: bytes, *, workspace: str = "here", call_id: str = "call-1") -> StoredObject:
    """Return the record of an object with this content."""
    name = ContentHash.of(content)
    origin = Origin("session", call_id)
    object_id = ObjectId.of(name, origin, store.secret())
    try:
        chars = len(content.decode("utf-8", "surrogatepass"))
    except UnicodeDecodeError:  # binary content has no characters to count
        chars = len(content)
    return StoredObject(object_id, name, "toolcall", workspace, origin, "Read: a | \ttext - 3 lines", 12, chars)


class BlobStoreContract:
    """The contract of every BlobStore."""

    @pytest.mark.parametrize("content", HARD_CONTENTS, ids=range(len(HARD_CONTENTS)))
    def test_what_was_put_comes_back_byte_for_byte(self, store: BlobStore, content: bytes) -> None:
        assert store.get(store.put(content)) == content

    def test_a_name_is_the_hash_of_the_content(self, store: BlobStore) -> None:
        assert store.put(b"body") == ContentHash.of(b"body")

    def test_prepared_bytes_are_stored_only_by_a_put(self, store: BlobStore) -> None:
        body, other = b"body " * 1000, b"other " * 1000
        store.prepare(body, ContentHash.of(body))
        assert not store.has(ContentHash.of(body))
        assert store.get(store.put(other, ContentHash.of(other))) == other
        assert store.get(store.put(body, ContentHash.of(body))) == body

    def test_putting_again_changes_nothing(self, store: BlobStore) -> None:
        first = store.put(b"body")
        assert store.put(b"body") == first
        assert list(store.names()) == [first]

    def test_many_are_put_in_order(self, store: BlobStore) -> None:
        contents = [b"b", b"a", b"b", b"c"]
        assert store.put_many(contents) == tuple(ContentHash.of(content) for content in contents)
        assert sorted(store.get(name) for name in store.names()) == [b"a", b"b", b"c"]

    def test_nothing_put_is_nothing_stored(self, store: BlobStore) -> None:
        assert store.put_many(()) == ()
        assert store.put_objects(()) == frozenset()
        assert list(store.names()) == []

    def test_a_name_without_bytes_is_missing(self, store: BlobStore) -> None:
        name = ContentHash.of(b"never stored")
        assert not store.has(name)
        with pytest.raises(MissingBlob):
            store.get(name)

    def test_a_name_with_bytes_is_there(self, store: BlobStore) -> None:
        assert store.has(store.put(b"body"))

    def test_an_object_is_found_with_its_bytes(self, store: BlobStore) -> None:
        stored = an_object(store, b"body")
        assert store.put_objects([(stored, b"body")]) == frozenset()
        assert store.find(stored.id) == stored
        assert store.get(stored.content) == b"body"

    def test_an_object_that_was_never_stored_is_not_found(self, store: BlobStore) -> None:
        stored = an_object(store, b"body")
        assert store.find(stored.id) is None
        assert not store.elsewhere(stored.id)

    def test_storing_an_object_again_keeps_its_first_record(self, store: BlobStore) -> None:
        stored = an_object(store, b"body")
        store.put_objects([(stored, b"body")])
        later = StoredObject(
            stored.id, stored.content, stored.kind, stored.workspace, stored.origin, "other words", 13, stored.chars
        )
        assert store.put_objects([(later, b"body")]) == frozenset()
        assert store.find(stored.id) == stored

    @pytest.mark.parametrize(("content", "workspace"), [(b"other", "here"), (b"body", "elsewhere")])
    def test_an_id_that_names_something_else_is_refused(self, store: BlobStore, content: bytes, workspace: str) -> None:
        first = an_object(store, b"body")
        store.put_objects([(first, b"body")])
        second = StoredObject(
            first.id, ContentHash.of(content), first.kind, workspace, first.origin, first.description, 12, len(content)
        )
        assert store.put_objects([(second, content)]) == {first.id}
        assert store.find(first.id) == first

    def test_names_with_lone_surrogates_and_zero_bytes_do_no_harm(self, store: BlobStore) -> None:
        stored = an_object(store, b"body", call_id="call\ud800\0")
        assert store.put_objects([(stored, b"body")]) == frozenset()
        found = store.find(stored.id)
        assert found is not None
        assert found.content == stored.content

    def test_the_secret_is_made_once(self, store: BlobStore) -> None:
        secret = store.secret()
        assert len(secret) == 32  # noqa: PLR2004 -- the contract says so
        assert store.secret() == secret

    def test_closing_twice_is_closing(self, store: BlobStore) -> None:
        store.put(b"body")
        store.close()
        store.close()


class JournalStoreContract:
    """The contract of every JournalStore."""

    def test_entries_come_back_in_order(self, store: JournalStore) -> None:
        entries = _branch("a", "b", "c")
        store.append("one", entries)
        assert list(store.entries("one")) == entries

    def test_an_entry_that_is_there_is_left_alone(self, store: JournalStore) -> None:
        entries = _branch("a", "b")
        store.append("one", entries)
        store.append("one", entries)
        assert list(store.entries("one")) == entries

    def test_sessions_do_not_see_each_other(self, store: JournalStore) -> None:
        store.append("one", _branch("a"))
        store.append("two", _branch("b", "c"))
        assert [entry.id for entry in store.entries("one") if isinstance(entry, Entry)] == ["a"]
        assert store.leaf("two") == "c"
        assert list(store.entries("three")) == []
        assert store.leaf("three") is None

    def test_the_latest_sessions_are_those_that_said_something_last(self, store: JournalStore) -> None:
        assert list(store.latest(5)) == []
        for name, entries in (("one", "a"), ("two", "b"), ("three", "c")):
            store.append(name, _branch(entries))
        store.append("one", _branch("a", "d")[1:])
        assert list(store.latest(5)) == ["one", "three", "two"]
        assert list(store.latest(2)) == ["one", "three"]
        assert list(store.latest(0)) == []

    def test_the_session_stands_where_it_went_last(self, store: JournalStore) -> None:
        entries = _branch("a", "b", "c")
        store.append("one", entries)
        store.append("one", entries[:1])
        assert store.leaf("one") == "a"

    def test_appending_nothing_moves_nothing(self, store: JournalStore) -> None:
        store.append("one", _branch("a"))
        store.append("one", ())
        assert store.leaf("one") == "a"

    def test_news_are_what_came_behind_a_place(self, store: JournalStore) -> None:
        store.append("one", _branch("a", "b"))
        places = [place for place, _ in store.news("one")]
        store.append("two", _branch("x"))
        store.append("one", [Entry("c", "b", CompactionEntry(1))])
        news = list(store.news("one", places[-1]))
        assert [entry for _, entry in news] == [Entry("c", "b", CompactionEntry(1))]
        assert list(store.news("one", news[-1][0])) == []
        assert places == sorted(places)
        assert store.has_place("one", places[0])
        assert not store.has_place("one", news[-1][0] + 1)
        assert not store.has_place("three", places[0])

    def test_a_long_session_comes_whole_and_in_order(self, store: JournalStore) -> None:
        names = [f"{number:04}" for number in range(1234)]
        store.append("one", _branch(*names))
        store.append("two", _branch("x"))
        assert [entry.id for entry in store.entries("one") if isinstance(entry, Entry)] == names
        places = [place for place, _ in store.news("one")]
        assert [place for place, _ in store.news("one", places[99])] == places[100:]

    def test_who_appends_learns_the_last_place(self, store: JournalStore) -> None:
        store.append("two", _branch("x", "y"))
        for entries in (_branch("a", "b"), [Entry("c", "b", CompactionEntry(1))], _branch("a")):
            last = store.append("one", entries)
            assert last == max(place for place, _ in store.news("one"))
        assert store.append("one", ()) == 0

    def test_every_kind_of_entry_survives(self, store: JournalStore) -> None:
        said = Entry("a", None, MessageEntry(Message("user", (Text("lone \ud800 \0"),), at=1.5), ()), 1.5)
        noted = Entry("b", "a", NoteEntry("kind", "{}"))
        store.append("one", [said, noted])
        assert list(store.entries("one")) == [said, noted]
        assert not any(isinstance(entry, UnreadableLine) for entry in store.entries("one"))

    def test_what_is_done_exclusively_is_kept_whole_or_not_at_all(self, store: JournalStore) -> None:
        store.append("one", _branch("a"))
        with pytest.raises(ValueError, match="stop"):
            _append_then_fail(store, [Entry("b", "a", NoteEntry("n", "{}"))])
        assert [entry.id for entry in store.entries("one") if isinstance(entry, Entry)] == ["a"]
        assert store.leaf("one") == "a"
        with store.exclusive():
            store.append("one", [Entry("b", "a", NoteEntry("n", "{}"))])
        assert store.leaf("one") == "b"


def _append_then_fail(store: JournalStore, entries: list[Entry]) -> None:
    with store.exclusive():
        store.append("one", entries)
        raise ValueError("stop")


def _branch(*names: str) -> list[Entry]:
    parents = (None, *names[:-1])
    return [Entry(name, parent, NoteEntry("n", f'"{name}"')) for name, parent in zip(names, parents, strict=True)]
