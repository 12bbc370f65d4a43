"""What `history` and `blame` read of a store with bundles: what they show, and each bundle once."""

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from tests.call_counts import counted

from pagein.engine.recall.stored_chats import TurnPlaces
from pagein.memory.indexer import Indexer
from pagein.model.names import ContentHash
from pagein.model.references import Reference
from pagein.model.versions import Version
from pagein.model.writes import Query
from pagein.store.sql.packed_bytes import MEMBER, PINNED
from pagein.store.sql.sql_blobs import raw
from pagein.store.upkeep.sqlite_upkeep import SqliteUpkeep
from pagein.testing.lived_in_store import make_lived_in_store
from pagein.tools.blame_commands import blame
from pagein.tools.version_commands import history
from pagein.workspace.git_blame import GitAbsence

LATER = 1e10


@pytest.fixture(params=[3, 11])
def store(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[SqliteUpkeep]:
    monkeypatch.setattr("pagein.store.sql.sql_bundles._SIZE", 1 << 15)
    monkeypatch.setattr("pagein.store.sql.sql_bundles._PACKED", 1 << 12)
    lived = make_lived_in_store(tmp_path / "one.pagein", tmp_path / "work", request.param, 90)
    with closing(SqliteUpkeep(lived.store)) as made:
        Indexer(made).save_open_chats(LATER)
        while made.bundle_more(rest=True):
            pass
        yield made


def most_changed(store: SqliteUpkeep) -> Version:
    files = store.objects(Query(types=frozenset({"file"})))
    return max(files, key=lambda one: one.number)


def bundles_of(store: SqliteUpkeep, names: set[ContentHash]) -> set[int]:
    """Return the bundles that these blobs are in."""
    found: set[int] = set()
    with store._database.open_reader() as rows:
        for name in names:
            ((codec, base),) = rows.execute("SELECT codec, base FROM blob WHERE hash = ?", (raw(name),)).fetchall()
            found |= {base} if codec in (MEMBER, PINNED) else set()
    return found


def test_a_history_unpacks_no_bundle(store: SqliteUpkeep) -> None:
    """The words of users and the spans of parts are beside the bundles."""
    file = most_changed(store)
    versions = store.history(file.id)
    assert bundles_of(store, {one.content_hash for one in versions if one.content_hash is not None})
    told, calls = counted(lambda: history(store, file.id))
    assert len(told["versions"]) == len(versions) > 3
    assert any(one["said"] for one in told["versions"])
    assert calls["load_bundle"] == 0


def test_blame_unpacks_each_bundle_once(store: SqliteUpkeep) -> None:
    file = most_changed(store)
    texts = {one.content_hash for one in store.history(file.id) if one.content_hash is not None}
    told, calls = counted(lambda: blame(store, str(file.metadata["path"]), None, GitAbsence("no repository")))
    assert told["versions"] == file.number
    arguments = {
        made.additional["args"]
        for one in store.history(file.id)
        if isinstance(call := one.metadata.get("call"), Reference)
        and (made := store.current(call.target)) is not None
        and "args" in made.additional
    }
    assert 0 < calls["load_bundle"] <= len(bundles_of(store, texts | arguments))


def test_what_blame_unpacks_is_in_one_bundle_of_files(store: SqliteUpkeep) -> None:
    """However much other contents take: they are in many bundles."""
    with store._database.open_reader() as rows:
        count = "SELECT count(DISTINCT base) FROM blob WHERE codec IN (?, ?)"
        ((bundles,),) = rows.execute(count, (MEMBER, PINNED)).fetchall()
    told, calls = counted(lambda: blame(store, str(most_changed(store).metadata["path"]), None, GitAbsence("none")))
    assert told["lines"]
    assert (calls["load_bundle"], bundles > 5) == (1, True)


def test_the_words_of_a_turn_are_those_on_its_first_page(store: SqliteUpkeep) -> None:
    versions = [one for one in store.log() if isinstance(one.metadata.get("turn_ref"), Reference)]
    for one, place in zip(versions, TurnPlaces(store).of_each(versions), strict=True):
        reference = one.metadata["turn_ref"]
        assert isinstance(reference, Reference)
        chat = store.resolve(Reference(reference.target, reference.pin))
        assert place == TurnPlaces(store).place_in(chat.version, one.metadata["turn"])  # type: ignore[union-attr, arg-type]
    assert len(versions) > 10
