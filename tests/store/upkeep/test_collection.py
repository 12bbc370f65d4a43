import json
import shutil
import sqlite3
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pagein.engine.log.pageout import Pager
from pagein.errors import NotRecallable, StoreError
from pagein.model.derived_versions import ORDERS
from pagein.model.entries import Entry, MessageEntry, NoteEntry
from pagein.model.identifiers import uuid7
from pagein.model.messages import Message, Text, ToolResult
from pagein.model.names import ContentHash
from pagein.model.objects import ObjectId, StoredObject
from pagein.model.versions import Draft
from pagein.model.writes import Write
from pagein.store.upkeep.collection import DAY, NO_BYTES, Retention, collect, drop_unneeded, plan
from pagein.store.upkeep.sqlite_upkeep import SqliteUpkeep
from pagein.testing.blob_store import an_object
from pagein.testing.desk import Desk, mode_of, numbered_text
from pagein.testing.lived_in_store import LivedIn, make_lived_in_store
from pagein.testing.memory_upkeep import MemoryUpkeep
from pagein.testing.upkeep_contract import export_all, note_entry
from pagein.upkeep import check_store, garbage

NOW = time.time() + 3600  # later than anything that a test does
ALL = Retention(keep=0.0)


@pytest.fixture
def store(tmp_path: Path) -> Iterator[SqliteUpkeep]:
    store = SqliteUpkeep(tmp_path / "one.pagein")
    yield store
    store.close()


@pytest.fixture(scope="module")
def once(tmp_path_factory: pytest.TempPathFactory) -> LivedIn:
    folder = tmp_path_factory.mktemp("lived")
    return make_lived_in_store(folder / "one.pagein", folder / "work", 4, 120)


@pytest.fixture
def lived(once: LivedIn, tmp_path: Path) -> LivedIn:
    """The same life for every test, each with a store of its own."""
    return replace(once, store=Path(shutil.copy(once.store, tmp_path / "one.pagein")))


def names(store: SqliteUpkeep) -> set[ContentHash]:
    return set(store.names()) - {NO_BYTES}


def touched(store: SqliteUpkeep, session: str, days_ago: float) -> None:
    """Let so much time have passed since something was kept of it."""
    with sqlite3.connect(store._database.path) as connection:
        connection.execute("UPDATE life SET touched = ? WHERE session = ?", (int(NOW - days_ago * DAY), session))
    connection.close()


def paged(store: SqliteUpkeep, content: bytes, session: str, call: str = "call") -> StoredObject:
    """An object that was paged out of a session, and whose stub stands in its journal."""
    made = an_object(store, content, call_id=call)
    origin = replace(made.origin, session=session)
    stored = replace(made, id=ObjectId.of(made.content, origin, store.secret()), origin=origin)
    store.put_objects([(stored, content)])
    store.append(session, [note_entry(f"stub of {call}", None, json.dumps({"stub": str(stored.id)}))])
    return stored


# --- what stays --------------------------------------------------------------------------------------------------


def test_a_dry_run_changes_nothing(store: SqliteUpkeep, lived: LivedIn) -> None:
    store.put(b"of no use")
    for name in lived.names:
        store.end_session(name)
    before = export_all(store)
    planned = garbage(store, ALL, NOW + 1, apply=False)
    assert {one.name for one in planned.sessions} == set(lived.names)
    assert planned.blobs
    assert export_all(store) == before


def test_ended_sessions_stay_without_an_order_for_any_time(store: SqliteUpkeep, lived: LivedIn) -> None:
    before = export_all(store)
    for name in lived.names:
        store.end_session(name)
    assert garbage(store, Retention(), NOW + 10_000 * DAY, apply=True).is_empty
    assert [line for line in export_all(store) if b'"session"' not in line[:20]][:-1] == [
        line for line in before if b'"session"' not in line[:20]
    ][:-1]


def test_an_active_session_keeps_everything_under_any_retention(store: SqliteUpkeep, lived: LivedIn) -> None:
    before = export_all(store)
    for retention in (ALL, Retention(keep=0.0, quota=0), Retention(quota=1)):
        assert garbage(store, retention, NOW, apply=True).is_empty
    assert export_all(store) == before
    pager = Pager(store, str(lived.folder.resolve()))
    assert {name: pager.recall(name) for name in lived.stubs} == lived.stubs


