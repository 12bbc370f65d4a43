"""The contracts of stores that outlive their process, as tests: what survives, and snapshots of states.

A store in memory has neither. Subclass a contract and provide the fixture `open_store`.
"""

# ruff: noqa: S101 -- these are tests that ship

from collections.abc import Callable
from typing import Protocol

import pytest

from pagein.model.entries import Entry, NoteEntry
from pagein.ports import BlobStore, JournalStore, ObjectStore, SnapshotStore
from pagein.testing.blob_store import an_object
from pagein.testing.object_drafts import a_file, object_number, put


class DurableStore(BlobStore, JournalStore, ObjectStore, Protocol):
    """A store of content, sessions and objects."""

    def close(self) -> None:
        """Close files and connections."""
        ...


class JournalsWithSnapshots(JournalStore, SnapshotStore, Protocol):
    """A store of journals, with a snapshot of each."""

    def close(self) -> None:
        """Close files and connections."""
        ...


def _entry(name: str, parent: str | None = None) -> Entry:
    return Entry(name, parent, NoteEntry("test", "{}"))


class DurableStoreContract:
    """The contract of a store that is opened again. open_store: each call opens the same store anew."""

    def test_evicted_content_is_there_after_a_restart(self, open_store: Callable[[], DurableStore]) -> None:
        first = open_store()
        stored = an_object(first, b"evicted")
        first.put_objects([(stored, b"evicted")])
        first.close()
        again = open_store()
        assert again.find(stored.id) == stored
        assert again.get(stored.content) == b"evicted"
        again.close()

    def test_a_session_goes_on_after_a_restart(self, open_store: Callable[[], DurableStore]) -> None:
        first = open_store()
        first.append("one", [_entry("a"), _entry("b", "a")])
        last = first.append("one", [_entry("a")])
        first.close()
        again = open_store()
        assert list(again.entries("one")) == [_entry("a"), _entry("b", "a")]
        assert again.leaf("one") == "a"
        assert again.append("one", [_entry("c", "a")]) > last
        again.close()

    def test_objects_keep_versions_and_places_after_a_restart(self, open_store: Callable[[], DurableStore]) -> None:
        first = open_store()
        version = put(first, a_file(1))
        first.close()
        again = open_store()
        assert again.current(object_number(1)) == version
        assert again.content(version) == "text"
        assert put(again, a_file(2)).sequence > version.sequence
        again.close()

    def test_the_key_of_the_ids_stays_the_same(self, open_store: Callable[[], DurableStore]) -> None:
        first = open_store()
        secret = first.secret()
        first.close()
        again = open_store()
        assert again.secret() == secret
        again.close()

    def test_what_was_rolled_back_stays_away(self, open_store: Callable[[], DurableStore]) -> None:
        first = open_store()
        with pytest.raises(ValueError, match="stop"):
            _append_then_fail(first)
        first.close()
        again = open_store()
        assert list(again.entries("one")) == []
        assert again.leaf("one") is None
        assert list(again.names()) == []
        again.close()


def _append_then_fail(store: DurableStore) -> None:
    with store.exclusive():
        store.put(b"body")
        store.append("one", [_entry("a")])
        raise ValueError("stop")


class SnapshotStoreContract:
    """The contract of every SnapshotStore. open_store: opens a store that is also a JournalStore."""

    def test_no_session_has_a_snapshot_at_first(self, open_store: Callable[[], JournalsWithSnapshots]) -> None:
        store = open_store()
        assert store.load_snapshot("one", "v1") is None
        store.close()

    def test_the_last_snapshot_counts(self, open_store: Callable[[], JournalsWithSnapshots]) -> None:
        store = open_store()
        place = store.append("one", [_entry("a")])
        store.keep_snapshot("one", place, "v1", b"old")
        later = store.append("one", [_entry("b", "a")])
        store.keep_snapshot("one", later, "v1", b"\0new")
        assert store.load_snapshot("one", "v1") == (later, b"\0new")
        store.close()

    def test_another_version_or_session_has_none(self, open_store: Callable[[], JournalsWithSnapshots]) -> None:
        store = open_store()
        for name in ("one", "two"):
            store.append(name, [_entry("a")])
        store.keep_snapshot("one", 1, "v1", b"state")
        assert store.load_snapshot("one", "v2") is None
        assert store.load_snapshot("two", "v1") is None
        store.close()

    def test_entries_are_found_by_name(self, open_store: Callable[[], JournalsWithSnapshots]) -> None:
        store = open_store()
        store.append("one", [_entry("a"), _entry("b", "a")])
        assert store.entry("one", "b") == _entry("b", "a")
        assert store.entry("one", "c") is None
        assert store.entry("two", "a") is None
        store.close()

    def test_a_snapshot_survives_a_restart(self, open_store: Callable[[], JournalsWithSnapshots]) -> None:
        first = open_store()
        place = first.append("one", [_entry("a")])
        first.keep_snapshot("one", place, "v1", b"state")
        first.close()
        again = open_store()
        assert again.load_snapshot("one", "v1") == (place, b"state")
        again.close()
