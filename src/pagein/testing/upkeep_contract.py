"""The contract of every WholeStore, as tests; and exports and imports as lines for tests of upkeep."""

# ruff: noqa: S101 -- these are tests that ship

from collections.abc import Sequence

import pytest

from pagein.errors import MissingBlob, StoreError
from pagein.model.entries import Entry, NoteEntry, bridge
from pagein.model.names import ContentHash
from pagein.policy.privacy.erased_texts import tombstone
from pagein.ports import WholeStore
from pagein.store.exchange.exporter import export
from pagein.store.exchange.import_state import ImportReport
from pagein.store.exchange.importer import import_lines
from pagein.testing.blob_store import an_object

_BURIED = "the dove lands at nine o'clock"


def export_all(store: WholeStore) -> list[bytes]:
    """Return the lines of an export of everything."""
    written: list[bytes] = []
    export(store, written.append)
    return written


def import_all(store: WholeStore, lines: Sequence[bytes]) -> ImportReport:
    """Import these lines."""
    return import_lines(store, lines, "file.jsonl")


def note_entry(name: str, parent: str | None = None, data: str = "{}") -> Entry:
    """Return an entry with little content."""
    return Entry(name, parent, NoteEntry("test", data))


class WholeStoreContract:
    """The contract of every WholeStore, beyond the contracts of its parts."""

    def test_sessions_are_listed_with_where_they_stand(self, store: WholeStore) -> None:
        store.append("b", [note_entry("1"), note_entry("2", "1")])
        store.append("a", [note_entry("1")])
        store.put_objects([(an_object(store, b"body"), b"body")])
        listed = {one.name: one for one in store.sessions()}
        assert list(listed) == ["a", "b", "session"]
        assert [one.leaf for one in listed.values()] == ["1", "2", None]
        assert listed["b"].size > listed["a"].size > listed["session"].size == 0
        assert not any(one.ended for one in listed.values())

    def test_a_session_that_was_said_to_have_ended_is_taken_up_by_saying_more(self, store: WholeStore) -> None:
        store.append("a", [note_entry("1")])
        store.end_session("a")
        assert [one.ended for one in store.sessions()] == [True]
        store.append("a", [note_entry("2", "1")])
        assert [one.ended for one in store.sessions()] == [False]

    def test_lines_come_in_the_order_of_appending_and_places_are_never_given_twice(self, store: WholeStore) -> None:
        store.append("a", [note_entry("1")])
        store.append("b", [note_entry("1"), note_entry("2", "1")])
        before = [(line.session, line.place) for line in store.journal_lines()]
        assert [session for session, _ in before] == ["a", "b", "b"]
        store.drop_sessions(["b"])
        store.append("c", [note_entry("1")])
        (line,) = store.journal_lines(before[-1][1])
        assert (line.session, line.damaged) == ("c", False)

    def test_a_dropped_session_is_new_again(self, store: WholeStore) -> None:
        store.append("a", [note_entry("1")])
        store.append("b", [note_entry("1")])
        store.drop_sessions(["a"])
        assert (store.leaf("a"), list(store.entries("a")), [one.name for one in store.sessions()]) == (None, [], ["b"])
        store.append("a", [note_entry("9")])
        assert store.leaf("a") == "9"

    def test_an_entry_takes_a_place_that_is_free_or_that_of_another(self, store: WholeStore) -> None:
        store.append("a", [note_entry("1")])
        ((first, _),) = store.news("a")
        places = [first, first + 1, first + 2]
        store.put_entry("a", places[2], note_entry("3", "2"))
        store.stand("a", "3")
        store.put_entry("a", places[1], bridge("2", "1"))
        assert list(store.entries("a")) == [note_entry("1"), bridge("2", "1"), note_entry("3", "2")]
        assert [line.id for line in store.journal_lines()] == ["1", "2", "3"]
        assert store.leaf("a") == "3"
        store.put_entry("a", places[0], bridge("1", None))
        assert list(store.news("a")) == list(
            zip(places, [bridge("1", None), bridge("2", "1"), note_entry("3", "2")], strict=True)
        )
        store.append("a", [note_entry("1"), note_entry("2", "1"), note_entry("3", "2")])
        assert list(store.news("a")) == list(
            zip(places, [note_entry("1"), note_entry("2", "1"), note_entry("3", "2")], strict=True)
        )

    def test_further_entries_come_behind_a_place_that_was_taken(self, store: WholeStore) -> None:
        store.append("a", [note_entry("1")])
        taken = store.last_place() + 10
        store.put_entry("b", taken, note_entry("1"))
        store.stand("b", "1")
        store.append("a", [note_entry("2", "1")])
        assert store.last_place() > taken
        assert [name for _, name in store.places(0, 10)] == ["a", "b", "a"]

    def test_what_is_said_again_takes_the_place_of_its_bridge(self, store: WholeStore) -> None:
        store.append("a", [note_entry("1"), note_entry("2", "1"), note_entry("3", "2")])
        place = [place for place, _ in store.news("a")][1]
        store.put_entry("a", place, bridge("2", "1"))
        store.append("a", [note_entry("2", "1"), note_entry("4", "3")])
        assert list(store.entries("a")) == [
            note_entry("1"),
            note_entry("2", "1"),
            note_entry("3", "2"),
            note_entry("4", "3"),
        ]

    def test_a_session_stands_where_it_is_put(self, store: WholeStore) -> None:
        store.append("a", [note_entry("1"), note_entry("2", "1")])
        store.stand("a", "1")
        assert store.leaf("a") == "1"

    def test_dropped_blobs_are_gone_and_their_sizes_with_them(self, store: WholeStore) -> None:
        names = store.put_many([b"one" * 100, b"two" * 100, b"three" * 100])
        assert store.drop_blobs(names[1:]) == len(names[1:])
        assert store.get(names[0]) == b"one" * 100
        assert {*store.blob_sizes()} - {ContentHash.of(b"")} == {names[0]}
        with pytest.raises(MissingBlob):
            store.get(names[2])
        assert store.drop_blobs(names[1:]) == 0

    def test_dropped_objects_are_not_found(self, store: WholeStore) -> None:
        kept, dropped = (an_object(store, content, call_id=content.decode()) for content in (b"kept", b"dropped"))
        store.put_objects([(kept, b"kept"), (dropped, b"dropped")])
        assert list(store.paged_objects()) == sorted([kept, dropped], key=lambda one: one.id)
        store.drop_objects([dropped.id])
        assert list(store.paged_objects()) == [kept]
        assert store.find(dropped.id) is None

    def test_a_key_is_adopted_once(self, store: WholeStore) -> None:
        assert store.adopt_secret(b"k" * 32)
        assert store.secret() == b"k" * 32
        assert not store.adopt_secret(b"x" * 32)
        assert store.adopt_secret(b"k" * 32)

    def test_a_buried_text_is_not_stored_again(self, store: WholeStore) -> None:
        store.append("a", [note_entry("1")])
        mark = tombstone(_BURIED, store.secret())
        store.bury([mark])
        assert store.tombstones() == (mark,)
        assert store.forgettings() > 0
        with pytest.raises(StoreError, match="ordered to be forgotten"):
            store.put(f"so {_BURIED}".encode())
        store.append("a", [note_entry("2", "1", f'{{"said":"so {_BURIED}"}}')])
        assert _BURIED not in str(list(store.entries("a")))
        store.bury([mark])
        assert store.tombstones() == (mark,)

    def test_what_is_dropped_in_vain_is_back(self, store: WholeStore) -> None:
        name = store.put(b"body")
        store.append("a", [note_entry("1")])
        with pytest.raises(ValueError, match="stop"):
            _drop_then_fail(store, name)
        assert store.get(name) == b"body"
        assert store.leaf("a") == "1"

    def test_a_healthy_store_has_no_faults(self, store: WholeStore) -> None:
        store.put(b"body")
        assert list(store.faults()) == []


def _drop_then_fail(store: WholeStore, name: ContentHash) -> None:
    with store.exclusive():
        store.drop_blobs([name])
        store.drop_sessions(["a"])
        raise ValueError("stop")
