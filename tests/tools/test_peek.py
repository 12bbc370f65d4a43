"""`peek` through a session on a real store."""

import contextlib
import sqlite3
from contextlib import AbstractContextManager

import pytest
from tests.tools.recall_sessions import Room, ask, long_text

import pagein
from pagein.engine.log.journal import Fold
from pagein.engine.session import Session
from pagein.errors import HostError, StoreError
from pagein.model.entries import RecallEntry
from pagein.model.objects import EXPIRED, ObjectId
from pagein.policy.eviction.recall_warmth import COLD, Warmth, step
from pagein.store.upkeep.sqlite_upkeep import SqliteUpkeep


def warmth_of(session: Session) -> Warmth:
    fold: Fold[Warmth] = Fold(session.journal, COLD, step)
    return fold[session.leaf]


def test_what_was_paged_out_comes_back_exactly(room: Room) -> None:
    session = room.session()
    text = long_text("first") + "\ud800 half a pair, no end of line"
    [name] = room.paged(session, text)
    answer = ask(session, "peek", id=name, length=100_000)
    assert (answer.text, answer.is_error, answer.failure) == (text, False, None)
    assert answer.details == {"id": name, "offset": 0, "end": len(text), "total": len(text), "next": None}


def test_a_part_says_how_to_go_on_also_in_its_details(room: Room) -> None:
    session = room.session()
    [name] = room.paged(session, "0123456789" * 100)
    answer = ask(session, "peek", id=name, offset=10, length=5)
    assert answer.text == "01234\n[Showing 10\u201315 of 1000 chars. Use offset=15 to continue.]"
    assert answer.details["next"] == {"offset": 15}


def test_an_id_in_quotes_is_that_id(room: Room) -> None:
    session = room.session()
    [name] = room.paged(session, long_text("first"))
    assert ask(session, "peek", id=f' "`{name}`" \n').details["id"] == name


@pytest.mark.damages_store
def test_bytes_that_are_not_those_that_were_stored_are_never_shown(room: Room) -> None:
    session = room.session()
    [name] = room.paged(session, long_text("first"))
    with contextlib.closing(sqlite3.connect(room.store)) as database, database:
        changed = database.execute("UPDATE blob SET codec = 0, data = ?", (b"something else",)).rowcount
    assert changed > 0
    answer = ask(room.session(), "peek", id=name)
    assert answer.is_error
    assert answer.text.startswith(f"Object {name} cannot be had now: ")
    assert "something else" not in answer.text
    found = ask(room.session(), "search", pattern="first")
    assert found.text.startswith(f"No matches found.\n**{name}**: ")


def test_lines_can_be_asked_for_instead(room: Room) -> None:
    session = room.session()
    [name] = room.paged(session, long_text("x"))
    answer = ask(session, "peek", id=name, line=3, lines=2)
    assert answer.text.startswith("x line 3 of the output\nx line 4 of the output\n\n[Showing lines 3\u20134 of 41.")
    assert ask(session, "peek", id=name, lines=1).text.startswith("x line 1 ")
    both = ask(session, "peek", id=name, line=3, offset=7)
    assert (both.is_error, both.text) == (True, "Give offset and length, or line and lines, not both.")


def test_the_surroundings_of_a_quote_can_be_asked_for(room: Room) -> None:
    session = room.session()
    [name] = room.paged(session, long_text("x"))
    answer = ask(session, "peek", id=name, around="x line 9 of the output\nx line 10 of", lines=2)
    assert answer.text.startswith("x line 8 of the output\nx line 9 of the output\nx line 10 of the output\nx line 11 ")
    assert answer.details["next"] == {"line": 12}
    both = ask(session, "peek", id=name, around="x", line=3)
    assert (both.is_error, both.text) == (True, "Give around, or offset, length or line, not both.")
    assert ask(session, "peek", id=name, around=" ").text == "Missing required parameter: around"
    assert ask(session, "peek", id=name, around="y").text.startswith(f"[Object {name} does not contain this text.")


def test_another_process_recalls_it_too(room: Room) -> None:
    [name] = room.paged(room.session(), long_text("first"))
    assert ask(room.session("another"), "peek", id=name, length=10_000).text == long_text("first")


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ({}, "Missing required parameter: id"),
        ({"id": " "}, "Missing required parameter: id"),
        ({"id": 7}, "id: must be a text"),
        ({"id": "pg-x", "offset": "ten"}, "offset: must be a number"),
        ({"id": "pg-x", "length": float("nan")}, "length: must be a number"),
        ({"id": "pg-x", "line": True}, "line: must be a number"),
    ],
)
def test_wrong_arguments_are_answered_in_words(room: Room, arguments: dict[str, object], said: str) -> None:
    answer = ask(room.session(), "peek", "", **arguments)
    assert answer.is_error
    assert said in answer.text


