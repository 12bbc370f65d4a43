"""The recall tools as a gateway offers them."""

import json
from collections.abc import Iterator

import pytest
from tests.store.search.remembered_sessions import Remembered, answered
from tests.tools.recall_sessions import Room, long_text

from pagein import wiring
from pagein.engine.session import Session
from pagein.model.json_text import encode_json
from pagein.store.sqlite.sqlite_store import SqliteStore
from pagein.tools.brief import OFFERS, OFFERS_OF_EVERYTHING, answer_call, definitions, offers
from pagein.tools.note_guidance import NOTES
from pagein.tools.peek import PEEK
from pagein.tools.search import SEARCH


@pytest.fixture
def session() -> Iterator[Session]:
    with wiring.open(":memory:") as engine:
        yield engine.session("one")


def test_their_words_are_few_and_name_nothing_that_the_tools_do_not_take() -> None:
    whole = {one.name: one for one in (PEEK, SEARCH)}
    for offer in (*OFFERS, *OFFERS_OF_EVERYTHING):
        assert set(offer.schema["properties"]) <= set(whole[offer.name].schema["properties"])
        assert offer.schema["required"] == whole[offer.name].schema["required"]
    assert sum(len(encode_json([one.name, one.description, one.schema])) for one in OFFERS) < 800
    assert sum(len(encode_json([one.name, one.description, one.schema])) for one in OFFERS_OF_EVERYTHING) < 1300
    assert (
        definitions("anthropic", everything=True)
        != definitions("anthropic")
        == definitions("anthropic", everything=False)
    )
    assert (offers(everything=True), offers(everything=False)) == (OFFERS_OF_EVERYTHING, OFFERS)


def test_what_they_say_of_notes_is_all_that_it_costs() -> None:
    plain, noting = (
        json.dumps([one.description for one in offers(everything=False, notes=on)]) for on in (False, True)
    )
    assert noting == plain.replace("for peek.", f"for peek. {json.dumps(NOTES)[1:-1]}")
    assert wiring.default_counter().count(NOTES) < 115


@pytest.mark.parametrize("name", ["notes.md", "0190-not-ours", "../etc/passwd"])
def test_only_what_left_the_window_is_looked_at(session: Session, name: str) -> None:
    result = answer_call(session, "peek", {"id": name}, "c")
    assert result.is_error
    assert "is no id of what was taken out of your context" in result.text


def test_an_id_may_be_quoted_as_models_do_and_says_why_it_is_not_there(session: Session) -> None:
    result = answer_call(session, "peek", {"id": ' "pg-01234567-89abcdef" '}, "c")
    assert result.is_error
    assert "not found" in result.text


def test_a_model_is_told_how_to_recall_what_an_edit_quotes(room: Room) -> None:
    """Each offer names `around`; its answer shows the text with the lines around it, wherever it stands."""
    session = room.session()
    [name] = room.paged(session, long_text("far", 400))
    for offer in (OFFERS[0], OFFERS_OF_EVERYTHING[0]):
        assert "around" in offer.schema["properties"]
        assert "around" in offer.description
    quote = "far line 300 of the output"
    assert quote not in answer_call(session, "peek", {"id": name}, "c").text
    shown = answer_call(session, "peek", {"id": name, "around": quote}, "c").text
    assert shown.startswith("far line 280 of the output\n")
    assert f"{quote}\n" in shown


def test_a_session_that_began_with_other_arguments_may_use_them(room: Room) -> None:
    session = room.session()
    [name] = room.paged(session, long_text("old"))
    assert answer_call(session, "peek", {"id": name, "offset": 4, "length": 6}, "c").text.startswith("line 1\n")


# --- beyond the session: for the owner of the store to allow ---

