"""The contract of every LayerStore, as tests. Subclass the contract and provide the fixture `store`."""

# ruff: noqa: S101 -- these are tests that ship

import contextlib
from typing import Protocol

from pagein.model.entries import Entry, NoteEntry
from pagein.ports import BlobStore, JournalStore, LayerStore


class JournalsWithLayers(BlobStore, JournalStore, LayerStore, Protocol):
    """A store with journals and layers."""


def _entry(name: str) -> Entry:
    return Entry(name, None, NoteEntry("test", "{}"))


class LayerStoreContract:
    """A layer has a place and a form, and the places of all journals are read in order."""

    def test_a_layer_keeps_its_place_and_its_form(self, store: JournalsWithLayers) -> None:
        assert store.layer("one") is None
        store.set_layer("one", 7, "1")
        store.set_layer("two", 1, "1")
        store.set_layer("one", 9, "2")
        assert store.layer("one") == (9, "2")
        assert store.layer("two") == (1, "1")

    def test_a_place_is_rolled_back_with_the_transaction(self, store: JournalsWithLayers) -> None:
        store.set_layer("one", 1, "1")
        with contextlib.suppress(RuntimeError), store.exclusive():
            store.set_layer("one", 2, "1")
            raise RuntimeError
        assert store.layer("one") == (1, "1")

    def test_the_places_of_every_session_are_read_in_order(self, store: JournalsWithLayers) -> None:
        assert store.last_place() == 0
        assert store.places(0, 10) == []
        for session, name in (("b", "1"), ("a", "1"), ("b", "2"), ("a", "2")):
            store.append(session, [_entry(name)])
        found = store.places(0, 10)
        assert [session for _, session in found] == ["b", "a", "b", "a"]
        assert [place for place, _ in found] == sorted({place for place, _ in found})
        assert store.last_place() == found[-1][0]
        assert store.places(found[1][0], 1) == [found[2]]
        assert {place for place, session in found if session == "a"} == {place for place, _ in store.news("a")}
