"""Layers over a store: dropped and made again, never needed for an answer, and of any kind."""

import json
import logging
import random
import re
import sqlite3
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final

import pytest
from tests.memory.journal_stories import SessionStory, tell
from typer.testing import CliRunner

from pagein import wiring
from pagein.archive import archive_of
from pagein.cli.cli import app
from pagein.errors import BadInput, StoreError
from pagein.gateway.curation.layer_follower import LayerFollower
from pagein.memory.indexer import Indexer
from pagein.memory.projection_check import projection_faults
from pagein.model.entries import Entry, MessageEntry
from pagein.model.layer_report import LayerReport
from pagein.model.messages import Message, Text, UnreadableLine
from pagein.model.object_names import object_name
from pagein.model.references import Reference
from pagein.model.search_query import Search
from pagein.model.versions import Draft, Provenance, Writer
from pagein.model.writes import Query, Write
from pagein.ports import DerivedLayer, Progress, WholeStore
from pagein.store.search.search_layer import SearchLayer
from pagein.store.sqlite.sqlite_store import SqliteStore
from pagein.store.upkeep.sqlite_upkeep import SqliteUpkeep
from pagein.testing.memory_upkeep import MemoryUpkeep
from pagein.upkeep import check_store, reindex

ENTITIES: Final = "entities"
_NUMBER: Final = re.compile(r"\bs\d+ \d+\b")


class EntityLayer:
    """A layer that the product knows nothing of: what users named, as objects that refer to the words of the users.

    It follows the versions of the store. The place that it has reached is stored with its objects.
    """

    name = ENTITIES

    def __init__(self, store: SqliteStore) -> None:
        self._store = store

    def catch_up(
        self, within: float | None = None, stop: Callable[[], bool] = lambda: False, tell: Progress | None = None
    ) -> LayerReport:
        del within, tell
        followed = made = 0
        while not stop():
            with self._store.exclusive():
                page = self._store.log(self._place(), 20)
                for version in page:
                    for entity in _NUMBER.findall(self._store.content(version) or "") if version.type == "user" else ():
                        name = object_name("entity", entity, at=0.0)
                        metadata = {"title": entity, "named_in": Reference(version.id, version.pin(), relation="named")}
                        draft = Draft(
                            id=name, type="entity", metadata=metadata, provenance=Provenance(entity, "system")
                        )
                        request = f"entity {entity} {version.object_hash}"
                        self._store.write(Write(request, draft, version.at, writer=Writer(ENTITIES, "found")))
                        made += 1
                if page:
                    self._store.set_layer(ENTITIES, page[-1].sequence, "1")
            if not page:
                break
            followed += len(page)
        return LayerReport(followed, made)

    def behind(self) -> int:
        return len(self._store.log(self._place()))

    def drop(self, store: WholeStore) -> int:
        with store.exclusive():
            store.set_layer(ENTITIES, 0, "1")
            return store.drop_objects_of((ENTITIES, None))

    def _place(self) -> int:
        found = self._store.layer(ENTITIES)
        return 0 if found is None else found[0]


@pytest.fixture
def store(tmp_path: Path) -> Iterator[SqliteUpkeep]:
    made = SqliteUpkeep(tmp_path / "one.pagein")
    random_ = random.Random(11)  # noqa: S311 - not for secrets
    for _ in tell(made, [SessionStory("s1", random_), SessionStory("s2", random_)], random_, 120):
        pass
    yield made
    made.close()


@pytest.fixture
def layers(store: SqliteUpkeep) -> tuple[DerivedLayer, ...]:
    return (*wiring.layers_of(store), EntityLayer(store))


def contents(store: SqliteStore) -> list[tuple[str, int, str]]:
    """Every version by object and number."""
    return sorted((one.id, one.number, one.object_hash.hex) for one in store.log())


def named(store: SqliteStore) -> set[str]:
    return {str(one.metadata["title"]) for one in store.objects(Query(types=frozenset({"entity"})))}


def found(store: SqliteUpkeep, pattern: str) -> tuple[set[tuple[str, int, str]], int]:
    """What a search finds, and how much it had to look at."""
    with archive_of(store) as archive:
        results = archive.search(Search(pattern=pattern, limit=1_000))
    return {(hit.where.id, hit.where.version, hit.field) for hit in results.hits}, results.looked_into


def test_each_layer_is_dropped_and_made_again(store: SqliteUpkeep, layers: tuple[DerivedLayer, ...]) -> None:
    for layer in layers:
        assert layer.catch_up().followed > 0
        assert layer.catch_up() == LayerReport()
    before, hits = contents(store), found(store, "please do s1")
    assert named(store)
    for layer in reversed(layers):
        assert layer.drop(store) > 0
        assert layer.catch_up().behind == 0
        assert contents(store) == before
    assert set(reindex(store, layers)) == {"memory", "search", ENTITIES}
    assert contents(store) == before
    assert found(store, "please do s1") == hits
    assert check_store(store).findings == []


def test_one_layer_is_made_again_alone(store: SqliteUpkeep, layers: tuple[DerivedLayer, ...]) -> None:
    reindex(store, layers)
    before, log = contents(store), store.log()[-1].sequence
    assert set(reindex(store, layers, "search")) == {"search"}
    assert (contents(store), store.log()[-1].sequence) == (before, log)
    assert set(reindex(store, layers, ENTITIES)) == {ENTITIES}
    assert contents(store) == before
    with pytest.raises(BadInput, match="no layer 'vectors'; the layers are memory, search, entities"):
        reindex(store, layers, "vectors")


