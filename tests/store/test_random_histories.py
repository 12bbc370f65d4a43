"""Random histories: SQLite and PostgreSQL answer like the store in memory."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pagein.model.names import ContentHash
from pagein.model.references import Pin, Reference
from pagein.model.values import Value
from pagein.model.versions import Draft, Provenance, Version, Writer, deletion
from pagein.model.writes import EVERYTHING, Query, Write
from pagein.ports import ObjectStore
from pagein.store.memory.memory_store import MemoryStore
from pagein.store.postgres.postgres_store import PostgresStore
from pagein.store.sql import packed_records, packed_references, sql_versions
from pagein.store.sql.sql_objects import SqlObjects
from pagein.store.sqlite.sqlite_store import SqliteStore
from pagein.testing.object_store import object_number

pytestmark = pytest.mark.damages_store

IDS = [object_number(number) for number in range(4)]
CALLS = ["call-1", "\ud800\0\\"]
NICKNAMES = ["plan", "call-1", "\\u0000 é"]
NAMES = [*IDS, *CALLS, *NICKNAMES, "nobody"]
TIMES = st.sampled_from([0.0, 1.0, 1.5, 2.0, -3.0])
TEXTS = st.sampled_from(["", "a", "\0\ud800", "line\n" * 200, "line\n" * 199 + "other\n"])
HASHES = [ContentHash.of(b""), ContentHash.of(b"a")]
PINS = st.builds(Pin, TIMES, st.sampled_from(HASHES), st.sampled_from(HASHES), st.sampled_from([None, *HASHES]))
SCALARS = st.sampled_from([None, True, 1, 1.0, "x", "/a/b", "/a/c\ud800"])


@dataclass(frozen=True, slots=True)
class Earlier:
    """A static reference to a version made before in the history, to be filled in when it is replayed."""

    back: int


REFERENCES = st.one_of(
    st.builds(Reference, st.sampled_from(NAMES), field=st.sampled_from([None, "content"])),
    st.builds(Reference, st.sampled_from(IDS), PINS),
    st.builds(Earlier, st.integers(0, 5)),
)
FIELDS = st.dictionaries(
    st.sampled_from(["path", "tags", "to", "é"]),
    st.one_of(SCALARS, REFERENCES, st.lists(SCALARS | REFERENCES, max_size=3)),
    max_size=3,
)
ADDITIONAL = st.dictionaries(
    st.sampled_from(["more", "turns"]), st.one_of(TEXTS, st.lists(REFERENCES, max_size=2)), max_size=2
)


@dataclass(frozen=True, slots=True)
class Step:
    """One write of a history. request: None for one of its own. delete: say that the object is gone, if it is there.
    pause: whether the store packs what it has before the write.
    """

    id: str
    type: str
    content: str | None
    metadata: dict[str, object]
    additional: dict[str, object]
    nickname: str | None
    at: float
    expected: int | None
    request: str | None
    delete: bool
    fail: bool
    pause: bool


STEPS = st.builds(
    Step,
    id=st.sampled_from([*IDS, *CALLS]),
    type=st.sampled_from(["file", "file", "file", "note", "session"]),
    content=st.none() | TEXTS,
    metadata=FIELDS,
    additional=ADDITIONAL,
    nickname=st.sampled_from([None, None, *NICKNAMES]),
    at=TIMES,
    expected=st.sampled_from([None, None, None, 0, 1, 2]),
    request=st.sampled_from([None, None, "again", "\\ \ud800\0", "memory:" + "0f" * 16]),
    delete=st.sampled_from([False, False, False, True]),
    fail=st.sampled_from([False, False, False, False, True]),
    pause=st.booleans(),
)
HISTORIES = st.lists(STEPS, max_size=12)


@pytest.fixture(autouse=True, scope="module")
def hasty() -> Iterator[None]:
    """Everything is packed in the first pause, and a few texts make a segment."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(packed_references, "COLD", 0)
        patch.setattr(packed_references, "REFERENCES", replace(packed_references.REFERENCES, most=2))
        patch.setattr(sql_versions, "RECORDS", replace(packed_records.RECORDS, most=2))
        yield


class Undone(Exception):
    """Somebody's own error, within an exclusive time."""


def replay(store: ObjectStore, history: list[Step]) -> list[object]:
    """Every answer to a history."""
    answers: list[object] = []
    for place, step in enumerate(history):
        try:
            if step.pause and isinstance(store, SqlObjects):
                while store.bundle_more():
                    pass
            with store.exclusive():
                answers.append(store.write(_write(store, step, place)))
                _fail(step)
        except Undone:
            answers.append("undone")
    return answers


