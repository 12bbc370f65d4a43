"""`search` through a session on a real store: exact texts, limits, pages."""

import threading

import pytest
from tests.store.search.remembered_sessions import Remembered
from tests.tools.recall_sessions import Room, ask, long_text

from pagein.engine.recall.object_search import Lookup
from pagein.engine.recall.recall_resources import USUAL
from pagein.errors import AbortedOperation
from pagein.model.chats import UNANSWERED
from pagein.model.messages import Message, ToolCall
from pagein.model.versions import Draft
from pagein.model.writes import Write, Written
from pagein.store.random_ids import RandomIds
from pagein.store.sqlite.sqlite_store import SqliteStore


def test_a_match_is_told_with_id_offset_and_a_hundred_characters_around(room: Room) -> None:
    session = room.session()
    text = "a" * 300 + "needle" + "b" * 300
    [name] = room.paged(session, text)
    answer = ask(session, "search", pattern="needle")
    around = "a" * 100 + "needle" + "b" * 100
    assert answer.text == f"Found 1 match(es):\n\n**{name}** [offset 300]:\n  ...{around}..."
    assert answer.details["matches"] == [{"id": name, "offset": 300, "length": 6}]
    assert ask(session, "peek", id=name, offset=300, length=6).text.startswith("needle\n[Showing 300")


def test_no_match_is_said_in_three_words(room: Room) -> None:
    session = room.session()
    room.paged(session, long_text("first"))
    answer = ask(session, "search", pattern="nowhere")
    assert (answer.text, answer.is_error, answer.details["next"]) == ("No matches found.", False, None)


def test_the_newest_object_comes_first(room: Room) -> None:
    session = room.session()
    old, new = room.paged(session, long_text("needle old", 1) + "x" * 400, long_text("needle new", 1) + "y" * 400)
    matches = ask(session, "search", pattern="needle").details["matches"]
    assert isinstance(matches, list)
    assert [match["id"] for match in matches] == [new, old]


def test_expressions_have_flags_and_bad_ones_are_texts(room: Room) -> None:
    session = room.session()
    room.paged(session, "One NEEDLE and (?=x)\n" + "x" * 400)
    assert ask(session, "search", pattern="/ne+dle/i").text.startswith("Found 1 match(es):")
    assert ask(session, "search", pattern="/ne+dle/").text == "No matches found."
    answer = ask(session, "search", pattern="/(?=x)/")
    assert "[Searched for the text itself, not for an expression: the pattern uses lookahead" in answer.text
    assert answer.text.startswith("No matches found.\n[")


def test_scope_restricts_and_what_cannot_be_searched_is_told(room: Room) -> None:
    session = room.session()
    one, two = room.paged(session, "needle" + "x" * 400, "needle" + "y" * 400)
    scoped = ask(session, "search", pattern="needle", scope=[one, "pg-00000000-00000000"])
    assert f"**{one}**" in scoped.text
    assert two not in scoped.text
    assert scoped.text.startswith("Found 1 match(es):")
    assert "**pg-00000000-00000000**: pg-00000000-00000000 never existed in this store" in scoped.text
    assert ask(session, "search", pattern="needle", scope=two).text.startswith("Found 1 match(es):")
    assert ask(session, "search", pattern="needle", scope=[]).text == "No matches found."


def test_objects_of_other_branches_are_not_the_sessions_own(room: Room) -> None:
    session = room.session()
    room.paged(session, "alpha" + "x" * 400)
    fork = session.fork("fork")
    room.paged(session, "omega" + "y" * 400)
    assert ask(fork, "search", pattern="alpha").text.startswith("Found 1")
    assert ask(fork, "search", pattern="omega").text == "No matches found."


def test_fifty_matches_in_all_and_the_rest_by_pages(room: Room) -> None:
    session = room.session()
    names = room.paged(session, "needle " * 90, "needle  " * 90)
    first = ask(session, "search", pattern="needle")
    assert first.text.startswith(f"Found {USUAL.matches} match(es):")
    assert first.text.endswith("\n[Search results truncated. Use scope to narrow search.]\n[Use skip=50 to continue.]")
    seen: list[tuple[str, int]] = []
    skip = 0
    while True:
        page = ask(session, "search", pattern="needle", skip=skip)
        matches = page.details["matches"]
        assert isinstance(matches, list)
        seen += [(match["id"], match["offset"]) for match in matches]
        following = page.details["next"]
        if not isinstance(following, dict):
            break
        assert f"[Use skip={following['skip']} to continue.]" in page.text
        skip = following["skip"]
    expected = [(names[1], 8 * n) for n in range(90)] + [(names[0], 7 * n) for n in range(90)]
    assert seen == expected