@pytest.mark.usefixtures("lived")
def test_garbage_goes(store: SqliteUpkeep) -> None:
    before = names(store)
    store.put_many([b"of no use %d" % number for number in range(20)])
    done = garbage(store, Retention(), NOW, apply=True)
    assert len(done.blobs) == 20
    assert names(store) == before
    assert check_store(store).is_clean
    assert garbage(store, Retention(), NOW, apply=True).is_empty


def test_content_of_an_active_fork_outlives_the_original_session(store: SqliteUpkeep, lived: LivedIn) -> None:
    """A stub goes with the branch into the fork; the object was paged out of the first session."""
    assert len(lived.names) > 1
    store.end_session("main")
    done = garbage(store, ALL, NOW + 1, apply=True)
    assert [one.name for one in done.sessions] == ["main"]
    report = check_store(store)
    assert report.counts["stub"] > 0
    assert report.findings == []


def test_the_text_that_a_marker_rests_on_stays(tmp_path: Path) -> None:
    (tmp_path / "work").mkdir()
    desk = Desk(tmp_path / "work", tmp_path / "one.pagein")
    desk.put("a.txt", numbered_text(60))
    session = desk.session()
    session.read("a.txt")
    store = SqliteUpkeep(desk.store)
    garbage(store, ALL, NOW, apply=True)
    desk.put("a.txt", numbered_text(60).replace("line 30 ", "LINE 30 "))
    assert mode_of(session.read("a.txt")) == "diff"  # which needs the bytes of the version before
    assert check_store(store).is_clean
    store.close()
    desk.close()


def test_history_stays_also_of_objects_that_an_ended_session_made(store: SqliteUpkeep) -> None:
    for number, text in enumerate(["first", "second", "third"]):
        store.write(Write(str(number), Draft(id=uuid7(1, bytes(10)), type="note", content=text), 1.0))
    garbage(store, ALL, NOW + 1000 * DAY, apply=True)
    assert [store.content(one) for one in store.log()] == ["first", "second", "third"]


@pytest.mark.parametrize("before", ["", "a", "\b", "\f", "\ud800", "0" * 70])
def test_a_hash_is_seen_wherever_it_stands_in_a_journal(store: SqliteUpkeep, before: str) -> None:
    """Also behind an escape whose last letter could be a digit of it."""
    name = store.put(b"named in words")
    said = Message("user", (Text(f"{before}{name}{before}"),))
    store.append("one", [Entry("a", None, MessageEntry(said))])
    garbage(store, Retention(), NOW, apply=True)
    assert store.has(name)


def test_before_objects_are_made_again_only_what_nothing_needs_goes(store: SqliteUpkeep) -> None:
    stored, named = an_object(store, b"just paged out"), store.put(b"named in words")
    store.put_objects([(stored, b"just paged out")])
    store.append("one", [Entry("a", None, MessageEntry(Message("user", (Text(str(named)),))))])
    result = Message("tool", (ToolResult("call-1", "a result " * 40, "bash"),))
    store.append("one", [Entry("b", "a", MessageEntry(result))])
    store.write(Write("1", Draft(id=uuid7(1, bytes(10)), type="note", content="noted", additional={"a": "b"}), 1.0))
    before = names(store)
    store.put_many([b"of no use %d" % number for number in range(20)])
    assert drop_unneeded(store) == 20
    assert names(store) - {NO_BYTES} == before - {NO_BYTES}
    assert check_store(store).is_clean


# --- what goes ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("ended", "days", "keep_days", "goes"),
    [
        (False, 29, 10, False),  # not ended
        (False, 31, 10, True),  # untouched for so long, it has
        (False, 31, 40, False),  # it has, and is kept a while
        (True, 5, 10, False),
        (True, 11, 10, True),
        (True, 0, 0, True),
    ],
)
def test_ended_sessions_go_by_age(
    store: SqliteUpkeep, *, ended: bool, days: float, keep_days: float, goes: bool
) -> None:
    stored = paged(store, b"paged out" * 50, "old")
    paged(store, b"of another" * 50, "new")
    if ended:
        store.end_session("old")
    touched(store, "old", days)
    done = garbage(store, Retention(keep=keep_days * DAY), NOW, apply=True)
    assert [one.name for one in done.sessions] == (["old"] if goes else [])
    assert (store.leaf("old") is None) == goes
    assert (store.find(stored.id) is None) == goes
    assert store.has(stored.content) != goes
    assert store.leaf("new") is not None
    assert check_store(store).is_clean


