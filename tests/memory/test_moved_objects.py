"""Export and import carry journals, and the objects that follow from them come out as they were."""

import random
from collections.abc import Iterator, Sequence
from contextlib import closing
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.memory.journal_stories import SessionStory, tell
from tests.memory.test_indexer import links, versions

from pagein.errors import BadInput
from pagein.memory.indexer import Indexer
from pagein.memory.object_orders import give_order
from pagein.memory.projection_check import projection_faults
from pagein.model.entries import Entry
from pagein.model.memory_notes import ObjectNameNote, ObjectViewNote
from pagein.model.writes import EVERYTHING, Query
from pagein.store.upkeep.postgres_upkeep import PostgresUpkeep
from pagein.store.upkeep.sqlite_upkeep import SqliteUpkeep
from pagein.testing.memory_upkeep import MemoryUpkeep
from pagein.testing.upkeep_contract import export_all, import_all
from pagein.upkeep import check_store, export_to, import_from

Store = MemoryUpkeep | SqliteUpkeep


def live(
    store: Store, seed: int, steps: int, names: Sequence[str] = ("a", "b"), nicknames: Sequence[str] = ("plan", "b")
) -> None:
    """Let sessions work, and a person give names and views to their objects now and then."""
    random_ = random.Random(seed)  # noqa: S311 - not for secrets
    for _ in tell(store, [SessionStory(name, random_) for name in names], random_, steps):
        if random_.random() < 0.15:
            Indexer(store).catch_up()
            order(store, random_, nicknames)
        if random_.random() < 0.15:
            Indexer(store).save_open_chats(5_000.0)
    Indexer(store).catch_up()


def order(store: Store, random_: random.Random, nicknames: Sequence[str]) -> None:
    there = store.objects(Query(limit=20))
    if there:
        name = random_.choice(there).id
        note = ObjectNameNote(name, random_.choice([*nicknames, None]))
        given_ = note if random_.random() < 0.7 else ObjectViewNote(name, ("path",))
        give_order(store, given_, 5_000.0 + random_.random(), Indexer(store).catch_up)


def named(store: Store) -> list[tuple[str, str | None, tuple[str, ...] | None]]:
    return sorted((one.id, one.nickname, one.view) for one in store.objects(EVERYTHING) if one.nickname or one.view)


def is_followed(store: Store) -> bool:
    """Whether following the journals changes nothing, and a check finds nothing."""
    before = versions(store)
    Indexer(store).catch_up()
    return versions(store) == before and list(projection_faults(store)) == []


@given(st.integers(0, 2**32), st.integers(0, 60))
@settings(max_examples=40)
def test_objects_come_out_of_an_import_as_they_were(seed: int, steps: int) -> None:
    here, there = MemoryUpkeep(), MemoryUpkeep()
    live(here, seed, steps)
    lines = export_all(here)
    assert not any(b'"type":"version"' in line for line in lines), "they follow from the journals"
    import_all(there, lines)
    Indexer(there).catch_up()
    assert (versions(there), links(there), named(there)) == (versions(here), links(here), named(here))
    assert export_all(there) == lines
    assert list(projection_faults(there)) == []
    for _ in range(2):
        assert import_all(there, lines).added == {}
        assert is_followed(there)
    assert versions(there) == versions(here)


@given(st.integers(0, 2**32), st.integers(1, 50), st.booleans())
@settings(max_examples=40)
def test_objects_stay_when_the_journal_of_a_session_was_removed(seed: int, steps: int, also: bool) -> None:  # noqa: FBT001 - drawn
    here, there = MemoryUpkeep(), MemoryUpkeep()
    live(here, seed, steps, ("a", "b", "c"), [])
    here.drop_sessions(["a", "b"] if also else ["b"])
    lines = export_all(here)
    import_all(there, lines)
    Indexer(there).catch_up()
    assert (versions(there), named(there)) == (versions(here), named(here))
    assert export_all(there) == lines
    assert is_followed(there)
    assert import_all(there, lines).added == {}


@given(st.integers(0, 2**32), st.integers(0, 40), st.integers(0, 40))
@settings(max_examples=40)
def test_an_older_export_and_a_newer_one_add_what_is_missing(seed: int, first: int, more: int) -> None:
    here, there = MemoryUpkeep(), MemoryUpkeep()
    random_ = random.Random(seed)  # noqa: S311 - not for secrets
    stories = [SessionStory(name, random_) for name in "ab"]
    older: list[bytes] = []
    for number, _ in enumerate(tell(here, stories, random_, first + more)):
        if number == first:
            Indexer(here).catch_up()
            older = export_all(here)
    Indexer(here).catch_up()
    import_all(there, older)
    Indexer(there).catch_up()
    import_all(there, export_all(here))
    Indexer(there).catch_up()
    assert versions(there) == versions(here)
    assert import_all(there, older).added == {}
    assert is_followed(there)


