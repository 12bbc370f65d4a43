"""Objects of a store under random use, forks and compactions among it: compressed against its journals, they are what they were."""

import shutil
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest

from pagein.memory.indexer import Indexer
from pagein.model.names import ContentHash
from pagein.model.values import Value
from pagein.store.sql.bundle_sources import likely_sources
from pagein.store.sql.packed_bytes import PINNED, SOURCED
from pagein.store.sql.pinned_texts import ShortContents
from pagein.store.sql.sql_lines import LINES
from pagein.store.upkeep.collection import Retention
from pagein.store.upkeep.sqlite_upkeep import SqliteUpkeep
from pagein.testing.lived_in_store import make_lived_in_store
from pagein.upkeep import check_store, garbage, reindex

LATER = 1e10
Told = dict[tuple[str, int], tuple[ContentHash, str | None, list[Value]]]


def told(store: SqliteUpkeep) -> Told:
    """Return everything that the versions of the store say. Their order depends on what is followed in one transaction."""
    return {
        (one.id, one.number): (
            *(one.object_hash, store.content(one)),
            [store.additional(one, name) for name in sorted(one.additional)],
        )
        for one in store.log()
    }


def made(store: SqliteUpkeep) -> Told:
    """Make the objects of a store, bundle what there is, and return what they say."""
    Indexer(store).save_open_chats(LATER)
    while store.bundle_more(rest=True):
        pass
    return told(store)


def packed(store: SqliteUpkeep) -> tuple[int, int]:
    """Return how many bundles have sources, and how many contents are in short forms."""
    with store._database.open_reader() as rows:
        count = "SELECT count(*) FROM blob WHERE codec = ?"
        ((sourced,), (pinned,)) = (rows.execute(count, (codec,)).fetchone() or (0,) for codec in (SOURCED, PINNED))
    return int(sourced), int(pinned)


@pytest.mark.parametrize("seed", [3, 11])
def test_objects_that_journals_tell_are_what_they_were(
    seed: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lived = make_lived_in_store(tmp_path / "one.pagein", tmp_path / "work", seed, 90)
    plain = Path(shutil.copy(lived.store, tmp_path / "plain.pagein"))
    monkeypatch.setattr("pagein.store.sql.sql_bundles._SIZE", 1 << 15)
    monkeypatch.setattr("pagein.store.sql.sql_bundles._PACKED", 1 << 12)
    monkeypatch.setattr("pagein.store.sql.sql_bundles._MUCH_SMALLER", 1.0)
    monkeypatch.setattr("pagein.store.sql.sql_lines.LINES", replace(LINES, most=16))
    with monkeypatch.context() as without, closing(SqliteUpkeep(plain)) as store:
        without.setattr("pagein.store.sql.sql_blobs.likely_sources", lambda _: ())
        without.setattr("pagein.store.sql.sql_blobs.shorten_contents", lambda _, contents: ShortContents(contents))
        wanted = made(store)
        assert packed(store) == (0, 0)
    with closing(SqliteUpkeep(lived.store)) as store:
        assert made(store) == wanted
        assert min(packed(store)) > 0
        with store._database.open_reader() as rows:
            assert likely_sources(rows)
        reindex(store, [Indexer(store)])
        assert made(store) == wanted
        assert check_store(store).findings == []
        garbage(store, Retention(keep=0.0), LATER, apply=True)
        assert told(store) == wanted