def test_a_recall_of_collected_content_says_expired(store: SqliteUpkeep, lived: LivedIn) -> None:
    for name in lived.names:
        store.end_session(name)
    garbage(store, ALL, NOW + 1, apply=True)
    pager = Pager(store, str(lived.folder.resolve()))
    for name in lived.stubs:
        with pytest.raises(NotRecallable, match="expired"):
            pager.recall(name)
    with pytest.raises(NotRecallable, match="never existed"):
        pager.recall("pg-01234567-89abcdef")


def test_content_needed_only_by_a_fork_goes_with_the_fork(store: SqliteUpkeep) -> None:
    """The object was paged out of a session that is long gone; nothing of it is left for a second collection."""
    stored = paged(store, b"paged out" * 50, "first")
    store.append("fork", [note_entry("a", None, json.dumps({"stub": str(stored.id)}))])
    store.put(b"something behind it")
    store.append("live", [note_entry("a", None, json.dumps({"hash": ContentHash.of(b"something behind it").hex}))])
    for name in ("first", "fork"):
        store.end_session(name)
        assert store.has(stored.content)
        garbage(store, ALL, NOW, apply=True)
    assert not store.has(stored.content)
    assert garbage(store, ALL, NOW, apply=True).is_empty


def test_a_session_that_is_taken_up_again_has_not_ended(store: SqliteUpkeep) -> None:
    store.append("one", [note_entry("a")])
    store.end_session("one")
    touched(store, "one", 100)
    store.append("one", [note_entry("b", "a")])
    assert garbage(store, Retention(keep=DAY), NOW, apply=True).is_empty


def test_evicting_a_stored_result_again_touches_its_session(store: SqliteUpkeep) -> None:
    stored = paged(store, b"paged out" * 50, "one")
    touched(store, "one", 100)
    store.put_objects([(stored, b"paged out" * 50)])
    assert garbage(store, ALL, NOW, apply=True).is_empty


def test_an_object_stored_before_its_journal_entry_is_not_collected(store: SqliteUpkeep) -> None:
    """Content is stored first, then the stub is journaled: a collection in between must not tear them apart."""
    stored = an_object(store, b"just paged out")
    store.put_objects([(stored, b"just paged out")])
    assert store.leaf("session") is None
    assert garbage(store, ALL, NOW, apply=True).is_empty
    assert store.has(stored.content)