@given(st.integers(0, 2**32), st.lists(st.sampled_from("ab"), max_size=2, unique=True))
@settings(max_examples=40)
def test_stores_with_sessions_on_the_same_files_are_exchanged(seed: int, removed: list[str]) -> None:
    """Files, calls and notes of equal names are told apart or joined, as if all sessions had worked on one store."""
    one, other = MemoryUpkeep(), MemoryUpkeep()
    live(one, seed, 30, ("a", "b"))
    live(other, seed + 1, 30, ("c", "d"))
    one.drop_sessions(removed)
    held = {one_.id: one_.content_hash for one_ in one.log()}
    import_all(other, export_all(one))
    Indexer(other).catch_up()
    assert is_followed(other)
    again = export_all(one)
    assert import_all(other, again).added == {}
    import_all(one, export_all(other))
    Indexer(one).catch_up()
    assert is_followed(one)
    contents = {version.content_hash for version in other.log()}
    assert set(held.values()) <= contents


@pytest.fixture(params=["sqlite", "postgres"])
def source(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[SqliteUpkeep | PostgresUpkeep]:
    if request.param == "sqlite":
        store: SqliteUpkeep | PostgresUpkeep = SqliteUpkeep(tmp_path / "one.pagein")
    else:
        store = PostgresUpkeep(request.getfixturevalue("postgres"), "moved_objects")
    with closing(store):
        yield store


def test_a_database_moves_with_its_objects(source: SqliteUpkeep, tmp_path: Path) -> None:
    live(source, 11, 120, ("a", "b", "c"))
    source.drop_sessions(["c"])
    export_to(source, str(tmp_path / "all.jsonl.gz"))
    with closing(SqliteUpkeep(tmp_path / "there.pagein")) as there:
        import_from(there, str(tmp_path / "all.jsonl.gz"))
        assert (versions(there), links(there), named(there)) == (versions(source), links(source), named(source))
        assert Indexer(there).catch_up().followed == 0
        assert check_store(there).findings == []
        assert import_from(there, str(tmp_path / "all.jsonl.gz")).added == {}
        live(there, 12, 40, ("d", "e"))  # and life goes on there
        export_to(there, str(tmp_path / "back.jsonl"))
    import_from(source, str(tmp_path / "back.jsonl"))
    assert check_store(source).findings == []
    live(source, 13, 20, ("f",))
    assert check_store(source).findings == []


@pytest.mark.parametrize("count", [1, 300])
def test_an_indexer_goes_on_behind_a_removed_session(tmp_path: Path, count: int) -> None:
    """The place of a removed session's last entry is never given again, and an indexer passes it."""
    with closing(SqliteUpkeep(tmp_path / "one.pagein")) as store:
        live(store, 3, count, ("a",))
        store.drop_sessions(["a"])
        assert Indexer(store).catch_up().behind == 0
        live(store, 4, 10, ("b",))
        assert store.objects(Query(where={"session": "b"}))
        assert Indexer(store).behind() == 0


@pytest.mark.parametrize(
    ("old", "new", "why"),
    [
        (b'"place":2,', b'"place":1,', "out of order"),
        (b'"place":1,', b'"place":0,', "whole number"),
        (b'"place":1,', b'"place":%d,' % (1 << 41), "out of order"),
    ],
)
def test_places_out_of_order_are_refused(old: bytes, new: bytes, why: str) -> None:
    here = MemoryUpkeep()
    live(here, 1, 5)
    lines = [line.replace(old, new) for line in export_all(here)]
    with pytest.raises(BadInput, match=why):
        import_all(MemoryUpkeep(), lines)


def test_a_file_without_places_and_requests_is_imported(tmp_path: Path) -> None:
    """An older version wrote none; objects then follow in the order of the file."""
    here = MemoryUpkeep()
    live(here, 1, 30)
    body = [
        line.replace(b'"place":%d,' % place, b"")
        for line in export_all(here)[:-1]
        for place in [int(line.partition(b'"place":')[2].partition(b",")[0] or 0)]
    ]
    import hashlib

    end = b'{"type":"end","records":%d,"sha256":"%s"}\n' % (
        len(body) - 1,
        hashlib.sha256(b"".join(body)).hexdigest().encode(),
    )
    (tmp_path / "old.jsonl").write_bytes(b"".join([*body, end]))
    there = MemoryUpkeep()
    import_from(there, str(tmp_path / "old.jsonl"))
    assert {one.id for one in there.objects(EVERYTHING)} >= {
        one.id for one in here.objects(Query(types=frozenset({"session", "user"})))
    }
    assert sorted(entry.id for entry in there.entries("a") if isinstance(entry, Entry)) == sorted(
        entry.id for entry in here.entries("a") if isinstance(entry, Entry)
    )
    assert is_followed(there)
