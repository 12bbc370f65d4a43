"""Packed references: the same answers as from rows, after removals, erasures and damage too."""

import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest

from pagein.model.links import Backlink
from pagein.model.references import Reference
from pagein.model.versions import Draft, Version, Writer
from pagein.model.writes import Write, Written
from pagein.store.sql import packed_references
from pagein.store.sql.packed_references import REFERENCES
from pagein.store.upkeep.sqlite_upkeep import SqliteUpkeep
from pagein.testing.object_store import a_file, object_number, put
from pagein.upkeep import check_store, repair_file

pytestmark = pytest.mark.damages_store
SOURCES = range(10, 16)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "one.pagein"


@pytest.fixture
def store(path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[SqliteUpkeep]:
    monkeypatch.setattr(packed_references, "COLD", 0)
    monkeypatch.setattr(packed_references, "REFERENCES", replace(REFERENCES, most=4))
    with closing(SqliteUpkeep(path)) as store:
        yield store


def written(store: SqliteUpkeep, draft: Draft, writer: str) -> Version:
    done = store.write(Write(f"{writer} {draft.id}", draft, 1.0, writer=Writer(writer)))
    assert isinstance(done, Written)
    return done.version


def note(number: int, *references: Reference, text: str = "held") -> Draft:
    return Draft(id=object_number(number), type="note", content=text, metadata={"links": references})


def pack(store: SqliteUpkeep) -> None:
    while store.bundle_more():
        pass
    with store._database.open_reader() as rows:
        assert rows.execute("SELECT count(*) FROM reference").fetchone() == (0,)


def found(store: SqliteUpkeep) -> list[Sequence[Backlink]]:
    names = [object_number(number) for number in (1, 2, *SOURCES)]
    return [
        store.backlinks(name, ever=ever, most=most)
        for name in (*names, "a name")
        for ever in (False, True)
        for most in (2, None)
    ]


@pytest.fixture
def target(store: SqliteUpkeep) -> Version:
    """The target of each source, pinned and not; the last source had another version before."""
    target = written(store, a_file(1), "a layer")
    put(store, a_file(2))
    for number in SOURCES:
        put(
            store, note(number, target.static(part="content"), Reference(object_number(2)), Reference("a name")), at=2.0
        )
    put(store, note(SOURCES[-1], target.static(part="content"), text="changed"), at=3.0)
    return target


def test_answers_stay_while_references_are_packed_and_change(store: SqliteUpkeep, target: Version) -> None:
    before = found(store)
    assert [len(one) for one in before[:4]] == [2, 6, 2, 7]
    pack(store)
    assert found(store) == before
    source = put(store, note(SOURCES[0], Reference("a name"), text="again"), at=4.0)
    assert [link.path for link in store.references(source)] == ["/metadata/links/0"]
    assert len(store.backlinks(target.id)) == 5
    before = found(store)
    pack(store)
    assert found(store) == before
    assert check_store(store).is_clean


def test_a_packed_pin_outlives_its_version(store: SqliteUpkeep, target: Version) -> None:
    pack(store)
    before = [(link.path, link.reference) for link in store.backlinks(target.id)]
    assert store.drop_objects_of(("a layer", None)) == 1
    assert [(link.path, link.reference) for link in store.backlinks(target.id)] == before
    pack(store)
    assert [(link.path, link.reference) for link in store.backlinks(target.id)] == before


def test_nothing_is_left_of_the_references_of_a_removed_object(store: SqliteUpkeep, path: Path) -> None:
    put(store, a_file(2))
    for number in SOURCES:
        written(store, note(number, Reference(object_number(2), relation=f"secret {number}")), "a layer")
    pack(store)
    put(store, note(SOURCES[0], Reference(object_number(2), relation="kept")))
    assert store.drop_objects_of(("a layer", None)) == len(SOURCES) - 1
    pack(store)
    store.scrub()
    with closing(sqlite3.connect(path)) as rows:
        assert rows.execute("SELECT sum(texts) FROM reference_segment").fetchone() == (1,)
    assert len(store.backlinks(object_number(2))) == 1


def test_damage_of_packed_references_is_told_and_repaired(store: SqliteUpkeep, path: Path, target: Version) -> None:
    before = found(store)
    pack(store)
    store.close()
    with closing(sqlite3.connect(path)) as rows, rows:
        rows.execute(
            "UPDATE reference_segment SET data = CAST(substr(data, 1, length(data) - 6) || x'000000000000' AS BLOB)"
        )
    with closing(SqliteUpkeep(path)) as damaged:
        assert damaged.backlinks(target.id) == ()
        assert {one.kind for one in check_store(damaged).findings} == {"reference"}
    repair_file(path)
    with closing(SqliteUpkeep(path)) as mended:
        assert found(mended) == before
        assert check_store(mended).is_clean
