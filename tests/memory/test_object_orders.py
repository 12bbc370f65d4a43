"""Orders about objects are journaled, and give the same objects when they are carried out again."""

from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pagein.memory.object_orders import ObjectOrder, OrderedStore, carry_out, give_order
from pagein.model.derived_versions import ORDERS
from pagein.model.entries import Entry, NoteEntry
from pagein.model.journal_notes import OtherNote
from pagein.model.memory_notes import ObjectNameNote, ObjectViewNote
from pagein.model.versions import Draft, Version, Writer
from pagein.model.writes import Write, WriteRefusal, Written
from pagein.store.sqlite.sqlite_store import SqliteStore
from pagein.testing.memory_journals import MemoryJournals
from pagein.testing.object_drafts import a_file, object_number


def index(store: OrderedStore, number: int, content: str, at: float) -> None:
    """Write a version as the indexer does, with the name and the view that the object has."""
    draft, current = a_file(number, content, path="/w/a.py"), store.current(object_number(number))
    if current is not None:
        draft = replace(draft, nickname=current.nickname, view=current.view)
    assert isinstance(store.write(Write(f"index {number} {content}", draft, at, writer=Writer("index"))), Written)


def orders_in(store: OrderedStore) -> list[Entry]:
    return [entry for entry in store.entries(ORDERS) if isinstance(entry, Entry)]


def told(version: Version) -> tuple[object, ...]:
    return version.id, version.number, version.at, version.object_hash, version.writer


def test_an_order_is_stored_with_its_entry(tmp_path: Path) -> None:
    store = SqliteStore(tmp_path / "one.pagein")
    index(store, 1, "text", 10.0)
    done = give_order(store, ObjectNameNote(object_number(1), "plan"), 20.0)
    assert isinstance(done, Written)
    assert (done.version.nickname, done.version.at, done.version.writer) == ("plan", 10.0, Writer("client", "name"))
    assert store.content(done.version) == "text"
    [entry] = orders_in(store)
    assert (entry.at, entry.parent) == (20.0, None)
    give_order(store, ObjectViewNote(object_number(1), ("path",)), 30.0)
    assert [one.parent for one in orders_in(store)] == [None, entry.id]
    assert store.current("plan").view == ("path",)  # type: ignore[union-attr]
    store.close()


def test_a_refused_order_leaves_no_trace() -> None:
    store = MemoryJournals()
    index(store, 1, "a", 1.0)
    index(store, 2, "b", 2.0)
    give_order(store, ObjectNameNote(object_number(1), "plan"), 3.0)
    log = store.log()
    refused = give_order(store, ObjectNameNote(object_number(2), "plan"), 4.0)
    assert isinstance(refused, WriteRefusal)
    assert refused.why == "nickname_taken"
    assert give_order(store, ObjectNameNote(object_number(9), "x"), 4.0) is None
    unchanged = give_order(store, ObjectNameNote(object_number(1), "plan"), 5.0)
    assert isinstance(unchanged, Written)
    assert unchanged.change == "unchanged"
    assert (len(orders_in(store)), store.log()) == (1, log)


def test_an_order_copies_the_latest_version_by_time() -> None:
    store = MemoryJournals()
    index(store, 1, "new", 50.0)
    index(store, 1, "old", 10.0)
    done = give_order(store, ObjectNameNote(object_number(1), "plan"), 20.0)
    assert isinstance(done, Written)
    assert store.content(done.version) == "new"
    assert store.latest_versions(object_number(1))[0] == done.version


def test_a_journal_with_other_notes_orders_nothing() -> None:
    store = MemoryJournals()
    assert carry_out(store, Entry("x", None, NoteEntry.of(OtherNote("object.name", "{}")), 1.0)) is None


STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("index"), st.integers(1, 3), st.sampled_from(["a", "b", "c"]), st.floats(0, 9)),
        st.tuples(st.just("name"), st.integers(1, 3), st.sampled_from([None, "one", "two"]), st.floats(0, 9)),
        st.tuples(st.just("view"), st.integers(1, 3), st.sampled_from([None, ("path",), ()]), st.floats(0, 9)),
    ),
    max_size=12,
)


@given(STEPS)
def test_objects_made_again_have_the_names_that_people_gave(steps: list[tuple[str, int, object, float]]) -> None:
    """The objects of a second store are made from the same indexed entries and the journaled orders, in their order."""
    grown, made = MemoryJournals(), MemoryJournals()
    for place, (kind, number, value, at) in enumerate(steps):
        if kind == "index":
            for store in (grown, made):
                index(store, number, f"{value} {place}", at)
            continue
        order: ObjectOrder = (
            ObjectNameNote(object_number(number), value)  # type: ignore[arg-type]
            if kind == "name"
            else ObjectViewNote(object_number(number), value)  # type: ignore[arg-type]
        )
        before = len(orders_in(grown))
        give_order(grown, order, at)
        for entry in orders_in(grown)[before:]:
            carry_out(made, entry)
            carry_out(made, entry)  # again, as after a crash
    assert list(map(told, made.log())) == list(map(told, grown.log()))


@pytest.mark.parametrize("draft", [a_file(1, "x", more="y")])
def test_a_copy_keeps_every_field(draft: Draft) -> None:
    store = MemoryJournals()
    full = replace(draft, additional={"summary": "short", "outline": {"a": [1]}}, locked=True)
    store.write(Write("w", full, 1.0))
    done = give_order(store, ObjectNameNote(draft.id, "plan"), 2.0)
    assert isinstance(done, Written)
    kept = done.version
    assert (kept.locked, kept.metadata["more"], store.additional(kept, "summary")) == (True, "y", "short")
