"""What was known in an earlier session, with two calls: a search of everything, and a peek at the turns of a chat."""

import pytest
from tests.store.search.remembered_sessions import Remembered, answered
from tests.tools.recall_sessions import Room, long_text

from pagein.engine.reads.session_reads import ReadResult
from pagein.engine.session import Session
from pagein.memory.indexer import Indexer
from pagein.model.versions import Draft
from pagein.model.writes import Query
from pagein.store.sqlite.sqlite_store import SqliteStore
from pagein.store.upkeep.sqlite_upkeep import SqliteUpkeep
from pagein.tools.calls import Call
from pagein.tools.catalogue import answer

TUESDAY = 1_700_000_000.0  # 2023-11-14


@pytest.fixture
def earlier(room: Room) -> Remembered:
    """An earlier session, in the store of the room."""
    store = SqliteStore(room.store)
    one = Remembered(store, "0199-login", at=TUESDAY)
    one.say("why does the login fail?", answered("The token expires after an hour."))
    one.go_on(one.call("toolu_1", "Bash", {"command": "grep -n expires auth.py"}, "3: expires = 3600", place=1))
    one.say("make it a day", answered("Done: a token expires after a day now."))
    one.file(1, "/w/auth.py", "expires = 86400\n")
    later = Remembered(store, "0200-other", harness="codex", number=2, at=TUESDAY + 86_400 * 7)
    later.say("what expires next?", answered("nothing"))
    store.close()
    return one


def ask(to: Session, tool: str, /, **arguments: object) -> ReadResult:
    return answer(to, tool, Call(arguments))


@pytest.mark.usefixtures("earlier")
def test_two_calls_tell_what_an_earlier_session_knew(room: Room) -> None:
    session = room.session()
    found = ask(session, "search", pattern="token expires", everything=True, session="0199", since="2023-11-14")
    assert found.text.startswith("Found 2 match(es):")
    matches = found.details["matches"]
    assert isinstance(matches, list)
    first, second = matches
    assert (first["turn"], second["turn"]) == (2, 1)
    assert f"**{first['id']}** [turns=2, step 1, assistant, session 0199-login, 2023-11-14 22:13 UTC]:" in found.text
    told = ask(session, "peek", id=second["id"], turns="1-1")
    assert told.text == (
        "--- turn 1\n--- user\nwhy does the login fail?\n--- assistant\nThe token expires after an hour.\n"
        "--- toolcall [ref:toolcall/toolu_1] tool=Bash args=\"{'command': 'grep -n expires auth.py'}\" status=ok"
    )
    both = ask(session, "peek", id=first["id"], turns="1-2")
    assert "--- turn 2\n--- user\nmake it a day" in both.text
    assert ask(session, "peek", id=first["id"]).text == both.text


def test_each_filter_restricts_a_search_of_everything(room: Room, earlier: Remembered) -> None:
    session = room.session()
    room.paged(session, long_text("expires"))

    def types(**given: object) -> list[str]:
        matches = ask(session, "search", pattern="expires", **given).details["matches"]
        return [match.get("type", "own") for match in matches]  # type: ignore[attr-defined]

    assert set(types()) == {"own"}
    assert set(types(agent="codex")) == {"user"}
    assert set(types(agent="claude-code")) == {"chat", "toolcall", "file"}
    assert types(type="file", since="2023-11-01", until="2023-12-01") == ["file"]
    assert types(path="auth.py") == ["file"]
    assert set(types(chat=earlier.chat)) == {"chat", "toolcall", "file"}
    assert types(session="0199", type="toolcall") == ["toolcall", "toolcall"]
    assert types(since="2024-01-01", session="0199") == []


@pytest.mark.usefixtures("earlier")
def test_own_objects_come_before_everything_else(room: Room) -> None:
    session = room.session()
    [name] = room.paged(session, "it expires" + "x" * 400)
    matches = ask(session, "search", pattern="expires", everything=True).details["matches"]
    assert isinstance(matches, list)
    assert matches[0]["id"] == name
    assert {match.get("session") for match in matches[1:]} == {"0199-login", "0200-other"}


def test_an_evicted_result_and_its_call_are_one_match(room: Room) -> None:
    session = room.session()
    [name] = room.paged(session, "it expires\nand expires" + "x" * 400)
    store = SqliteUpkeep(room.store)
    Indexer(store).catch_up()
    assert any(
        "it expires" in (store.content(one) or "") for one in store.objects(Query(types=frozenset({"toolcall"})))
    )
    store.close()
    for filters in ({"everything": True}, {"session": "main", "type": "toolcall"}):
        matches = ask(room.session(), "search", pattern="expires", **filters).details["matches"]
        assert isinstance(matches, list)
        assert len(matches) == 2
        assert len({match["offset"] for match in matches}) == 2
        assert matches[0]["id"] == name or filters != {"everything": True}


def test_pages_of_everything_show_each_match_once(room: Room) -> None:
    store = SqliteStore(room.store)
    one = Remembered(store, "long", at=TUESDAY)
    for number in range(70):
        one.say(f"needle {number}", answered(f"a needle for {number}"))
    store.close()
    session = room.session()
    seen: list[str] = []
    skip = 0
    while True:
        page = ask(session, "search", pattern="needle", everything=True, skip=skip)
        matches = page.details["matches"]
        assert isinstance(matches, list)
        seen += [f"{match['id']} {match['offset']}" for match in matches]
        following = page.details["next"]
        if not isinstance(following, dict):
            break
        skip = following["skip"]
    # what the user said is in an object of its own and in the chat, and told once on each page
    assert len(seen) == len(set(seen))
    assert 140 <= len(seen) <= 142


def test_versions_and_turns_that_do_not_exist_are_told(room: Room, earlier: Remembered) -> None:
    session = room.session()
    chat = earlier.chat
    assert "has no version 99; its versions are 1 to" in ask(session, "peek", id=f"{chat}@99").text
    assert "the chat has the turns 1 to 2" in ask(session, "peek", id=chat, turns=7).text
    assert "a toolcall has no turns" in ask(session, "peek", id="toolu_1", turns="1").text
    assert "no stored chat has this id" in ask(session, "peek", id="pg-01234567-89abcdef", turns="1").text
    assert "turns: must be a number from 1 on" in ask(session, "peek", id=chat, turns="2-1").text


def test_an_older_version_is_shown_though_the_object_is_gone(room: Room) -> None:
    store = SqliteStore(room.store)
    one = Remembered(store, "s")
    one.say("go", answered("ok"))
    made = one.file(1, "/w/a.py", "a needle\n")
    one.put(Draft(id=made.id, type="file", deleted=True))
    store.close()
    session = room.session()
    assert ask(session, "peek", id=made.id).is_error
    assert ask(session, "peek", id=f"{made.id}@1").text == "a needle\n"


@pytest.mark.usefixtures("earlier")
def test_a_wrong_filter_is_told_to_the_model(room: Room) -> None:
    session = room.session()
    assert "there are sessions of: claude-code, codex" in ask(session, "search", pattern="x", agent="gemini").text
    assert "several sessions begin with '0'" in ask(session, "search", pattern="x", session="0").text
    assert "not a time: 'last Tuesday'" in ask(session, "search", pattern="x", since="last Tuesday").text
    assert "session: must be a text" in ask(session, "search", pattern="x", session=3).text
