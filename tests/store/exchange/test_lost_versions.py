"""Lost versions of an object come back by an import of a file, or of another store, with these versions."""

import shutil
import sqlite3
from collections.abc import Sequence
from pathlib import Path

import pytest

from pagein.errors import BadInput
from pagein.model.links import Backlink, Link
from pagein.model.references import Reference
from pagein.model.versions import Draft, Provenance, Version, Writer
from pagein.model.writes import Write, Written
from pagein.store.upkeep.sqlite_upkeep import SqliteUpkeep
from pagein.testing.upkeep_contract import export_all, import_all
from pagein.upkeep import check_store, import_from

pytestmark = pytest.mark.damages_store
NAME = "01890000-0000-7000-8000-{:012d}"


def draft(name: str, text: str, refers: str | None = None) -> Draft:
    values = {} if refers is None else {"about": Reference(refers)}
    return Draft(id=name, type="note", content=text, provenance=Provenance("user"), metadata=values)


def wrote(store: SqliteUpkeep, name: str, number: int, refers: str | None = None) -> Version:
    text = f"{name} {number} " * 30
    done = store.write(Write(f"{name} {number}", draft(name, text, refers), float(number), writer=Writer("user")))
    assert isinstance(done, Written)
    return done.version


@pytest.fixture
def whole(tmp_path: Path) -> Path:
    path = tmp_path / "whole.pagein"
    store = SqliteUpkeep(path)
    for number in range(1, 6):
        for name in map(NAME.format, (1, 2)):
            wrote(store, name, number, NAME.format(number + 2) if number % 2 else None)
    store.close()
    return path


def without(whole: Path, *sequences: int, bare: bool = False) -> Path:
    path = Path(shutil.copy(whole, whole.with_name("lost.pagein")))
    rows = sqlite3.connect(path)
    for one in sequences:
        if bare:
            rows.execute("DELETE FROM request WHERE sequence = ?", (one,))
            rows.execute(
                "DELETE FROM reference WHERE document = (SELECT document FROM version WHERE sequence = ?)", (one,)
            )
        rows.execute("DELETE FROM version WHERE sequence = ?", (one,))
    rows.commit()
    rows.close()
    return path


def all_of(path: Path) -> list[tuple[Version, str | None, Sequence[Link], Sequence[Backlink]]]:
    store = SqliteUpkeep(path)
    assert check_store(store).is_clean
    found = [
        (one, store.content(one), store.references(one), store.backlinks(one.id, ever=True)) for one in store.log()
    ]
    store.close()
    return found


@pytest.mark.parametrize("lost", [(3,), (4,), (3, 5), (3, 4, 5, 6), (1,), (1, 2), (5, 7)])
@pytest.mark.parametrize("bare", [False, True])
def test_lost_versions_return_to_their_places_by_an_import(whole: Path, lost: tuple[int, ...], *, bare: bool) -> None:
    path = without(whole, *lost, bare=bare)
    store = SqliteUpkeep(path)
    done = import_from(store, str(whole))
    store.close()
    assert (done.added, done.lost) == ({"version": len(lost)}, [])
    assert all_of(path) == all_of(whole)


def test_an_old_file_that_lost_some_gives_the_others(whole: Path) -> None:
    """The damaged file that a repair kept, read into a store that has what it lost."""
    store = SqliteUpkeep(whole)
    before = export_all(store)
    done = import_from(store, str(without(whole, 5)))
    assert done.added == {}
    assert export_all(store) == before
    store.close()


def test_two_stores_with_different_losses_make_one_whole_store(whole: Path) -> None:
    other = Path(shutil.copy(without(whole, 5), whole.with_name("other.pagein")))
    path = without(whole, 3)
    store = SqliteUpkeep(path)
    assert import_from(store, str(other)).added == {"version": 1}
    store.close()
    assert all_of(path) == all_of(whole)


def test_another_version_in_a_place_that_is_taken_is_refused(whole: Path, tmp_path: Path) -> None:
    other = SqliteUpkeep(tmp_path / "other.pagein")
    wrote(other, NAME.format(1), 1, NAME.format(3))
    wrote(other, NAME.format(1), 7)
    store = SqliteUpkeep(whole)
    with pytest.raises(BadInput, match="parted"):
        import_all(store, export_all(other))
    store.close()
    other.close()
