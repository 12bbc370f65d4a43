"""Journal lines in segments: every line as it was appended, in less room, and nothing left of what is erased or removed."""

import sqlite3
from collections.abc import Sequence
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pagein.model.codec import encode_entry
from pagein.model.entries import Entry, MessageEntry
from pagein.model.messages import Message, Text, ToolResult, UnreadableLine
from pagein.model.names import ContentHash
from pagein.model.objects import ObjectId, Origin, StoredObject
from pagein.model.text_removal import PrivateSpan
from pagein.store.sql.sql_lines import LINES, line_of
from pagein.store.sql.sql_segments import _joined_texts
from pagein.store.upkeep.postgres_upkeep import PostgresUpkeep
from pagein.store.upkeep.sqlite_upkeep import SqliteUpkeep

pytestmark = pytest.mark.damages_store
Store = SqliteUpkeep | PostgresUpkeep
LONG = "\n".join(f'line {number} of é \U0001f9ca \\ " a result\t' for number in range(40))
TOGETHER = 20
"""The number of lines in a segment of these tests."""


def said(number: int, parent: int | None = None) -> Entry:
    text = f"word-{number} is what was said, after what was said before it"
    before = None if parent is None else f"e{parent}"
    return Entry(f"e{number}", before, MessageEntry(Message("user", (Text(text),))), at=float(number))


def shown(number: int, text: str) -> Entry:
    return Entry(f"e{number}", None, MessageEntry(Message("tool", (ToolResult(f"call-{number}", text, "bash"),))))