_BEYOND: list[tuple[str, dict[str, object]]] = [
    ("search", {"pattern": "needle", "everything": True}),
    ("search", {"pattern": "needle", "session": "earlier"}),
    ("search", {"pattern": "needle", "agent": "claude-code"}),
    ("search", {"pattern": "needle", "since": "2020-01-01"}),
    ("search", {"pattern": "needle", "until": "2100-01-01"}),
    ("search", {"pattern": "needle", "type": "user"}),
    ("search", {"pattern": "needle", "path": "*.py"}),
]


def earlier_session(room: Room) -> Remembered:
    store = SqliteStore(room.store)
    one = Remembered(store, "earlier")
    one.say("a needle", answered("found it"))
    one.file(1, "/w/a.py", "needle = 1\n")
    store.close()
    return one


@pytest.mark.parametrize(("tool", "arguments"), _BEYOND)
def test_by_default_no_argument_leads_beyond_the_session(room: Room, tool: str, arguments: dict[str, object]) -> None:
    one = earlier_session(room)
    session = room.session()
    assert answer_call(session, tool, {**arguments, "chat": one.chat}, "c").text == "No matches found."
    assert answer_call(session, tool, {**arguments, "scope": [one.chat]}, "c").is_error
    for name in (one.chat, f"{one.chat}@1", "earlier"):
        assert "is no id of what was taken out" in answer_call(session, "peek", {"id": name, "turns": "1"}, "c").text


@pytest.mark.parametrize(("tool", "arguments"), _BEYOND)
def test_where_it_is_allowed_a_search_reaches_everything_stored(
    room: Room, tool: str, arguments: dict[str, object]
) -> None:
    earlier_session(room)
    assert answer_call(room.session(), tool, arguments, "c", everything=True).text.startswith("Found ")


def test_where_it_is_allowed_a_peek_shows_the_turns_of_an_earlier_chat(room: Room) -> None:
    one = earlier_session(room)
    session = room.session()
    told = answer_call(session, "peek", {"id": f"{one.chat}@1", "turns": "1"}, "c", everything=True)
    assert told.text == "--- turn 1\n--- user\na needle\n--- assistant\nfound it"
    [mine] = room.paged(session, long_text("mine"))
    assert "mine line 1 " in answer_call(session, "peek", {"id": mine}, "c", everything=True).text


@pytest.mark.parametrize("elsewhere", ["another session", "another branch"])
def test_what_another_session_holds_is_answered_as_what_never_was(room: Room, elsewhere: str) -> None:
    session = room.session()
    room.paged(session, long_text("mine"))
    other = room.session("two") if elsewhere == "another session" else session.fork("two")
    secret, unknown = room.paged(other, long_text("secret"))[0], "pg-01234567-89abcdef"
    calls: list[tuple[str, str, dict[str, object]]] = [("peek", "id", {}), ("search", "scope", {"pattern": "secret"})]
    for tool, where, rest in calls:
        assert "secret" in answer_call(other, tool, {where: secret, **rest}, "c").text
        told, never = (answer_call(session, tool, {where: name, **rest}, "c") for name in (secret, unknown))
        assert told.is_error
        assert told.text.replace(secret, unknown) == never.text
        assert "not found" in never.text


def test_a_search_in_things_that_were_never_in_the_window_is_not_to_be_had(session: Session) -> None:
    assert answer_call(session, "search", {"pattern": "x", "scope": ["notes.md"]}, "c").is_error


def test_a_fork_looks_at_what_left_before_it(room: Room) -> None:
    session = room.session()
    [name] = room.paged(session, long_text("early"))
    assert "early" in answer_call(session.fork("two"), "peek", {"id": name}, "c").text


def test_a_search_beyond_the_session_is_not_to_be_had(session: Session) -> None:
    result = answer_call(session, "search", {"pattern": "x", "everything": True}, "c")
    assert result.text == "No matches found."


def test_wrong_arguments_and_unknown_tools_are_told_to_the_model(session: Session) -> None:
    assert answer_call(session, "peek", {"id": 3}, "c").is_error
    assert answer_call(session, "search", {}, "c").is_error
    assert answer_call(session, "ingest", {"paths": ["."]}, "c").is_error
