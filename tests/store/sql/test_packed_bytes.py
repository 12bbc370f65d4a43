"""Content that is told by what differs from an earlier version: small, exact, and safe to collect."""

import hashlib
import sqlite3
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pagein.errors import DamagedBlob
from pagein.model.chats import ChatTurn, turns_to_value
from pagein.model.messages import Message, Text
from pagein.model.names import ContentHash
from pagein.model.versions import Draft
from pagein.model.writes import Query
from pagein.store.sql.packed_bytes import DIFFERENCE, pack, pack_against, unpack
from pagein.store.sql.sql_blobs import DEEPEST, put_blob
from pagein.store.sqlite.sqlite_store import SqliteStore
from pagein.store.upkeep.sqlite_upkeep import SqliteUpkeep
from pagein.testing.object_store import a_file, object_number, put

pytestmark = pytest.mark.damages_store


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "one.pagein"


@pytest.fixture
def store(path: Path) -> Iterator[SqliteUpkeep]:
    store = SqliteUpkeep(path)
    yield store
    store.close()


def words(seed: object, count: int) -> list[str]:
    """Words without order or repetition, as source code has them at its worst; the same for the same seed."""
    digests = (hashlib.sha256(f"{seed} {place}".encode()).hexdigest() for place in range(count))
    return [digest[: 3 + int(digest[-1], 16) % 7] for digest in digests]


def source(seed: object, lines: int) -> list[str]:
    """Lines of a file of its own vocabulary."""
    known = words(seed, 400)
    picks = iter(int(digest, 16) for digest in words((seed, "picks"), lines * 6))
    return [" ".join(known[next(picks) % len(known)] for _ in range(6)) for _ in range(lines)]


def edits(lines: list[str], count: int) -> Iterator[list[str]]:
    """The file, and the file after each of so many edits: a line changed here, one put in there, one taken out."""
    yield list(lines)
    for number in range(count):
        place = int(words("places", count)[number], 16) % len(lines)
        lines[place] = " ".join(words(("edit", number), 6))
        if number % 3 == 0:
            lines.insert(place, f"    {' '.join(words(('new', number), 4))}")
        if number % 5 == 0:
            del lines[(place * 7) % len(lines)]
        yield list(lines)


def rows(path: Path, query: str) -> list[tuple[int, ...]]:
    connection = sqlite3.connect(path)
    try:
        return connection.execute(query).fetchall()
    finally:
        connection.close()


@pytest.mark.parametrize("lines", [800, 4_000])
def test_a_hundred_versions_take_less_than_two(store: SqliteUpkeep, lines: int) -> None:
    texts = ["\n".join(version) for version in edits(source("file", lines), 99)]
    for text in texts:
        put(store, a_file(1, text))
    _, taken = store.figures()
    one = len(pack(texts[-1].encode())[1])
    assert [store.content(version) for version in store.history(object_number(1))] == texts
    assert taken < 2 * one


def test_few_steps_lead_to_any_version(store: SqliteUpkeep, path: Path) -> None:
    text = "\n".join(source("deep", 40))
    for number in range(600):
        put(store, a_file(1, f"{text}\nversion {number}"))
    ((deepest, alone),) = rows(path, "SELECT max(depth), sum(base IS NULL) FROM blob")
    assert alone == 1
    assert 16 <= deepest <= DEEPEST
    history = store.history(object_number(1))
    assert all((store.content(version) or "").endswith(f"version {version.number - 1}") for version in history)


def test_no_blob_rests_on_others_without_end(store: SqliteUpkeep, path: Path) -> None:
    text = "\n".join(source("chain", 40))
    contents = [f"{text}\nlink {number}".encode() for number in range(100)]
    before: ContentHash | None = None
    for content in contents:
        with store._database.open_writer() as connection:
            before = put_blob(connection, content, before)
    assert rows(path, "SELECT max(depth) FROM blob") == [(DEEPEST,)]
    assert [store.get(ContentHash.of(content)) for content in contents] == contents


def test_blobs_that_rest_on_each_other_are_damage_and_not_an_endless_task(store: SqliteUpkeep, path: Path) -> None:
    _, second = two_versions(store)
    connection = sqlite3.connect(path)
    with connection:
        connection.execute("UPDATE blob SET base = 2, codec = 2 WHERE number = 1")
    connection.close()
    with pytest.raises(DamagedBlob):
        store.get(ContentHash.of(second.encode()))


def test_a_record_that_was_changed_is_noticed(store: SqliteUpkeep, path: Path) -> None:
    record = put(store, a_file(1)).record
    connection = sqlite3.connect(path)
    with connection:
        connection.execute("UPDATE version SET record = replace(?, 'folder', 'fodder')", (record,))
    connection.close()
    with pytest.raises(DamagedBlob):
        store.current(object_number(1))


def test_a_growing_chat_takes_only_the_space_of_its_growth(store: SqliteUpkeep) -> None:
    turns: list[ChatTurn] = []
    sizes = []
    for number in range(200):
        said = Message("user", (Text(" ".join(words(("said", number), 30))),))
        turns.append(ChatTurn((said,), (Message("assistant", (Text(" ".join(words(("answer", number), 60))),)),)))
        put(store, Draft(id=object_number(1), type="chat", additional={"turns": turns_to_value(turns)}))
        sizes.append(store.figures()[1])
    first, second = sizes[99], sizes[199] - sizes[99]
    # a chat twice as long would cost three times as much again if every version stood alone
    assert second < 1.5 * first