def _fail(step: Step) -> None:
    if step.fail:
        raise Undone


def _write(store: ObjectStore, step: Step, place: int) -> Write:
    current = store.current(step.id)
    request = f"own {place}" if step.request is None else step.request
    if step.delete and current is not None and current.id == step.id:
        return Write(request, deletion(current), step.at, step.expected)
    log = store.log()
    draft = Draft(
        id=step.id,
        type="toolcall" if step.id in CALLS else step.type,
        content=step.content,
        metadata={name: _filled(value, log) for name, value in step.metadata.items()},
        additional={name: _filled(value, log) for name, value in step.additional.items()},
        nickname=step.nickname,
        provenance=Provenance("o", "agent", (Reference(IDS[0]),) if step.at > 1 else ()),
    )
    return Write(request, draft, step.at, step.expected, Writer(session=step.nickname))


def _filled(value: object, log: object) -> object:
    match value:
        case Earlier(back):
            versions = list(log) if isinstance(log, tuple) else []
            return versions[-1 - back % len(versions)].static() if versions else None
        case list():
            return [_filled(one, log) for one in value]
    return value


def told(store: ObjectStore) -> Iterator[object]:
    """Everything a store can be asked."""
    log = store.log()
    yield log
    yield store.log(2, 3)
    yield store.contents()
    for name in NAMES:
        yield name, store.current(name), store.history(name), store.version(name, 2)
        yield [store.as_of(name, at) for at in (-4.0, 0.0, 1.2, 2.0)]
        yield store.backlinks(name), store.backlinks(name, ever=True), store.backlinks(name, pinned=HASHES[0])
    for version in log:
        yield from _told_of(store, version)
    for query in _queries():
        yield store.objects(query)


def _told_of(store: ObjectStore, version: Version) -> Iterator[object]:
    yield store.content(version)
    yield {name: store.additional(version, name) for name in version.additional}
    links = store.references(version)
    yield links
    yield [store.resolve(link.reference) for link in links]
    yield store.backlinks(version.id, pinned=version.object_hash, ever=True)


def _queries() -> Iterator[Query]:
    yield from (
        EVERYTHING,
        Query(),
        Query(deleted=True),
        Query(limit=1),
        Query(before=3),
        Query(since=1.0),
        Query(until=1.0),
    )
    yield from (Query(types=frozenset({"file", "toolcall"})), Query(under=("path", "/a")), Query(under=("tags", "")))
    yield from (
        Query(ending=("path", "a")),
        Query(by_time=True),
        Query(by_time=True, limit=2),
        Query(beginning=IDS[0][:9]),
    )
    values: list[Value] = [None, True, 1, 1.0, "x", "/a/c\ud800"]
    yield from (
        Query(where={name: value}, deleted=None) for name in ("path", "tags", "nickname", "session") for value in values
    )


@given(HISTORIES)
@settings(max_examples=80, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_sqlite_answers_as_memory_does(tmp_path_factory: pytest.TempPathFactory, history: list[Step]) -> None:
    path: Path = tmp_path_factory.mktemp("store") / "one.pagein"
    memory, sqlite = MemoryStore(), SqliteStore(path)
    try:
        assert replay(sqlite, history) == replay(memory, history)
        assert list(told(sqlite)) == list(told(memory))
        reopened = SqliteStore(path)
        assert list(told(reopened)) == list(told(memory))
        reopened.close()
    finally:
        sqlite.close()


@pytest.fixture
def server(postgres: str, schema: Callable[[], str]) -> Iterator[PostgresStore]:
    store = PostgresStore(postgres, schema())
    yield store
    store.close()


def emptied(store: PostgresStore) -> PostgresStore:
    """The store as it is when it is new; making a schema for each history would take longer than the history."""
    with store._database.open_writer() as rows:
        query = "SELECT table_name FROM information_schema.tables WHERE table_schema = current_schema() AND table_name <> 'migration'"
        for (table,) in rows.execute(query).fetchall():
            rows.execute(f"DELETE FROM {table}")  # noqa: S608 -- names of our own tables
        rows.execute("INSERT INTO tally VALUES(1, 0)")
    return store


@given(HISTORIES)
@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_postgres_answers_as_memory_does(server: PostgresStore, history: list[Step]) -> None:
    memory, store = MemoryStore(), emptied(server)
    assert replay(store, history) == replay(memory, history)
    assert list(told(store)) == list(told(memory))
