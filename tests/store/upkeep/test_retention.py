"""Ended sessions lose their journals after an announcement and a day of grace, and nothing else is lost."""

import json
import logging
import random
import sqlite3
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from itertools import count
from pathlib import Path

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from tests.memory.journal_stories import SessionStory, tell
from tests.memory.test_indexer import versions
from tests.memory.test_moved_objects import live

from pagein.errors import StoreError
from pagein.gateway.curation.session_keeper import SessionKeeper
from pagein.memory.indexer import Indexer
from pagein.memory.remade_objects import RemadeObjects
from pagein.model.derived_versions import ARCHIVED
from pagein.model.identifiers import uuid7
from pagein.model.store_inventory import JournalLine
from pagein.model.versions import Draft
from pagein.model.writes import Query, Write
from pagein.retention import GRACE, LAPSE, RETENTION, RetentionNews, announcement, apply_retention
from pagein.store.upkeep import collection
from pagein.store.upkeep.collection import DAY, Retention
from pagein.store.upkeep.postgres_upkeep import PostgresUpkeep
from pagein.store.upkeep.sqlite_upkeep import SqliteUpkeep
from pagein.testing.upkeep_contract import note_entry
from pagein.upkeep import check_store, garbage, reindex
from pagein.wiring import layers_of

NOW = time.time() + 3600
KEEP = 30 * DAY
_SCHEMAS = count()


@pytest.fixture
def store(tmp_path: Path) -> Iterator[SqliteUpkeep]:
    with closing(SqliteUpkeep(tmp_path / "one.pagein")) as store:
        yield store


def touched(store: SqliteUpkeep, session: str, days_ago: float) -> None:
    with sqlite3.connect(store._database.path) as connection:
        connection.execute("UPDATE life SET touched = ? WHERE session = ?", (int(NOW - days_ago * DAY), session))
    connection.close()


def names(store: SqliteUpkeep) -> set[str]:
    return {one.name for one in store.sessions() if not one.is_own}


def test_a_session_is_announced_a_day_before_its_journal_is_removed(store: SqliteUpkeep) -> None:
    for name in ("old", "new"):
        store.append(name, [note_entry("a")])
    touched(store, "old", 31)
    touched(store, "new", 20)
    assert apply_retention(store, KEEP, NOW, NOW) == RetentionNews(announced=("old",))
    assert announcement(store).sessions == {"old": NOW + GRACE}
    assert apply_retention(store, KEEP, NOW + GRACE - 1, NOW) == RetentionNews()
    assert names(store) == {"old", "new"}
    news = apply_retention(store, KEEP, NOW + GRACE, NOW)
    assert (news.removed, news.announced) == (("old",), ())
    assert "removed the journals of 1 sessions" in news.lines[0]
    assert names(store) == {"new"}
    assert announcement(store).sessions == {}


def test_a_quota_takes_the_journals_of_the_oldest_sessions_alone(store: SqliteUpkeep) -> None:
    for days, name in ((20, "oldest"), (12, "older"), (6, "young"), (0, "used")):
        store.append(name, [note_entry(random.Random(days).randbytes(2_000).hex())])  # noqa: S311 - not for secrets
        touched(store, name, days)
    sizes = {one.name: one.size for one in store.sessions()}
    quota = sum(sizes.values()) - 10
    assert apply_retention(store, None, NOW, NOW) == RetentionNews()
    assert apply_retention(store, None, NOW, NOW, quota).announced == ("oldest",)
    assert apply_retention(store, None, NOW + GRACE, NOW, quota).removed == ("oldest",)
    assert names(store) == {"older", "young", "used"}
    assert apply_retention(store, None, NOW, NOW, 0).announced == ("older",)
    assert apply_retention(store, 10 * DAY, NOW, NOW, 10**9).announced == ()
    assert apply_retention(store, 10 * DAY, NOW + GRACE, NOW, 10**9).removed == ("older",)
    assert names(store) == {"young", "used"}


