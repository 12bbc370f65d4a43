"""A session with bridges in its journal continues unchanged once its client has sent the lost messages again.

A client of the gateway says the whole conversation with each request, so the first one after a repair is enough.
"""

import json
import shutil
import sqlite3
from dataclasses import replace
from pathlib import Path

import pytest
from tests.engine.log.test_withheld_requests import EAGER, WORK, body

import pagein
from pagein.engine.log import snapshots
from pagein.engine.prepared_request import PreparedRequest
from pagein.errors import StoreError
from pagein.model.entries import Entry, EpochEntry, MessageEntry, NoteEntry, RequestSent, is_bridge
from pagein.model.journal_notes import BrokenNote
from pagein.providers.validity import Api
from pagein.store.sqlite.sqlite_store import SqliteStore
from pagein.store.upkeep.sqlite_upkeep import SqliteUpkeep
from pagein.upkeep import check_store, repair_file

pytestmark = pytest.mark.damages_store

BEFORE, AFTER = 8, 3


def asked(turns: int, api: Api) -> bytes:
    fields = json.loads(body([WORK] * turns, api))
    if api == "anthropic":
        fields["messages"][-1]["content"][-1]["cache_control"] = {"type": "ephemeral"}
    return json.dumps(fields).encode()


def went_on(store: Path, turns: range, api: Api = "anthropic") -> list[PreparedRequest]:
    found = []
    with pagein.open(store, settings=EAGER) as engine:
        for turn in turns:
            prepared = engine.prepare(asked(turn, api), api, at=10.0 * turn, hint="main")
            assert engine.observe(prepared, {"usage": {"input_tokens": 10, "output_tokens": 5}}).failure is None
            found.append(prepared)
    return found


def journal(store: Path) -> list[tuple[int, Entry]]:
    upkeep = SqliteUpkeep(store)
    found = [(place, entry) for place, entry in upkeep.news("main") if isinstance(entry, Entry)]
    upkeep.close()
    return found


def lose(store: Path, *places: int) -> None:
    connection = sqlite3.connect(store)
    connection.executemany("DELETE FROM journal WHERE number = ?", [(place,) for place in places])
    connection.commit()
    connection.close()
    repair_file(store)


def lived(folder: Path, api: Api) -> tuple[Path, list[bytes]]:
    """A store after some turns, and what goes out in the next where nothing is lost."""
    store, other = folder / "one.pagein", folder / "whole.pagein"
    went_on(store, range(1, BEFORE), api)
    shutil.copy(store, other)
    return store, [one.body for one in went_on(other, range(BEFORE, BEFORE + AFTER), api)]


def undated(store: Path) -> dict[int, Entry]:
    """The journal without times: a message that returns has the time of the request that brought it back."""
    return {place: replace(entry, at=None) for place, entry in journal(store)}


@pytest.mark.parametrize("api", ["anthropic", "openai_chat", "openai_responses"])
def test_lost_messages_return_with_the_next_request(tmp_path: Path, api: Api) -> None:
    store, expected = lived(tmp_path, api)
    said = [place for place, entry in journal(store) if isinstance(entry.body, MessageEntry)]
    lost = [
        *((place,) for place in said[: -1 : 1 if api == "anthropic" else 5]),
        (said[0], said[4], said[7]),
        tuple(said[2:-1:3]),
    ]
    for number, places in enumerate(lost):
        copy = Path(shutil.copy(store, tmp_path / f"{number}.pagein"))
        before = undated(copy)
        lose(copy, *places)
        assert sum(is_bridge(entry) for _, entry in journal(copy)) == len(places)
        after = went_on(copy, range(BEFORE, BEFORE + AFTER), api)
        assert [one.body for one in after] == expected
        assert {one.failure for one in after} == {None}
        assert {place: entry for place, entry in undated(copy).items() if place in before} == before
        upkeep = SqliteUpkeep(copy)
        assert check_store(upkeep).is_clean
        upkeep.close()


