"""Heads of lines in segments: each line as it was, in less room, and damaged rather than with another id."""

import hashlib
import sqlite3
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pagein.errors import DamagedBlob
from pagein.model.codec import encode_entry
from pagein.model.entries import Entry, MessageEntry
from pagein.model.messages import Message, Text, UnreadableLine
from pagein.store.sql.line_heads import SHORT_HEAD, lengthen_head, parent_of, shorten_heads
from pagein.store.sql.short_names import entry_key
from pagein.store.sql.sql_lines import LINES
from pagein.store.sql.sql_segments import _joined_texts
from pagein.store.upkeep.postgres_upkeep import PostgresUpkeep
from pagein.store.upkeep.sqlite_upkeep import SqliteUpkeep

pytestmark = pytest.mark.damages_store
Store = SqliteUpkeep | PostgresUpkeep
TOGETHER = 20
"""The number of lines in a segment of these tests."""


@pytest.fixture(autouse=True)
def small_segments(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pagein.store.sql.sql_lines.LINES", replace(LINES, most=TOGETHER))


def name(number: int) -> str:
    return hashlib.sha256(b"%d" % number).hexdigest()[:32]


def said(number: int, parent: int | None = None) -> Entry:
    before = None if parent is None else name(parent)
    return Entry(name(number), before, MessageEntry(Message("user", (Text(f"word-{number} is said"),))), at=1.0)


def seal(store: Store) -> None:
    while store.bundle_more():
        pass


def in_segments(store: Store) -> list[bytes]:
    with store._database.open_reader() as rows:
        found = rows.execute("SELECT data FROM line_segment WHERE texts > 1").fetchall()
    return [text for (data,) in found for text in _joined_texts(bytes(data)).all().values()]


@given(
    st.lists(
        st.tuples(
            st.integers(1, 400), st.integers(0, 2), st.one_of(st.none(), st.integers(-300, -1)), st.sampled_from("hte")
        ),
        max_size=12,
    )
)
def test_any_line_comes_out_of_its_short_form(drawn: list[tuple[int, int, int | None, str]]) -> None:
    lines: dict[int, bytes] = {}
    entries: dict[int, tuple[int, bytes]] = {}
    number = 0
    for step, session, back, kind in drawn:
        number += step
        ids = {"h": name(number), "t": f"text {number}", "e": name(number + 10_000)}
        entry = said(number, None if back is None else max(1, number + back))
        lines[number] = encode_entry(replace(entry, id=ids[kind]))
        entries[number] = session, entry_key(name(number))
    short = shorten_heads(lines, entries)
    keys = {number: key for number, (_, key) in entries.items()}
    assert short.keys() == lines.keys()
    for number, line in short.items():
        assert (lengthen_head(number, line, keys) if line.startswith(SHORT_HEAD) else line) == lines[number]
        if line.startswith(SHORT_HEAD):
            assert entries[parent_of(number, line)][0] == entries[number][0]


def test_a_head_of_which_an_id_changed_is_damaged() -> None:
    lines = {number: encode_entry(said(number, number - 1)) for number in (4, 5)}
    keys = {number: entry_key(name(number)) for number in (4, 5)}
    short = shorten_heads(lines, {number: (1, key) for number, key in keys.items()})
    assert lengthen_head(5, short[5], keys) == lines[5]
    for changed in ({**keys, 4: entry_key(name(6))}, {**keys, 5: entry_key(name(6))}, {5: keys[5]}, {4: keys[4]}):
        with pytest.raises(DamagedBlob):
            lengthen_head(5, short[5], changed)


def test_lines_with_short_heads_tell_the_same(store: Store) -> None:
    kept: dict[str, list[Entry]] = {"one": [], "two": []}
    for number in range(2, 90):
        session = "one" if number % 3 else "two"
        before = number - 1 if number % 10 == 0 else number - (1 if number % 3 == 2 else 2 if number % 3 else 3)
        kept[session].append(said(number, max(1, before)))
        store.append(session, kept[session][-1:])
    seal(store)
    assert sum(text.startswith(SHORT_HEAD) for text in in_segments(store)) == 80
    # parents of the other session, and of an earlier segment
    assert 0 < sum(text[5:].startswith(b'"parent"') for text in in_segments(store)) < 20
    assert {session: list(store.entries(session)) for session in kept} == kept
    assert [store.entry("one", name(number)) for number in (50, 71)] == [
        next(one for one in kept["one"] if one.id == name(number)) for number in (50, 71)
    ]
    wanted = sorted(encode_entry(one) for listed in kept.values() for one in listed)
    assert sorted(line.line for line in store.journal_lines()) == wanted
    store.drop_sessions(["two"])
    assert list(store.entries("one")) == kept["one"]


def test_an_entry_that_is_replaced_leaves_its_parent_name_to_the_next(store: Store) -> None:
    entries = [said(number, number - 1) for number in range(1, 45)]
    store.append("one", entries)
    seal(store)
    place = next(place for place, one in store.news("one") if one == entries[9])
    store.put_entry("one", place, said(1_000, 9))
    found = list(store.entries("one"))
    assert found == [*entries[:9], said(1_000, 9), *entries[10:]]
    store.put_entry("one", place, entries[9])
    assert list(store.entries("one")) == entries


def test_a_changed_row_damages_the_lines_that_need_it_and_no_other(tmp_path: Path) -> None:
    entries = [said(number, number - 1) for number in range(1, 61)]
    with closing(SqliteUpkeep(tmp_path / "one.pagein")) as store:
        store.append("one", entries)
        seal(store)
        with closing(sqlite3.connect(tmp_path / "one.pagein")) as rows, rows:
            rows.execute("UPDATE journal SET id = ? WHERE number = 30", (entry_key(name(999)),))
        found = list(store.entries("one"))
        assert [number for number, one in enumerate(found, 1) if isinstance(one, UnreadableLine)] == [30, 31]
        assert [one for one in found if isinstance(one, Entry)] == [*entries[:29], *entries[31:]]


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=25, deadline=None)
@given(
    deeds=st.lists(
        st.tuples(st.sampled_from(["append", "append", "seal", "drop", "put"]), st.integers(0, 5)),
        max_size=14,
    )
)
def test_any_order_of_appending_sealing_replacing_and_removing(
    tmp_path_factory: pytest.TempPathFactory, deeds: list[tuple[str, int]]
) -> None:
    kept: dict[str, list[Entry]] = {}
    with closing(SqliteUpkeep(tmp_path_factory.mktemp("any") / "one.pagein")) as store:
        for turn, (deed, number) in enumerate(deeds, 1):
            session = f"s{number % 2}"
            mine = kept.setdefault(session, [])
            match deed:
                case "append":
                    some = [said(100 * turn + one, 100 * turn + one - 1 - number % 3) for one in range(1, 12)]
                    store.append(session, some)
                    mine += some
                case "seal":
                    seal(store)
                case "put" if mine:
                    which = number % len(mine)
                    place = next(place for place, one in store.news(session) if one == mine[which])
                    mine[which] = replace(said(turn), id=mine[which].id, parent=mine[which].parent)
                    store.put_entry(session, place, mine[which])
                case "drop":
                    store.drop_sessions([session])
                    mine.clear()
                case _:
                    pass
            assert {name: list(store.entries(name)) for name in kept} == kept
