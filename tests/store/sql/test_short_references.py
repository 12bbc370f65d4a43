"""References and lookup keys in their short form: the same answers, also after removals and in stores of older forms."""

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest

from pagein.model.names import ContentHash
from pagein.model.references import Reference
from pagein.model.values import canonical
from pagein.model.versions import Draft, Writer
from pagein.model.writes import Query, Write, keys_of
from pagein.store.sql.sql_lookups import key_number
from pagein.store.sql.sqlite_schema import APPLICATION_ID, MIGRATIONS, UNUSED_KEYS
from pagein.store.upkeep.sqlite_upkeep import SqliteUpkeep
from pagein.testing.object_store import a_file, object_number, put

OLDER = 10
"""Steps of the schema before keys and references were short."""


@pytest.fixture
def store(tmp_path: Path) -> Iterator[SqliteUpkeep]:
    store = SqliteUpkeep(tmp_path / "one.pagein")
    yield store
    store.close()


def holder(*references: Reference) -> Draft:
    return Draft(id=object_number(9), type="note", content="held", metadata={"links": references})


def test_a_pinned_reference_outlives_its_version(store: SqliteUpkeep) -> None:
    made = store.write(Write("r1", a_file(1), 1.0, writer=Writer("a layer")))
    target = made.version.static(part="content", relation="used")  # type: ignore[union-attr]
    forged = replace(target, pin=replace(target.pin, view=target.pin.object))  # type: ignore[type-var, union-attr]
    source = put(store, holder(target, forged))
    assert {link.reference for link in store.references(source)} == {target, forged}
    assert {link.reference for link in store.backlinks(object_number(1))} == {target, forged}
    assert store.drop_objects_of(("a layer", None)) == 1
    assert store.current(object_number(1)) is None
    assert {link.reference for link in store.references(source)} == {target, forged}
    assert {link.reference for link in store.backlinks(object_number(1))} == {target, forged}


def test_a_kept_reference_is_stored_once(store: SqliteUpkeep) -> None:
    target = put(store, a_file(1)).static()
    put(store, holder(target))
    put(store, replace(holder(target), content="changed"))
    with store._database.open_reader() as rows:
        assert rows.execute("SELECT count(*), count(version), max(until) FROM reference").fetchone() == (1, 1, None)


def test_a_version_is_read_once_for_all_references_to_it(store: SqliteUpkeep) -> None:
    """The calls of a long chat refer to it: each was read in steps of its own, a quarter of a second for 680."""
    target = put(store, a_file(1)).static()
    steps: list[int] = []
    for first, last in ((10, 11), (11, 60)):
        for number in range(first, last):
            put(store, replace(holder(target), id=object_number(number)))
        done: list[str] = []
        with store._database.open_reader() as rows:
            rows.set_trace_callback(done.append)
        assert len(store.backlinks(target.target)) == last - 10
        steps.append(len(done))
    assert steps[1] - steps[0] <= 49  # the holders, each in one step


def test_beginnings_and_ends_of_any_field_are_found(store: SqliteUpkeep) -> None:
    for number in range(5):
        put(
            store,
            Draft(id=object_number(number), type="note", metadata={"topic": f"topic {number}", "path": f"/p/{number}"}),
        )
    for name, start, end in (("topic", "topic", " 3"), ("path", "/p", "/3")):
        assert len(store.objects(Query(under=(name, start)))) == 5
        assert [one.id for one in store.objects(Query(ending=(name, end)))] == [object_number(3)]
        assert [one.id for one in store.objects(Query(under=(name, start), limit=2))] == [
            object_number(4),
            object_number(3),
        ]


def test_keys_with_one_number_are_told_apart(store: SqliteUpkeep) -> None:
    first, second = (put(store, Draft(id=object_number(n), type="note", metadata={"n": n})) for n in (1, 2))
    with store._database.open_writer() as rows:  # as if the keys of the second had the numbers of the first
        rows.execute("INSERT INTO lookup(key, document) SELECT key, 2 FROM lookup WHERE document = 1")
    assert store.objects(Query(where={"n": 1}, limit=1)) == (first,)
    assert store.objects(Query(where={"n": 2}, limit=1)) == (second,)