def test_no_answer_needs_a_layer_over_the_objects(
    store: SqliteUpkeep, layers: tuple[DerivedLayer, ...], tmp_path: Path
) -> None:
    memory, search, entities = layers
    memory.catch_up()
    without, looked_at = found(store, "please do s1")
    search.catch_up()
    entities.catch_up()
    hits, fewer = found(store, "please do s1")
    assert {one for one in hits if one in without} == without
    assert fewer < looked_at
    with sqlite3.connect(tmp_path / "one.pagein-search") as connection:  # a layer that is damaged
        connection.execute("UPDATE shelf SET mark = 'no'")
    connection.close()
    assert found(store, "please do s1")[0] == hits


def test_the_objects_made_again_bring_the_layers_over_them_along(
    store: SqliteUpkeep, layers: tuple[DerivedLayer, ...]
) -> None:
    memory, search, entities = layers
    reindex(store, layers)
    before, (hits, _) = contents(store), found(store, "please do s1")
    memory.drop(store)
    for layer in (memory, search, entities):
        layer.catch_up()
    assert contents(store) == before
    assert found(store, "please do s1")[0] == hits


class _FullDisk:
    """A layer that fails."""

    name = "broken"

    def catch_up(self, within: float | None = None, stop: object = None, tell: object = None) -> LayerReport:
        raise StoreError("disk is full")

    def behind(self) -> int:
        return 1

    def drop(self, store: WholeStore) -> int:
        raise StoreError("disk is full")


def test_a_gateway_brings_all_layers_up_while_it_runs_and_a_failing_one_stops_no_other(
    store: SqliteUpkeep, layers: tuple[DerivedLayer, ...], caplog: pytest.LogCaptureFixture
) -> None:
    follower = LayerFollower((_FullDisk(), *layers), logging.getLogger("test"))
    follower.start(lambda: False)
    try:
        deadline = time.monotonic() + 60
        while not (named(store) and found(store, "no such thing")[1] == 0) and time.monotonic() < deadline:
            time.sleep(0.05)
    finally:
        follower.stop()
    assert named(store)
    assert SearchLayer(store).catch_up().followed == 0
    assert "the layer broken is not up to date: disk is full" in caplog.text
    assert "the layer broken does not follow the store (disk is full)" in follower.problem


class _CountedLayer(_FullDisk):
    """A layer that always has work, in slices as short as it is asked for."""

    name = "counted"

    def __init__(self) -> None:
        self.slices: list[float | None] = []

    def catch_up(self, within: float | None = None, stop: object = None, tell: object = None) -> LayerReport:
        self.slices.append(within)
        assert callable(stop)
        while within is None and not stop():
            time.sleep(0.001)
        return LayerReport()


def test_a_layer_is_followed_in_the_pauses_between_calls() -> None:
    layer, busy = _CountedLayer(), threading.Event()
    busy.set()
    follower = LayerFollower((layer,), logging.getLogger("test"))
    follower.start(busy.is_set)
    try:
        time.sleep(1)
        assert layer.slices == [], "no work beside calls"
        busy.clear()
        _wait_until(lambda: layer.slices == [None])
        busy.set()
        follower_rests = len(layer.slices)
        time.sleep(1)
        assert len(layer.slices) == follower_rests, "the work ends when a call begins"
    finally:
        follower.stop()


def test_calls_without_a_pause_leave_a_small_share() -> None:
    layer = _CountedLayer()
    follower = LayerFollower((layer,), logging.getLogger("test"), longest_wait=0.5)
    follower.start(lambda: True)
    try:
        _wait_until(lambda: len(layer.slices) >= 2)
    finally:
        follower.stop()
    assert set(layer.slices) == {0.02}


def _wait_until(holds: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 60
    while not holds() and time.monotonic() < deadline:
        time.sleep(0.01)
    assert holds()


def test_a_check_tells_what_is_behind_and_makes_no_index(
    store: SqliteUpkeep, layers: tuple[DerivedLayer, ...], tmp_path: Path
) -> None:
    for layer in (*layers, layers[1]):  # the last layer writes objects, which are searched too
        layer.catch_up()
    assert [layer.behind() for layer in layers] == [0, 0, 0]
    story = SessionStory("s3", random.Random(3))  # noqa: S311 - not for secrets
    store.append("s3", [*story.begin(), story.says()])
    assert [layer.behind() for layer in layers[:2]] == [2, 0]
    before = sorted(one.name for one in tmp_path.iterdir())
    done = CliRunner().invoke(app, ["check", "--json", "--store", str(tmp_path / "one.pagein")])
    assert json.loads(done.stdout)["behind"] == {"memory": 2, "search": 0}
    assert sorted(one.name for one in tmp_path.iterdir()) == before


class _StoreWithATornEntry(MemoryUpkeep):
    """A store whose last entry of a session cannot be followed."""

    def news(self, session: str, after: int = 0) -> Iterator[tuple[int, Entry | UnreadableLine]]:
        yield from super().news(session, after)
        torn = Message("user", (Text(None),))  # type: ignore[arg-type]
        yield self.last_place() + 1, Entry("torn", None, MessageEntry(torn))


def test_a_check_names_the_entry_at_which_memory_is_stuck() -> None:
    store, story = _StoreWithATornEntry(), SessionStory("s3", random.Random(3))  # noqa: S311 - not for secrets
    store.append("s3", [*story.begin(), story.says()])
    Indexer(store).catch_up()
    assert [(one.where, one.why[:28]) for one in projection_faults(store)] == [
        ("entry torn of s3", "the layer memory is stuck he")
    ]