@pytest.mark.parametrize("width", [2, 12])
def test_messages_lost_in_a_row_are_journaled_again_behind_the_hole(tmp_path: Path, width: int) -> None:
    """A page holds many entries: of what is lost one behind the other only the last is known by name."""
    store, _ = lived(tmp_path, "anthropic")
    entries = journal(store)
    for start in range(0, len(entries) - width, 9):
        copy = Path(shutil.copy(store, tmp_path / f"{start}.pagein"))
        lose(copy, *(place for place, _ in entries[start : start + width]))
        after = went_on(copy, range(BEFORE, BEFORE + AFTER))
        assert [(one.failure, one.replaced, one.changed_by_client) for one in after] == [
            (None, BEFORE - 1 + turn, ()) for turn in range(AFTER)
        ]
        again = went_on(copy, range(BEFORE + AFTER, BEFORE + AFTER + 2))
        assert [(one.placed, one.failure) for one in again] == [("continued", None)] * 2
        assert again[-1].shared == again[-1].messages - 2
        upkeep = SqliteUpkeep(copy)
        assert {one.kind for one in check_store(upkeep).findings} <= {"entry"}
        upkeep.close()


def test_another_process_knows_what_is_said_anew(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store, _ = lived(tmp_path, "anthropic")
    entries = journal(store)
    lose(store, *(place for place, _ in entries[9:21]))
    monkeypatch.setattr(snapshots, "EVERY", 2)
    with pagein.open(store, settings=EAGER) as late:
        late.session("main")
        went_on(store, range(BEFORE, BEFORE + 1))  # leaves a snapshot
        found = went_on(store, range(BEFORE + 1, BEFORE + 2))
        turn = BEFORE + 2
        last = late.prepare(asked(turn, "anthropic"), "anthropic", at=10.0 * turn, hint="main")
    assert [(one.placed, one.failure, one.messages - one.shared) for one in (*found, last)] == [
        ("continued", None, 2),
        ("continued", None, 2),
    ]
    told = [entry.body for _, entry in journal(store) if isinstance(entry.body, NoteEntry)]
    assert [one.data for one in told if isinstance(one.note, BrokenNote)] == ['{"messages": 10}']


@pytest.mark.parametrize("kind", [NoteEntry, EpochEntry, RequestSent])
def test_a_lost_entry_that_is_no_message_stays_a_bridge_and_the_session_continues(tmp_path: Path, kind: type) -> None:
    store, _ = lived(tmp_path, "anthropic")
    for place in [place for place, entry in journal(store) if isinstance(entry.body, kind)][:-1:3]:
        copy = Path(shutil.copy(store, tmp_path / f"{place}.pagein"))
        lose(copy, place)
        after = went_on(copy, range(BEFORE, BEFORE + AFTER))
        assert {one.failure for one in after} == {None}
        assert after[-1].replaced >= BEFORE - 1
        assert [is_bridge(entry) for at, entry in journal(copy) if at == place] == [True]


def test_a_session_that_another_process_mended_goes_on(tmp_path: Path) -> None:
    store, expected = lived(tmp_path, "anthropic")
    lose(store, journal(store)[6][0])
    with pagein.open(store, settings=EAGER) as late:
        late.session("main")
        assert [one.body for one in went_on(store, range(BEFORE, BEFORE + AFTER - 1))] == expected[:-1]
        turn = BEFORE + AFTER - 1
        assert late.prepare(asked(turn, "anthropic"), "anthropic", at=10.0 * turn, hint="main").body == expected[-1]


def test_a_snapshot_knows_of_bridges(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One is taken while the client says less than the whole: from there on another process mends what is said again."""
    store, _ = lived(tmp_path, "anthropic")
    said = [place for place, entry in journal(store) if isinstance(entry.body, MessageEntry)]
    lose(store, said[8])
    monkeypatch.setattr(snapshots, "EVERY", 2)
    went_on(store, range(2, 3))  # goes back to where nothing was lost
    went_on(store, range(BEFORE, BEFORE + 1))
    assert not any(is_bridge(entry) for _, entry in journal(store))


def test_where_the_store_refuses_it_is_tried_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store, _ = lived(tmp_path, "anthropic")
    lose(store, journal(store)[6][0])
    with pagein.open(store, settings=EAGER) as engine:

        def refused(*_: object) -> int:
            raise StoreError("the disk is full")

        with monkeypatch.context() as patched:
            patched.setattr(SqliteStore, "append", refused)
            failed = engine.prepare(asked(BEFORE, "anthropic"), "anthropic", at=10.0 * BEFORE, hint="main")
        assert "full" in str(failed.failure)
        turn = BEFORE + 1
        done = engine.prepare(asked(turn, "anthropic"), "anthropic", at=10.0 * turn, hint="main")
        assert (done.failure, done.replaced) == (None, turn - 1)
    assert not any(is_bridge(entry) for _, entry in journal(store))
