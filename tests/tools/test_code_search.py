"""`search` with search_type="code", and what every search tells the guards."""

from typing import Any

import pytest
from tests.tools.recall_sessions import Room, ask, long_text

from pagein.engine.session import Session
from pagein.model.entries import NoteEntry
from pagein.model.guard_notes import SearchMeasureNote
from pagein.policy.guards.judgement import ReadAsk
from pagein.tools.brief import answer_call
from pagein.tools.search import SEARCH


def noted(session: Session) -> list[SearchMeasureNote]:
    bodies = (entry.body for entry in session.journal.branch(session.leaf))
    return [body.note for body in bodies if isinstance(body, NoteEntry) and isinstance(body.note, SearchMeasureNote)]


def stabilization(details: Any) -> dict[str, Any]:  # noqa: ANN401 - JSON
    told = details["meta"]["stabilization"]
    assert isinstance(told, dict)
    return told


def rows(details: Any, name: str) -> list[dict[str, Any]]:  # noqa: ANN401 - JSON
    found = details[name]
    assert isinstance(found, list)
    return found


def test_hits_are_listed_by_file_with_calls_that_read_them(room: Room) -> None:
    room.put("src/login.py", "import os\n" * 30 + "def login(user):\n    return user\n")
    room.put("src/db.py", "login = None\n")
    session = room.session()
    told = ask(session, "search", pattern="login", search_type="code")
    assert told.text == (
        "Found 2 hits in 2 of 2 files, by " + str(told.details["engine"]) + ":\n"
        "\nsrc/login.py (1)\n  31: def login(user):\n\nsrc/db.py (1)\n  1: login = None"
    )
    [first, second] = rows(told.details, "hits")
    assert (first["path"], first["line"], first["column"], first["text"]) == ("src/login.py", 31, 5, "def login(user):")
    assert first["candidate_id"].startswith("cand_") != second["candidate_id"]
    calls = stabilization(told.details)["next_calls"]
    arguments = {"mode": "snippet", "target": "src/login.py", "start_line": 21, "end_line": 32}
    assert calls[0] == {"tool": "read", "arguments": arguments}
    assert stabilization(told.details)["suggested_next_action"] == "read"
    # the same question, the same answer
    assert ask(session, "search", pattern="login", search_type="code").text == told.text


def test_a_code_search_is_counted_once_and_gives_the_places_for_reads(room: Room) -> None:
    room.put("a.py", "needle\n")
    room.put("b.py", "other\n")
    session = room.session()
    told = ask(session, "search", query="needle", search_type="code", path="./a.py")
    assert [(one.query, one.hits, one.where, one.scope) for one in noted(session)] == [("needle", 1, "code", "./a.py")]
    assert stabilization(told.details)["metrics_snapshot"]["search_count"] == 1
    assert session.guards.judge(ReadAsk("file", "b.py", "b.py")).is_unrelated
    assert not session.guards.judge(ReadAsk("file", "a.py", "a.py")).is_unrelated


def test_without_hits_the_next_call_is_another_search(room: Room) -> None:
    room.put("a.py", "x\n")
    session = room.session()
    told = stabilization(ask(session, "search", pattern="login handler", search_type="code").details)
    assert told["suggested_next_action"] == "search"
    assert told["next_calls"] == [
        {"tool": "search", "arguments": {"pattern": "handler", "search_type": "code", "limit": 5}}
    ]
    one_word = stabilization(ask(session, "search", pattern="login", search_type="code").details)
    assert one_word["next_calls"] == [{"tool": "search", "arguments": {"pattern": "login", "everything": True}}]
    stored = stabilization(ask(session, "search", pattern="login").details)
    assert stored["next_calls"][0]["arguments"] == {"pattern": "login", "search_type": "code", "limit": 5}
    assert {*stored["next_calls"][0]["arguments"]} <= {*SEARCH.schema["properties"]}


def test_places_of_two_thousand_characters_are_shortened_and_count_as_degraded(room: Room) -> None:
    for number in range(10):
        room.put(f"p{number}.py", "X" * 2000 + "needle\n")
    session = room.session()
    told = stabilization(ask(session, "search", pattern="needle", search_type="code", limit=10).details)
    snapshot = told["metrics_snapshot"]
    assert (snapshot["search_count"], snapshot["preview_degraded_count"]) == (1, 1)
    assert (snapshot["reads_count"], snapshot["read_after_search_ratio"]) == (0, 0.0)