def test_the_quota_takes_the_oldest_first_and_no_more_than_it_must(store: SqliteUpkeep) -> None:
    for number in range(6):
        paged(
            store, bytes([number]) * 10 + ContentHash.of(bytes([number])).hex.encode() * 200, f"s{number}", f"c{number}"
        )
        touched(store, f"s{number}", 100 - number)
    store.append("live", [note_entry("a")])
    size = plan(store, Retention(), NOW).size
    done = garbage(store, Retention(quota=size // 2), NOW, apply=False)
    gone = [one.name for one in done.sessions]
    assert gone == [f"s{number}" for number in range(len(gone))]
    assert 2 <= len(gone) <= 4
    assert garbage(store, Retention(quota=0), NOW, apply=True).sessions[0].name == "s0"
    assert [one.name for one in store.sessions()] == ["live"]


def test_the_file_gets_smaller(store: SqliteUpkeep) -> None:
    for number in range(40):
        paged(
            store,
            ContentHash.of(bytes([number])).hex.encode() * 1000 + bytes(range(256)) * 40,
            f"s{number}",
            f"c{number}",
        )
        store.put_many([ContentHash.of(b"%d %d" % (number, n)).hex.encode() for n in range(200)])
        store.end_session(f"s{number}")
    before = store._database.path.stat().st_size
    garbage(store, ALL, NOW + 1, apply=True)
    assert store._database.path.stat().st_size < before / 4


def test_the_file_gets_smaller_also_where_everything_stays(store: SqliteUpkeep) -> None:
    for number in range(300):
        told = "".join(
            f"line {line} says {ContentHash.of(b'%d' % (line % 9 * number)).hex[:9]}\n" for line in range(100)
        )
        paged(store, told.encode(), "main", f"c{number}")
    store.shrink()
    before, kept = store._database.path.stat().st_size, export_all(store)
    assert garbage(store, Retention(), NOW, apply=True).is_empty
    assert store._database.path.stat().st_size < before
    assert export_all(store) == kept
    assert store.bundle_more(rest=True) == 0


# --- beside others -----------------------------------------------------------------------------------------------


def test_content_needed_again_since_the_plan_stays(store: SqliteUpkeep) -> None:
    name, other, unneeded = store.put_many([b"unneeded until now", b"named by a version", b"unneeded still"])
    planned = plan(store, Retention(), NOW)
    store.append("one", [Entry("a", None, NoteEntry("n", json.dumps({"hash": name.hex})))])
    store.write(Write("w", Draft(id=uuid7(1, bytes(10)), type="note", content="named by a version"), 1.0))
    done = collect(store, planned)
    assert done.blobs == {unneeded}
    assert store.has(name)
    assert store.has(other)


def test_an_object_that_somebody_named_since_the_plan_stays(store: SqliteUpkeep) -> None:
    stored = paged(store, b"paged out", "old")
    store.end_session("old")
    planned = plan(store, ALL, NOW + 1)
    store.append("live", [note_entry("a", None, json.dumps({"see": str(stored.id)}))])
    collect(store, planned)
    assert store.get(stored.content) == b"paged out"
    assert store.find(stored.id) == stored


def test_a_session_that_was_taken_up_since_the_plan_stops_the_collection(store: SqliteUpkeep) -> None:
    paged(store, b"paged out", "old")
    store.end_session("old")
    planned = plan(store, ALL, NOW + 1)
    store.append("old", [note_entry("more")])
    before = export_all(store)
    with pytest.raises(StoreError, match="taken up again"):
        collect(store, planned)
    assert export_all(store) == before


@pytest.mark.damages_store
def test_where_a_journal_cannot_be_read_nothing_is_given_up(store: SqliteUpkeep) -> None:
    """What it needs is unknown."""
    store.put(b"of no use?")
    store.append("one", [note_entry("a" * 300)])
    with store._database.open_writer() as rows:
        rows.execute("UPDATE journal SET line = x'00', codec = 1")
    with pytest.raises(StoreError, match="pagein check"):
        garbage(store, ALL, NOW, apply=True)
    assert drop_unneeded(store) == 0
    assert store.has(ContentHash.of(b"of no use?"))


# --- laws --------------------------------------------------------------------------------------------------------


@settings(deadline=None, max_examples=8, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    seed=st.integers(0, 10**6),
    ended=st.sets(st.integers(0, 4)),
    quota=st.none() | st.integers(0, 60_000),
    rounds=st.integers(1, 3),
)
def test_after_any_collection_every_live_session_is_whole(
    tmp_path_factory: pytest.TempPathFactory, seed: int, ended: set[int], quota: int | None, rounds: int
) -> None:
    """Law 1: lived in, collected, lived in again, and so on; whatever a live session's stub or marker needs is there."""
    folder = tmp_path_factory.mktemp("lived")
    lived = make_lived_in_store(folder / "one.pagein", folder / "work", seed, 50)
    for _ in range(rounds):
        store = SqliteUpkeep(lived.store)
        known = {one.name for one in store.sessions()}
        for number in ended:
            if number < len(lived.names) and lived.names[number] in known:
                store.end_session(lived.names[number])
        done = garbage(store, Retention(keep=0.0 if quota is None else None, quota=quota), NOW + 100, apply=True)
        assert check_store(store).findings == []
        left = {one.name for one in store.sessions() if one.name != ORDERS}  # to save the newest steps of chats
        assert left == known - {one.name for one in done.sessions} - {ORDERS}
        assert garbage(store, Retention(), NOW, apply=True).is_empty
        store.close()
        lived.names = [name for name in lived.names if name not in {one.name for one in done.sessions}] or ["main"]
        lived.live(20)


def test_memory_gives_up_the_same(tmp_path: Path) -> None:
    memory = MemoryUpkeep()
    for store in (memory, SqliteUpkeep(tmp_path / "one.pagein")):
        store.put(b"of no use")
        stored = an_object(store, b"paged out")
        store.put_objects([(stored, b"paged out")])
        store.append("session", [note_entry("a")])
        planned = plan(store, ALL, NOW)
        assert (planned.sessions, planned.objects) == ((), frozenset())
        assert planned.blobs == {ContentHash.of(b"of no use")}
        assert collect(store, planned).blobs == planned.blobs
        store.close()