def test_a_session_that_is_used_again_stays_and_is_announced_again(store: SqliteUpkeep) -> None:
    store.append("old", [note_entry("a")])
    touched(store, "old", 31)
    apply_retention(store, KEEP, NOW, NOW)
    store.append("old", [note_entry("b", "a")])
    touched(store, "old", -0.1)
    assert apply_retention(store, KEEP, NOW + GRACE, NOW) == RetentionNews()
    assert names(store) == {"old"}
    later = NOW + 40 * DAY
    assert apply_retention(store, KEEP, later, later).announced == ("old",)
    assert apply_retention(store, KEEP, later, later) == RetentionNews()


def test_a_gateway_keeps_the_sessions_that_it_may_hold_open(store: SqliteUpkeep) -> None:
    store.append("old", [note_entry("a")])
    touched(store, "old", 31)
    began = NOW - 40 * DAY
    assert apply_retention(store, KEEP, NOW, began) == RetentionNews()


def test_a_gateway_leaves_the_announcements_of_others(store: SqliteUpkeep) -> None:
    """Before, it dropped those of sessions that it may hold open itself, and no session was ever removed."""
    store.append("old", [note_entry("a")])
    touched(store, "old", 31)
    began = NOW - 40 * DAY
    assert apply_retention(store, KEEP, NOW, NOW).announced == ("old",)
    assert apply_retention(store, KEEP, NOW + GRACE, began) == RetentionNews()
    assert apply_retention(store, KEEP, NOW + GRACE, NOW).removed == ("old",)


