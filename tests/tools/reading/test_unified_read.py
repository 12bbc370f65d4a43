"""The door of the tool `read`: which shape a call has, what is offered, and the contract of every answer."""

import json

import pytest
from tests.tools.reading.reading_calls import error_of, guarded, meta_of, read
from tests.tools.recall_sessions import Room

from pagein.testing.desk import numbered_text
from pagein.tools.calls import Call
from pagein.tools.catalogue import answer, offer_tools
from pagein.tools.reading.read_problems import CODES


def test_the_shape_of_a_host_is_answered_to_the_letter(room: Room) -> None:
    room.put("a.txt", numbered_text(60))
    session = guarded(room)
    asked = {"path": "a.txt", "offset": 10, "limit": 3}
    told = answer(session, "read", Call(asked))
    assert told == session.fork("other").read("a.txt", 10, 3, bypass_cache=True)
    assert set(told.details) == {"readcache"}
    assert session.guards.metrics["reads_count"] == 0


def test_a_mode_is_never_guessed(room: Room) -> None:
    room.put("a.txt", "x\n")
    session = guarded(room)
    for asked in (
        {"target": "a.txt"},
        {"target": "a.txt", "start_line": 1},
        {"target": "a.txt", "path": "a.txt"},
        {"path": "a.txt", "start_line": 1},
        {},
    ):
        told = answer(session, "read", Call(asked))
        assert error_of(told)["code"] == "INVALID_ARGS"
        assert error_of(told)["message"].startswith("'mode' must be one of: file, symbol, snippet, diff_preview")
        assert told.details["mode"] is None


def test_hosts_with_a_read_of_their_own_are_offered_its_arguments_and_others_the_modes() -> None:
    def offered(names: str) -> set[str]:
        (tool,) = [tool for tool in offer_tools(names) if tool.name == "read"]  # type: ignore[arg-type]
        return set(tool.schema["properties"])

    assert offered("pi-rlm") == {"path", "offset", "limit"}
    assert {"mode", "target", "against", "pattern"} <= offered("pagein")


def test_the_contract_is_json_and_has_every_field(room: Room) -> None:
    room.put("a.txt", numbered_text(60))
    session = guarded(room)
    good, bad = read(session, "file", "a.txt"), read(session, "file", "gone.txt")
    fields = ["ok", "mode", "target", "text", "location", "meta"]
    assert list(good.details)[: len(fields)] == list(bad.details)[: len(fields)] == fields
    assert list(bad.details) == [*fields, "error"]
    assert set(error_of(bad)) == {"code", "message", "next_calls"}
    for told in (good, bad):
        assert json.loads(json.dumps(told.details, allow_nan=False)) == json.loads(json.dumps(told.details))
        assert {"truncated", "token_estimate", "preview_degraded"} <= set(meta_of(told))
    wrong = read(session, "file", "a.txt", against="HEAD")
    for told in (good, bad, wrong):
        found = meta_of(told)["stabilization"]
        assert {"budget_state", "suggested_next_action", "warnings", "metrics_snapshot"} <= set(found)
        assert found["metrics_snapshot"]["reads_count"] == 1, "a refused read is not counted"
    assert meta_of(bad)["stabilization"]["suggested_next_action"] == "search", "the next call of the error"


def test_reads_are_counted_where_they_were_made(room: Room) -> None:
    room.put("a.txt", numbered_text(60))
    session = guarded(room)
    read(session, "file", "a.txt", limit=10)
    branch = session.fork("branch")
    read(session, "file", "a.txt", offset=11, limit=10)
    assert (session.guards.metrics["reads_count"], branch.guards.metrics["reads_count"]) == (2, 1)
    session.keep()
    assert guarded(room).guards.metrics == session.guards.metrics, "another process counts the same"


def test_a_file_with_a_key_is_shown_and_not_stored(room: Room) -> None:
    key = "ghp_" + "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8"[:36]
    room.put("a.py", f"TOKEN = '{key}'\nneedle = 1\n")
    session = guarded(room)
    for mode, arguments in (("file", {}), ("snippet", {"start_line": 1, "end_line": 2})):
        told = read(session, mode, "a.py", **arguments)
        assert key in told.text
        assert "readcache" not in told.details
    session.keep()
    assert key.encode() not in room.store.read_bytes()


def test_a_cancelled_read_says_so(room: Room) -> None:
    import threading

    room.put("a.txt", "x\n")
    stop = threading.Event()
    stop.set()
    told = answer(guarded(room), "read", Call({"mode": "file", "target": "a.txt"}, signal=stop))
    assert error_of(told)["code"] == "ABORTED"


def test_a_bug_in_pagein_is_told_and_raises_nothing(room: Room, monkeypatch: pytest.MonkeyPatch) -> None:
    room.put("a.txt", "x\n")
    session = guarded(room)

    def fail(_: str) -> None:
        raise RuntimeError("boom")

    monkeypatch.setattr("pagein.tools.reading.targets.state_of", fail)
    told = answer(session, "read", Call({"mode": "file", "target": "a.txt"}))
    assert (error_of(told)["code"], told.failure) == ("FAILED", "RuntimeError: boom")


@pytest.mark.parametrize("code", CODES)
def test_every_code_has_a_meaning_in_a_sentence(code: str) -> None:
    assert CODES[code].endswith(".")