def test_an_older_store_keeps_its_keys_and_references(tmp_path: Path, store: SqliteUpkeep) -> None:
    target = put(store, a_file(1))
    source = put(store, holder(target.static(), Reference("a name")))
    path = tmp_path / "old.pagein"
    with sqlite3.connect(path) as rows:
        rows.execute(f"PRAGMA application_id={APPLICATION_ID}")
        rows.execute("CREATE TABLE migration(number INTEGER PRIMARY KEY, name TEXT NOT NULL)")
        for number, (name, statements) in enumerate(MIGRATIONS[:OLDER], start=1):
            for statement in statements:
                rows.execute(statement)
            rows.execute("INSERT INTO migration VALUES(?, ?)", (number, name))
        for one in (target, source):
            content = (store.content(one) or "").encode()
            row = (bytes.fromhex(ContentHash.of(content).hex), content)
            rows.execute("INSERT INTO blob(hash, codec, data) VALUES(?, 0, ?)", row)
        for place, one in enumerate((target, source), start=1):
            rows.execute("INSERT INTO document VALUES(?, ?, ?, NULL, 0, ?)", (place, one.id, one.type, one.sequence))
            told = (one.sequence, place, one.number, one.at, bytes.fromhex(one.object_hash.hex), one.chars, one.record)
            rows.execute(
                """INSERT INTO version(sequence, document, number, at, object_hash, chars, record, writer, reason)
                   VALUES(?, ?, ?, ?, ?, ?, ?, '', '')""",
                told,
            )
            rows.executemany("INSERT INTO field VALUES(?, ?, ?)", [(place, *key) for key in keys_of(one)])
        for number, link in enumerate(store.references(source), start=1):
            rows.execute(
                "INSERT INTO reference VALUES(?, 2, ?, ?, NULL, ?, ?, NULL)",
                (number, link.path, link.reference.target, canonical(link.reference), source.sequence),
            )
    rows.close()
    old = SqliteUpkeep(path)
    assert [one.id for one in old.objects(Query(where={"path": target.metadata["path"]}))] == [target.id]
    assert [one.id for one in old.objects(Query(ending=("path", str(target.metadata["path"])[-3:])))] == [target.id]
    current = old.current(source.id)
    assert current is not None
    assert [link.reference for link in old.references(current)] == [link.reference for link in store.references(source)]
    assert [link.source.id for link in old.backlinks(target.id)] == [source.id]
    old.close()


def test_a_query_for_a_field_without_keys_is_answered_from_the_versions(store: SqliteUpkeep, tmp_path: Path) -> None:
    to = Reference(object_number(1))
    for number in range(4):
        draft = Draft(
            id=object_number(number), type="note", metadata={"turn": number % 2, "to": to, "list": [to, number]}
        )
        put(store, draft)
    odd = [object_number(3), object_number(1)]
    assert [one.id for one in store.objects(Query(where={"turn": 1}))] == odd
    assert [one.id for one in store.objects(Query(where={"turn": 1, "to": to}, limit=1))] == odd[:1]
    assert [one.id for one in store.objects(Query(where={"list": 1}))] == odd[1:]
    with closing(sqlite3.connect(tmp_path / "one.pagein")) as rows:  # of the list of each, the number
        assert rows.execute("SELECT count(*) FROM lookup").fetchone() == (4,)


def test_an_older_store_loses_keys_that_are_not_stored_any_more(store: SqliteUpkeep, tmp_path: Path) -> None:
    for number in range(3):
        put(store, Draft(id=object_number(number), type="note", metadata={"turn": number, "path": f"/{number}"}))
    with closing(sqlite3.connect(tmp_path / "one.pagein")) as rows, rows:
        before = rows.execute("SELECT count(*) FROM lookup").fetchone()
        rows.executemany(
            "INSERT INTO lookup(key, document) VALUES(?, ?)", [(key_number("turn", str(n)), n + 1) for n in range(3)]
        )
        rows.execute(UNUSED_KEYS)
    while store.bundle_more():
        pass
    with closing(sqlite3.connect(tmp_path / "one.pagein")) as rows:
        assert rows.execute("SELECT count(*) FROM lookup").fetchone() == before
        assert rows.execute("SELECT count(*) FROM layer").fetchone() == (0,)
    assert [one.id for one in store.objects(Query(where={"path": "/1"}))] == [object_number(1)]