@pytest.mark.damages_store
def test_what_is_gone_is_answered_by_why(room: Room) -> None:
    """Expired, never existed, of another workspace: each is answered differently (law 1)."""
    session = room.session()
    [name] = room.paged(session, long_text("first"))
    answers = {}
    answers["never"] = ask(session, "peek", id="pg-00000000-00000000").text
    answers["no id"] = ask(session, "peek", id="rlm-obj-1").text
    with pagein.open(room.store, workspace=room.folder.parent) as elsewhere:
        answers["foreign"] = ask(elsewhere.session("other"), "peek", id=name).text
    store = SqliteUpkeep(room.store)
    store.drop_objects([ObjectId.parse(name)])
    store.close()
    answers["expired"] = ask(session, "peek", id=name).text
    assert answers == {
        "never": "Object pg-00000000-00000000 not found: pg-00000000-00000000 never existed in this store",
        "no id": "Object rlm-obj-1 not found: not an object id: 'rlm-obj-1'; expected the form pg-01234567-89abcdef",
        "foreign": f"Object {name} not found: {name} belongs to another workspace; recall it from a session there",
        "expired": answers["expired"],
    }
    assert answers["expired"].startswith(f"Object {name} not found: {name} has expired: ")
    assert EXPIRED == "expired"


def test_a_recall_is_journaled_and_keeps_object_and_result_warm(room: Room) -> None:
    session = room.session()
    [name] = room.paged(session, long_text("first"))
    ask(session, "peek", "toolu_1", id=name)
    assert warmth_of(session).is_warm(name)
    assert warmth_of(session).is_call_warm("toolu_1")
    # a fresh process finds it in the journal
    again = room.session()
    assert warmth_of(again).is_warm(name)
    for _ in range(3):
        session.advance()
    assert not warmth_of(session).is_warm(name)


def test_a_recall_on_one_branch_warms_nothing_on_another(room: Room) -> None:
    session = room.session()
    [name] = room.paged(session, long_text("first"))
    before = session.leaf
    ask(session, "peek", id=name)
    assert warmth_of(session).is_warm(name)
    session.move(before)
    assert not warmth_of(session).is_warm(name)


def test_an_error_warms_nothing(room: Room) -> None:
    session = room.session()
    ask(session, "peek", id="pg-00000000-00000000")
    assert warmth_of(session).objects == {}


def test_what_the_library_recalls_counts_like_a_peek(room: Room) -> None:
    session = room.session()
    [name] = room.paged(session, long_text("first"))
    assert session.recall(name) == long_text("first")
    assert any(isinstance(entry.body, RecallEntry) for entry in session.journal)
    assert session.recalls.holdings.recalls == 1


def test_a_store_that_fails_while_journaling_still_answers_and_says_so(
    room: Room, monkeypatch: pytest.MonkeyPatch
) -> None:
    session = room.session()
    [name] = room.paged(session, long_text("first"))
    monkeypatch.setattr(session._log, "turn", _busy)
    answer = ask(session, "peek", id=name)
    assert answer.text.startswith("first line 1")
    assert answer.failure == "StoreError: another writer was not done in time"
    assert warmth_of(session).is_warm(name)


def _busy() -> AbstractContextManager[None]:
    """A turn of the session, while somebody else writes to its store for longer than anyone waits."""
    raise StoreError("another writer was not done in time")


def test_a_session_that_stands_alone_says_that_it_cannot_recall() -> None:
    from pagein.engine.log.pageout import Pager
    from pagein.engine.session_parts import SessionParts
    from pagein.policy.eviction.residency import Residency
    from pagein.store.memory.memory_store import MemoryStore
    from pagein.wiring import default_counter

    alone = Session("alone", SessionParts(Pager(MemoryStore(), ""), default_counter(), Residency()))
    with pytest.raises(HostError):
        _ = alone.recalls
    assert ask(alone, "peek", id="pg-00000000-00000000").is_error
    assert ask(alone, "search", pattern="x").is_error
    assert ask(alone, "stats").is_error
    assert ask(alone, "ingest", paths=["x"]).is_error