def test_a_stored_search_is_counted_once_too(room: Room) -> None:
    session = room.session()
    [name] = room.paged(session, long_text("needle"))
    told = ask(session, "search", pattern="needle line 1 ")
    assert [(one.query, one.hits, one.where) for one in noted(session)] == [("needle line 1 ", 1, "stored")]
    assert stabilization(told.details)["next_calls"] == [{"tool": "peek", "arguments": {"id": name, "offset": 0}}]
    [call] = stabilization(told.details)["next_calls"]
    assert "needle line 1 of" in ask(session, call["tool"], **call["arguments"]).text


def test_the_gateways_short_form_counts_and_never_reaches_the_files_of_its_machine(room: Room) -> None:
    room.put("a.py", "needle\n")
    session = room.session()
    for everything in (False, True):
        arguments = {"pattern": "needle", "search_type": "code", "query": "needle"}
        told = answer_call(session, "search", arguments, "c1", everything=everything)
        assert told.text == "No matches found."
        assert "meta" in told.details
    assert [one.where for one in noted(session)] == ["stored", "stored"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"scope": ["x"]}, "scope is only valid for search_type='stored'. Remove it or switch search_type."),
        ({"since": "3d"}, "since is only valid for search_type='stored'. Remove it or switch search_type."),
        ({"limit": 0}, "'limit' must be from 1 to 1000"),
    ],
)
def test_arguments_that_do_not_fit_are_refused_with_a_code(room: Room, arguments: dict[str, Any], message: str) -> None:
    session = room.session()
    told = ask(session, "search", pattern="x", search_type="code", **arguments)
    assert (told.is_error, told.text) == (True, message)
    assert told.details["error"] == {"code": "INVALID_ARGS", "message": message, "next_calls": []}
    assert noted(session) == []
    assert ask(session, "search", pattern="x", search_type="files").text == "'search_type' must be one of: stored, code"
    assert ask(session, "search", search_type="code").text == "Missing required parameter: pattern"


def test_excluded_folders_are_left_out_as_reads_of_them_are_refused(room: Room) -> None:
    room.put("vendor/a.py", "needle\n")
    room.put("b.py", "needle\n")
    told = ask(room.session(), "search", pattern="needle", search_type="code")
    assert [one["path"] for one in rows(told.details, "files")] == ["b.py"]


def test_a_workspace_that_git_ignores_says_so(room: Room) -> None:
    room.put(".gitignore", "*\n")
    room.put("a.py", "needle\n")
    session = room.session()
    told = ask(session, "search", pattern="needle", search_type="code")
    assert told.text.endswith("[Git ignores all 2 files and folders here. A file named by path is searched.]")
    assert ask(session, "search", pattern="needle", search_type="code", path="a.py").text.startswith("Found 1 hits")


def test_an_answer_fits_the_caps_and_says_what_is_missing(room: Room) -> None:
    room.put("a.py", "needle\n" * 5000)
    told = ask(room.session(), "search", pattern="needle", search_type="code", path="a.py", limit=1000)
    assert len(told.text.encode()) <= 50 * 1024
    assert "[Showing 1000 of 1000 hits." not in told.text
    few = ask(room.session("other"), "search", pattern="needle", search_type="code", limit=3)
    assert few.text.endswith("[Showing 3 of 1000 hits. Use path to narrow the search, or limit for more.]")


def test_a_search_proposes_no_read_that_is_refused_and_names_what_it_left_out(room: Room) -> None:
    room.put("vendor/a.py", "needle\n")
    session = room.session()
    told = ask(session, "search", pattern="needle", search_type="code", path="vendor/a.py")
    assert told.text.startswith("Found 1 hits")
    assert stabilization(told.details)["next_calls"] == []
    room.put("vendor/b.py", "needle\n")
    told = ask(session, "search", pattern="needle", search_type="code", path="vendor")
    assert told.text.endswith("vendor: in an excluded folder; a file named by path is searched")
