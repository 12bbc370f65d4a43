"""The recall tools as a gateway offers them."""

from collections.abc import Iterator

import pytest
from tests.tools.recall_sessions import Room, long_text

from pagein import wiring
from pagein.engine.session import Session
from pagein.model.json_text import encode_json
from pagein.tools.brief import OFFERS, answer_call
from pagein.tools.peek import PEEK
from pagein.tools.search import SEARCH


@pytest.fixture
def session() -> Iterator[Session]:
    with wiring.open(":memory:") as engine:
        yield engine.session("one")


def test_their_words_are_few_and_name_nothing_that_the_tools_do_not_take() -> None:
    whole = {one.name: one for one in (PEEK, SEARCH)}
    for offer in OFFERS:
        assert set(offer.schema["properties"]) <= set(whole[offer.name].schema["properties"])
        assert offer.schema["required"] == whole[offer.name].schema["required"]
    assert sum(len(encode_json([one.name, one.description, one.schema])) for one in OFFERS) < 800


@pytest.mark.parametrize("name", ["notes.md", "0190-not-ours", "../etc/passwd"])
def test_only_what_left_the_window_is_looked_at(session: Session, name: str) -> None:
    result = answer_call(session, "peek", {"id": name}, "c")
    assert result.is_error
    assert "is no id of what was taken out of your context" in result.text


def test_an_id_may_be_quoted_as_models_do_and_says_why_it_is_not_there(session: Session) -> None:
    result = answer_call(session, "peek", {"id": ' "pg-01234567-89abcdef" '}, "c")
    assert result.is_error
    assert "not found" in result.text


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