@pytest.fixture(autouse=True)
def small_segments(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pagein.store.sql.sql_lines.LINES", replace(LINES, most=TOGETHER))


def seal(store: Store) -> None:
    while store.bundle_more():
        pass


def evict(store: Store, content: bytes) -> None:
    origin = Origin("one", "call-1")
    one = ObjectId.of(ContentHash.of(content), origin, store.secret())
    stored = StoredObject(one, ContentHash.of(content), "toolcall", "w", origin, "it", 1, len(content))
    store.put_objects([(stored, content)])


def in_segments(store: Store) -> list[bytes]:
    with store._database.open_reader() as rows:
        found = rows.execute("SELECT data FROM line_segment WHERE texts > 1").fetchall()
        alone = rows.execute("SELECT data FROM line_segment WHERE texts = 1").fetchall()
    return [text for (data,) in found for text in _joined_texts(bytes(data)).all().values()] + [
        LINES.unpack_one(bytes(data)) for (data,) in alone
    ]


def in_rows(store: Store) -> int:
    with store._database.open_reader() as rows:
        found = rows.execute("SELECT count(*) FROM journal WHERE length(line) > 0").fetchone()
    return 0 if found is None else int(found[0])


def test_segments_change_no_answer_and_take_less_room(store: Store) -> None:
    entries = [said(number) for number in range(1, 65)]
    store.append("one", entries[:30])
    store.append("two", [shown(99, LONG)])
    store.append("one", entries[30:])
    sizes = {one.name: one.size for one in store.sessions()}
    seal(store)
    assert list(store.entries("one")) == entries
    assert [store.entry("one", f"e{number}") for number in (1, 30, 64)] == [entries[0], entries[29], entries[63]]
    assert [line.line for line in store.journal_lines() if line.session == "one"] == list(map(encode_entry, entries))
    assert next(iter(store.news("one", 40)))[1] == entries[39]
    assert (in_rows(store), len(in_segments(store))) == (0, 65)
    assert {one.name: one.size for one in store.sessions()}["one"] < sizes["one"] / 2
    (line,) = (line for line in store.journal_lines() if line.session == "two")
    assert (line.texts, line.line) == ((ContentHash.of(LONG.encode()),), encode_entry(shown(99, LONG)))


def test_a_rest_is_compressed_too_if_it_is_no_trifle(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pagein.store.sql.sql_lines.LINES", replace(LINES, size=16_000))
    store.append("one", [said(number) for number in range(1, 5)])
    assert store.bundle_more(rest=True) == 0
    store.append("one", [said(number) for number in range(5, 40)])
    assert (store.bundle_more(), store.bundle_more(rest=True)) == (0, 39)
    assert list(store.entries("one")) == [said(number) for number in range(1, 40)]


def test_an_entry_that_is_appended_again_stays(store: Store) -> None:
    entries = [said(number) for number in range(1, 45)]
    store.append("one", entries)
    seal(store)
    store.append("one", [*entries[:3], said(50)])
    assert list(store.entries("one")) == [*entries, said(50)]


def test_an_evicted_text_stands_in_its_line_again_without_a_new_segment(store: Store) -> None:
    store.append("one", [shown(1, LONG), *map(said, range(2, 45))])
    seal(store)
    with store._database.open_reader() as rows:
        before = rows.execute("SELECT first, data FROM line_segment ORDER BY first").fetchall()
    evict(store, LONG.encode())
    with store._database.open_reader() as rows:
        assert rows.execute("SELECT first, data FROM line_segment ORDER BY first").fetchall() == before
    (line,) = (line for line in store.journal_lines() if line.id == "e1")
    assert (line.texts, line.line) == ((), encode_entry(shown(1, LONG)))
    seal(store)
    assert (in_rows(store), next(iter(store.entries("one")))) == (1, shown(1, LONG))


def test_a_line_that_changed_before_its_segment_was_made_is_in_it(store: Store) -> None:
    store.append("one", [shown(1, LONG), *map(said, range(2, 10))])
    evict(store, LONG.encode())
    store.append("one", list(map(said, range(10, 45))))
    store.keep_snapshot("one", 20, "form", b"state")
    seal(store)
    assert (in_rows(store), next(iter(store.entries("one")))) == (0, shown(1, LONG))
    assert store.load_snapshot("one", "form") == (20, b"state")


@pytest.mark.parametrize("evicted", [False, True])
def test_nothing_is_left_of_an_erased_text(store: Store, *, evicted: bool) -> None:
    erased = "word-7 "
    store.append("one", [shown(1, LONG + erased), *map(said, range(2, 45))])
    seal(store)
    if evicted:
        evict(store, (LONG + erased).encode())

    def finds(text: str) -> Sequence[PrivateSpan]:
        return tuple(
            PrivateSpan(at, at + len(erased), "a word") for at in range(len(text)) if text.startswith(erased, at)
        )

    done = store.retell(b"key", finds)
    assert done.entries >= 1
    assert not any(erased.encode() in text for text in in_segments(store))
    assert not any(erased.encode() in line.line for line in store.journal_lines())
    assert len(list(store.entries("one"))) == 44
    seal(store)
    assert not any(erased.encode() in text for text in in_segments(store))


def test_nothing_is_left_of_a_session_that_is_dropped(store: Store) -> None:
    for number in range(1, 60):
        store.append("one" if number % 3 else "two", [said(number)])
    seal(store)
    store.drop_sessions(["two"])
    assert [line.id for line in store.journal_lines()] == [f"e{number}" for number in range(1, 60) if number % 3]
    assert not any(b"word-%d " % number in text for text in in_segments(store) for number in range(3, 60, 3))
    assert list(store.entries("one")) == [said(number) for number in range(1, 60) if number % 3]


def test_a_damaged_segment_costs_its_own_lines_alone_and_is_told(tmp_path: Path) -> None:
    entries = [said(number) for number in range(1, 61)]
    with closing(SqliteUpkeep(tmp_path / "one.pagein")) as store:
        store.append("one", entries)
        seal(store)
        with closing(sqlite3.connect(tmp_path / "one.pagein")) as rows, rows:
            rows.execute("UPDATE line_segment SET data = zeroblob(60) WHERE first = 21")
        found = list(store.entries("one"))
        assert [one for one in found if isinstance(one, Entry)] == [*entries[:20], *entries[40:]]
        assert sum(isinstance(one, UnreadableLine) for one in found) == 20
        assert sum(line.damaged for line in store.journal_lines()) == 20
        store.drop_sessions(["one"])
        assert list(store.entries("one")) == []


def test_lines_of_an_older_form_move_in_the_pauses(tmp_path: Path) -> None:
    path = tmp_path / "one.pagein"
    entries = [shown(1, LONG), *map(said, range(2, 60))]
    with closing(SqliteUpkeep(path)) as store:
        store.append("one", entries)
        store.keep_snapshot("one", 20, "form", b"state")
    with closing(SqliteUpkeep(path)) as store:
        assert (list(store.entries("one")), in_rows(store)) == (entries, 59)
        store.append("one", list(map(said, range(60, 70))))
        seal(store)
        assert (list(store.entries("one")), in_rows(store)) == ([*entries, *map(said, range(60, 70))], 0)
        assert store.load_snapshot("one", "form") == (20, b"state")


def test_lines_that_moved_leave_no_holes(tmp_path: Path) -> None:
    path = tmp_path / "one.pagein"
    with closing(SqliteUpkeep(path)) as store:
        for turn in range(40):  # alternately, as two sessions at work do
            store.append(f"s{turn % 2}", [said(20 * turn + one) for one in range(20)])
        seal(store)
        with store._database.open_reader() as rows:
            used = [rows.execute(f"PRAGMA {name}").fetchone() for name in ("page_count", "freelist_count")]
        store.shrink()
        with store._database.open_reader() as rows:
            least = rows.execute("PRAGMA page_count").fetchone()
    (pages,), (free,), (dense,) = (*used, least)
    assert pages - free <= 1.3 * dense


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=25, deadline=None)
@given(
    deeds=st.lists(
        st.tuples(st.sampled_from(["append", "append", "seal", "evict", "drop", "put"]), st.integers(0, 5)), max_size=16
    )
)
def test_any_order_of_appending_sealing_evicting_and_removing(
    tmp_path_factory: pytest.TempPathFactory, deeds: list[tuple[str, int]]
) -> None:
    kept: dict[str, list[Entry]] = {}
    with closing(SqliteUpkeep(tmp_path_factory.mktemp("any") / "one.pagein")) as store:
        for turn, (deed, number) in enumerate(deeds):
            session = f"s{number % 3}"
            match deed:
                case "append":
                    some = [shown(100 * turn, LONG + str(number)), *(said(100 * turn + one) for one in range(1, 9))]
                    store.append(session, some)
                    kept.setdefault(session, []).extend(some)
                case "seal":
                    seal(store)
                case "evict":
                    evict(store, (LONG + str(number)).encode())
                case "put" if kept.get(session):
                    place = next(place for place, one in store.news(session) if one == kept[session][0])
                    store.put_entry(session, place, kept[session][0])
                case "drop":
                    store.drop_sessions([session])
                    kept.pop(session, None)
                case _:
                    pass
            assert {name: list(store.entries(name)) for name in kept} == kept
            with store._database.open_reader() as rows:
                assert line_of(rows, 1_000_000) is None