def test_one_object_gives_a_hundred_matches_at_most(room: Room) -> None:
    session = room.session()
    [name] = room.paged(session, "needle " * 300)
    found = session.recalls.search(Lookup("needle", skip=60))
    assert len(found.hits) == USUAL.per_object - 60
    assert found.hits[-1].offset == 7 * (USUAL.per_object - 1)
    assert not found.more
    assert name == found.hits[0].object_id


def test_matches_that_do_not_fit_an_answer_come_on_the_next_page(room: Room) -> None:
    session = room.session()
    # each match is shown with two hundred characters of four bytes around it
    room.paged(session, ("\U0001f600" * 200 + "needle") * 60)
    answer = ask(session, "search", pattern="/needle|\U0001f600{150}/")
    assert len(answer.text.encode()) <= 50 * 1024
    following = answer.details["next"]
    assert isinstance(following, dict)
    matches = answer.details["matches"]
    assert isinstance(matches, list)
    assert following["skip"] == len(matches) < USUAL.matches


def test_what_a_search_found_is_warm_and_a_miss_warms_nothing(room: Room) -> None:
    session = room.session()
    name, other = room.paged(session, "needle" + "x" * 400, long_text("other"))
    ask(session, "search", "toolu_2", pattern="nowhere")
    assert session.recalls.holdings.recalls == 0
    ask(session, "search", "toolu_2", pattern="needle")
    assert (session.recalls.holdings.recalls, session.recalls.holdings.searches) == (1, 1)
    from tests.tools.test_peek import warmth_of

    assert warmth_of(session).is_warm(name)
    assert not warmth_of(session).is_warm(other)
    assert warmth_of(session).is_call_warm("toolu_2")


def test_a_search_ends_when_its_time_is_up_and_says_so(room: Room, monkeypatch: pytest.MonkeyPatch) -> None:
    session = room.session()
    room.paged(session, *(f"needle {n}" + "x" * 400 for n in range(5)))
    times = iter(range(0, 1000, 2))
    monkeypatch.setattr(session.recalls, "_clock", lambda: float(next(times)))
    answer = ask(session, "search", pattern="needle")
    assert "[Regex timed out after 5000ms: 2 of 5 objects searched. Use scope to narrow search.]" in answer.text


def test_a_search_that_is_called_off_stops(room: Room) -> None:
    session = room.session()
    room.paged(session, long_text("first"))
    signal = threading.Event()
    signal.set()
    with pytest.raises(AbortedOperation):
        session.recalls.search(Lookup("first"), signal=signal)


def test_everything_stored_is_searched_on_request(room: Room) -> None:
    session = room.session()
    room.paged(session, "needle" + "x" * 400)
    store = SqliteStore(room.store)
    draft = Draft(id=RandomIds()(1.0), type="note", content="a note with a needle in it", nickname="a-note")
    written = store.write(Write("r", draft, 1.0))
    asking = ToolCall("c-search", "mcp__pagein__search", '{"pattern":"needle"}')  # the search itself is no match
    Remembered(store, "0199").say("please", Message("assistant", (asking,), stop=UNANSWERED))
    store.close()
    assert isinstance(written, Written)
    assert "a note with" not in ask(session, "search", pattern="needle").text
    answer = ask(session, "search", pattern="needle", everything=True)
    assert answer.text.startswith("Found 2 match(es):")  # the evicted result, which is its tool call too, and the note
    told = (
        f"**{written.version.id}@1** [note, line 1, a-note, 1970-01-01 00:00 UTC]:\n  ...a note with a needle in it..."
    )
    assert told in answer.text
    assert ask(session, "peek", id=written.version.id).text == "a note with a needle in it"
    assert ask(session, "peek", id="a-note").text == "a note with a needle in it"


def test_wrong_arguments_are_answered_in_words(room: Room) -> None:
    session = room.session()
    assert ask(session, "search").text == "Missing required parameter: pattern"
    assert "scope: must be a list of texts" in ask(session, "search", pattern="x", scope=[1]).text
    assert ask(session, "search", pattern="x" * 20_000).is_error