@pytest.fixture(params=["sqlite", "postgres"])
def upkeep(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[SqliteUpkeep | PostgresUpkeep]:
    """A store on each database."""
    if request.param == "postgres":
        opened: SqliteUpkeep | PostgresUpkeep = PostgresUpkeep(
            request.getfixturevalue("postgres"), f"retention_{next(_SCHEMAS)}"
        )
    else:
        opened = SqliteUpkeep(tmp_path / "both.pagein")
    with closing(opened) as store:
        yield store


def test_gateways_of_different_retention_leave_each_others_announcements(
    upkeep: SqliteUpkeep | PostgresUpkeep,
) -> None:
    """Before, the one with the longer retention dropped what the other announced, which began anew each time."""
    upkeep.append("old", [note_entry("a")])
    now = NOW + 31 * DAY
    assert apply_retention(upkeep, KEEP, now, now).announced == ("old",)
    for hours in range(24):
        at = now + hours * 3600
        assert apply_retention(upkeep, 2 * KEEP, at, now) == RetentionNews()
        assert apply_retention(upkeep, None, at, now, 10**9) == RetentionNews()
        assert apply_retention(upkeep, KEEP, at, now) == RetentionNews()
    assert apply_retention(upkeep, 2 * KEEP, now + GRACE, now).removed == ()
    assert apply_retention(upkeep, KEEP, now + GRACE, now).removed == ("old",)
    assert announcement(upkeep).sessions == {}


def test_an_announcement_that_nobody_carries_out_lapses(
    upkeep: SqliteUpkeep | PostgresUpkeep,
) -> None:
    upkeep.append("old", [note_entry("a")])
    now = NOW + 31 * DAY
    apply_retention(upkeep, KEEP, now, now)
    lapse = now + GRACE + LAPSE
    for at in (lapse - 1, lapse):
        assert announcement(upkeep).sessions == {"old": now + GRACE}
        assert apply_retention(upkeep, 2 * KEEP, at, now) == RetentionNews()
    assert announcement(upkeep).sessions == {}
    late = NOW + 61 * DAY
    assert apply_retention(upkeep, 2 * KEEP, late, now).announced == ("old",)
    assert apply_retention(upkeep, 2 * KEEP, late + GRACE, now).removed == ("old",)


def test_a_collection_leaves_announcements_and_takes_along_those_of_what_it_removes(
    upkeep: SqliteUpkeep | PostgresUpkeep,
) -> None:
    for name in ("ended", "old"):
        upkeep.append(name, [note_entry("a")])
    now = NOW + 31 * DAY
    apply_retention(upkeep, KEEP, now, now)
    upkeep.end_session("ended")
    done = garbage(upkeep, Retention(idle=90 * DAY, keep=0.0), now, apply=True)
    assert [one.name for one in done.sessions] == ["ended"]
    assert apply_retention(upkeep, 2 * KEEP, now, now) == RetentionNews()
    assert announcement(upkeep).sessions == {"old": now + GRACE}
    assert apply_retention(upkeep, KEEP, now + GRACE, now).removed == ("old",)


def test_a_use_in_the_second_of_an_announcement_counts(store: SqliteUpkeep) -> None:
    """The time of a use is kept in whole seconds."""
    store.append("old", [note_entry("a")])
    touched(store, "old", 31)
    at = int(NOW) + 0.25
    apply_retention(store, KEEP, at, at)
    touched(store, "old", (NOW - int(at)) / DAY)
    assert apply_retention(store, KEEP, at + KEEP + 1, at + 1) == RetentionNews(announced=("old",))


@given(st.lists(st.tuples(st.integers(0, 2), st.floats(0, 50), st.booleans()), max_size=12))
@example([(0, 0.0, True), (0, 30.0, False), (0, 1.0, True), (0, 30.0, False), (0, 1.0, False)])
@example([(0, 0.0, True), (0, 30.0, False), (0, 1.0, True), (0, 40.0, False)])
@settings(max_examples=40, deadline=None)
def test_no_journal_is_removed_without_a_day_of_notice(
    tmp_path_factory: pytest.TempPathFactory, steps: list[tuple[int, float, bool]]
) -> None:
    """Whatever is used when, and however often somebody looks: each removal was announced a day before, unused since."""
    now = NOW
    with closing(SqliteUpkeep(tmp_path_factory.mktemp("stores") / "one.pagein")) as store:
        told: dict[str, float] = {}
        used: dict[str, float] = {}
        for number, (session, days, uses) in enumerate(steps):
            now += days * DAY
            if uses:
                name = f"s{session}"
                store.append(name, [note_entry(f"e{number}")])
                used[name] = float(int(now))
                with sqlite3.connect(store._database.path) as rows:
                    rows.execute("UPDATE life SET touched = ? WHERE session = ?", (int(now), name))
                continue
            before = names(store)
            news = apply_retention(store, KEEP, now, now)
            assert before - names(store) == set(news.removed)
            for name in news.removed:
                assert now - told.pop(name) >= GRACE
                assert now - used[name] >= KEEP
            told |= dict.fromkeys(news.announced, now)
            told = {name: at for name, at in told.items() if used[name] <= at}


def test_what_a_removed_session_said_and_touched_stays(store: SqliteUpkeep) -> None:
    live(store, 5, 60, ("a", "b"))
    touched(store, "a", 31)
    told = versions(store)
    apply_retention(store, KEEP, NOW, NOW)
    assert apply_retention(store, KEEP, NOW + GRACE, NOW).removed == ("a",)
    assert versions(store) == told
    assert {one.writer.kind for one in store.log() if one.writer.session == "a"} == {ARCHIVED}
    assert check_store(store).findings == []
    reindex(store, layers_of(store))
    assert {one for one, *_ in versions(store)} == {one for one, *_ in told}
    assert check_store(store).findings == []


@pytest.mark.parametrize("by", ["gc", "retention"])
def test_the_newest_steps_of_a_removed_session_stay(store: SqliteUpkeep, tmp_path: Path, by: str) -> None:
    """They were in no version of their chat yet, and nothing could make one without the journal."""

    def steps(of: SqliteUpkeep) -> dict[str, object]:
        return {one.id: one.metadata["step_count"] for one in of.log() if one.type == "chat"}

    with closing(SqliteUpkeep(tmp_path / "twin.pagein")) as twin:
        for one in (store, twin):
            for _ in tell(one, [SessionStory("a", random.Random(3))], random.Random(5), 40):  # noqa: S311 - not for secrets
                pass
            Indexer(one).catch_up()
        before = steps(twin)
        Indexer(twin).save_open_chats(NOW)
        assert steps(twin) != before
        touched(store, "a", 31)
        if by == "gc":
            assert garbage(store, Retention(keep=0.0), NOW, apply=True).sessions
        else:
            apply_retention(store, KEEP, NOW, NOW)
            assert apply_retention(store, KEEP, NOW + GRACE, NOW).removed == ("a",)
        assert steps(store) == steps(twin)
    assert check_store(store).findings == []
    reindex(store, layers_of(store))
    assert check_store(store).findings == []


def test_a_removed_session_that_goes_on_keeps_its_past(store: SqliteUpkeep) -> None:
    live(store, 5, 40, ("a", "b"))
    told = {one.id for one in store.objects(Query(where={"session": "a"}, limit=None))}
    touched(store, "a", 31)
    apply_retention(store, KEEP, NOW, NOW)
    apply_retention(store, KEEP, NOW + GRACE, NOW)
    story = SessionStory("a", random.Random(6))  # noqa: S311 - not for secrets
    story._count = 1_000  # its client sends only what it said since a compaction
    for _ in tell(store, [story], random.Random(7), 10):  # noqa: S311 - not for secrets
        pass
    Indexer(store).catch_up()
    assert check_store(store).findings == []
    reindex(store, layers_of(store))
    assert check_store(store).findings == []
    assert told <= {one.id for one in store.log()}
    assert Indexer(store).behind() == 0
    assert RETENTION not in names(store)


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("is_open", [True, False])
def test_a_removed_session_that_is_told_again_keeps_its_past(store: SqliteUpkeep, seed: int, *, is_open: bool) -> None:
    """Its client sends the whole history again, later: the entries are the same, their times are not."""

    def stories() -> list[SessionStory]:
        return [SessionStory("a", random.Random(seed)), SessionStory("b", random.Random(-1 - seed))]  # noqa: S311 - not for secrets

    indexer = Indexer(store)
    for _ in tell(store, stories(), random.Random(5), 40):  # noqa: S311 - not for secrets
        pass
    for turn in range(3):
        indexer.save_open_chats(NOW + turn)
        told = [(one.id, one.number, one.content_hash) for one in store.log() if one.writer.session == "a"]
        assert told
        store.drop_sessions(["a"])
        assert check_store(store).findings == []
        again, _ = stories()
        again._time += 1_000 + turn
        if not is_open:
            indexer = Indexer(store)
        for _ in tell(store, [again], random.Random(5), 60):  # noqa: S311 - not for secrets
            if seed % 2:
                indexer.catch_up()
        indexer.catch_up()
        assert check_store(store).findings == []
        assert set(told) <= {(one.id, one.number, one.content_hash) for one in store.log()}
    before = versions(store)
    reindex(store, layers_of(store))
    assert check_store(store).findings == []
    assert {one for one, *_ in versions(store)} == {one for one, *_ in before}


class CountedReads(SqliteUpkeep):
    """A store that counts the journal lines that were read."""

    read = 0

    def journal_lines(self, after: int = 0) -> Iterator[JournalLine]:
        for line in super().journal_lines(after):
            self.read += 1
            yield line


def test_a_look_reads_no_journal_while_nothing_is_due(tmp_path: Path) -> None:
    with closing(CountedReads(tmp_path / "one.pagein")) as store:
        for name in ("old", "new"):
            store.append(name, [note_entry("a")])
        touched(store, "old", 31)
        assert apply_retention(store, KEEP, NOW, NOW, 10**9).announced == ("old",)
        assert apply_retention(store, KEEP, NOW, NOW, 10**9) == RetentionNews()
        assert store.read == 0
        assert (
            apply_retention(store, KEEP, NOW, NOW, 1).announced == ()
        )  # over the quota: sizes are known only by a plan
        assert store.read > 0


def test_sessions_go_in_portions_between_which_calls_are_carried_out(
    store: SqliteUpkeep, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(collection, "_AT_ONCE", 1)
    live(store, 5, 90, ("a", "b", "c"))
    Indexer(store).save_open_chats(NOW)
    told = versions(store)
    for name in ("a", "b", "c"):
        touched(store, name, 31)
    apply_retention(store, KEEP, NOW, NOW)
    left: list[int] = []

    def go_on() -> bool:
        left.append(len(names(store)))
        assert check_store(store).findings == []
        return len(left) < 2

    news = apply_retention(store, KEEP, NOW + GRACE, NOW, None, go_on)
    assert left == [2, 1]
    assert len(news.removed) == 2
    assert set(announcement(store).sessions) == names(store)
    (last,) = names(store)
    assert apply_retention(store, KEEP, NOW + GRACE, NOW).removed == (last,)
    assert names(store) == set()
    assert versions(store) == told
    assert garbage(store, Retention(), NOW, apply=True).is_empty


@pytest.mark.parametrize("drops_all", [True, False])
def test_no_journal_is_removed_while_objects_are_made_again(
    store: SqliteUpkeep, monkeypatch: pytest.MonkeyPatch, *, drops_all: bool
) -> None:
    """By `pagein reindex` or `pagein forget` in another process: without a journal, nothing could make them."""
    monkeypatch.setattr(collection, "_AT_ONCE", 1)
    live(store, 5, 60, ("a", "b"))
    for name in ("a", "b"):
        touched(store, name, 31)
    Indexer(store).catch_up()
    told = {one for one, *_ in versions(store)}
    apply_retention(store, KEEP, NOW, NOW)

    def go_on() -> bool:
        (left,) = names(store)
        if drops_all:
            Indexer(store).drop(store)
        else:
            RemadeObjects(frozenset([left]), "", last=store.last_place(), place=0).save(store)
        return True

    with pytest.raises(StoreError, match="made again"):
        apply_retention(store, KEEP, NOW + GRACE, NOW, None, go_on)
    assert len(names(store)) == 1
    assert len(apply_retention(store, KEEP, NOW + GRACE, NOW).removed) == 1
    assert {one for one, *_ in versions(store)} == told
    assert check_store(store).findings == []


def test_what_was_compressed_against_a_removed_journal_does_not_stay_alone(store: SqliteUpkeep) -> None:
    """A store of 41 MB grew to 76 MB when its journals were removed."""
    chance = random.Random(5)  # noqa: S311 - not for secrets
    said = [chance.randbytes(2_500).hex() for _ in range(60)]
    store.append(
        "a",
        [
            note_entry(f"a{number}", f"a{number - 1}" if number else None, json.dumps(text))
            for number, text in enumerate(said)
        ],
    )
    while store.bundle_more(rest=True):
        pass
    store.set_layer("memory", store.last_place(), "")  # followed, so that contents may be compressed against the lines
    for number, text in enumerate(said):
        store.write(
            Write(f"w{number}", Draft(id=uuid7(number, bytes(10)), type="toolcall", content=f"{number} {text}"), 1.0)
        )
    while store.bundle_more(rest=True):
        pass
    assert waiting(store) == 0
    assert sum(store.blob_sizes().values()) < 40_000
    touched(store, "a", 31)
    apply_retention(store, KEEP, NOW, NOW)
    assert apply_retention(store, KEEP, NOW + GRACE, NOW).removed == ("a",)
    assert sum(store.blob_sizes().values()) > 150_000
    assert waiting(store) == 0


def waiting(store: SqliteUpkeep) -> int:
    """Return the stored bytes of blobs that are in no bundle."""
    with store._database.open_reader() as rows:
        return int(rows.execute("SELECT coalesce(sum(size), 0) FROM alone").fetchone()[0])


def test_a_gateway_looks_when_no_call_runs_and_survives_a_failing_store(caplog: pytest.LogCaptureFixture) -> None:
    looks: list[float] = []
    busy = [True, True, False, False, False]

    def apply(now: float, go_on: Callable[[], bool]) -> tuple[str, ...]:
        looks.append(now)
        if len(looks) == 1:
            raise StoreError("the disk is full")
        assert go_on() or len(looks) > 2
        return ("removed something",)

    keeper = SessionKeeper(apply, logging.getLogger("pagein.test"), first=0.01, pause=0.01)
    with caplog.at_level(logging.WARNING):
        keeper.start(lambda: bool(busy) and busy.pop(0))
        until = time.monotonic() + 5
        while len(looks) < 2 and time.monotonic() < until:
            time.sleep(0.01)
        keeper.stop()
    assert len(looks) >= 2
    assert "the disk is full" in caplog.text
    assert "removed something" in caplog.text