@given(st.binary(max_size=400), st.binary(max_size=400), st.integers(1, 40))
def test_content_packed_against_any_base_is_unpacked_unchanged(base: bytes, content: bytes, times: int) -> None:
    large, other = base * times + content, content + base * times
    codec, data = pack_against(large, other)
    assert unpack(codec, data, other) == large


@pytest.mark.parametrize("size", [300_000, 900_000, 3_000_000])
def test_large_files_are_told_by_their_differences_too(size: int) -> None:
    before = "\n".join(source("large", size // 33)).encode()
    after = before.replace(before[size // 2 : size // 2 + 20], b"changed")
    codec, data = pack_against(after, before)
    assert codec == DIFFERENCE
    assert len(data) < 2_000
    assert unpack(codec, data, before) == after


def test_the_wrong_base_is_noticed() -> None:
    before = "\n".join(source("a", 100)).encode()
    codec, data = pack_against(before + b"\nmore", before)
    assert codec == DIFFERENCE
    for wrong in (before[:-1] + b"x", b"x" * len(before), None):
        with pytest.raises(DamagedBlob):
            unpack(codec, data, wrong)


def damaged(path: Path, name: ContentHash) -> None:
    connection = sqlite3.connect(path)
    with connection:
        connection.execute("UPDATE blob SET data = zeroblob(20) WHERE hash = ?", (bytes.fromhex(name.hex),))
    connection.close()


def two_versions(store: SqliteUpkeep) -> tuple[str, str]:
    lines = source("two", 100)
    texts = "\n".join(lines), "\n".join([*lines, "more"])
    for text in texts:
        put(store, a_file(1, text))
    return texts


def test_damage_of_a_base_is_noticed_in_its_deltas_and_healed_with_it(store: SqliteUpkeep, path: Path) -> None:
    first, second = two_versions(store)
    damaged(path, ContentHash.of(first.encode()))
    for version in store.history(object_number(1)):
        with pytest.raises(DamagedBlob):
            store.content(version)
    store.put(first.encode())
    assert [store.content(version) for version in store.history(object_number(1))] == [first, second]


def test_a_version_with_a_damaged_base_is_stored(store: SqliteUpkeep, path: Path) -> None:
    first, second = two_versions(store)
    damaged(path, ContentHash.of(second.encode()))
    third = put(store, a_file(1, second + "\nand more"))
    assert store.content(third) == second + "\nand more"
    assert store.current(third.id) == third
    assert first in {store.content(version) for version in store.history(third.id)[:1]}


def test_a_base_of_other_blobs_can_be_collected(store: SqliteUpkeep, path: Path) -> None:
    first, second = two_versions(store)
    store.put(b"last")
    assert rows(path, "SELECT count(*) FROM blob WHERE base IS NOT NULL") == [(1,)]
    assert store.drop_blobs([ContentHash.of(first.encode())]) == 1
    assert not store.has(ContentHash.of(first.encode()))
    assert store.get(ContentHash.of(second.encode())) == second.encode()
    assert rows(path, "SELECT count(*) FROM blob WHERE base IS NOT NULL") == [(0,)]


def test_a_base_cannot_be_deleted_while_a_delta_needs_it(store: SqliteUpkeep, path: Path) -> None:
    _, second = two_versions(store)
    connection = sqlite3.connect(path)
    with connection:
        connection.execute("DELETE FROM blob WHERE number = 1")
    connection.close()
    assert store.get(ContentHash.of(second.encode())) == second.encode()


def test_questions_about_metadata_touch_no_content(store: SqliteUpkeep, path: Path) -> None:
    put(store, Draft(id=object_number(1), type="note", content="c", metadata={"path": "/p"}, additional={"more": "m"}))
    put(store, a_file(2, "text"))
    connection = sqlite3.connect(path)
    with connection:
        connection.execute("DROP TABLE blob")
    connection.close()
    fresh = SqliteStore(path)
    assert len(fresh.objects(Query(where={"path": "/p"}))) == 1
    assert [fresh.current(version.id) for version in fresh.log()] == list(fresh.log())
    assert fresh.references(fresh.log()[0]) == ()
    assert fresh.backlinks(object_number(1)) == ()
    assert len(fresh.contents()[0]) == 3
    fresh.close()


def test_a_store_from_before_objects_gains_them(tmp_path: Path, old_store: Callable[[Path], None]) -> None:
    path = tmp_path / "old.pagein"
    old_store(path)
    store = SqliteStore(path)
    assert store.get(ContentHash.of(b"old body")) == b"old body"
    version = put(store, a_file(1, "old body"))
    assert store.content(version) == "old body"
    store.close()


@pytest.fixture
def old_store() -> Callable[[Path], None]:
    """Makes a store as it was after the steps that came before objects."""

    def make(path: Path) -> None:
        from pagein.store.sql.sqlite_schema import APPLICATION_ID, MIGRATIONS

        connection = sqlite3.connect(path)
        connection.execute(f"PRAGMA application_id={APPLICATION_ID}")
        connection.execute("CREATE TABLE migration(number INTEGER PRIMARY KEY, name TEXT NOT NULL)")
        for number, (name, statements) in enumerate(MIGRATIONS[:3], start=1):
            for statement in statements:
                connection.execute(statement)
            connection.execute("INSERT INTO migration VALUES(?, ?)", (number, name))
        key = bytes.fromhex(ContentHash.of(b"old body").hex)
        connection.execute("INSERT INTO blob(hash, codec, data) VALUES(?, 0, ?)", (key, b"old body"))
        connection.commit()
        connection.close()

    return make
