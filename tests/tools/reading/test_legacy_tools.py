"""The tools that `read` has replaced: each gives what `read` gives."""

import pytest
from tests.tools.reading.reading_calls import error_of, guarded, meta_of, read
from tests.tools.recall_sessions import Room

from pagein.engine.reads.session_reads import ReadResult
from pagein.engine.session import Session
from pagein.settings.layers import merge_layers, of_environment
from pagein.testing.desk import numbered_text
from pagein.tools.calls import Call
from pagein.tools.catalogue import DEPRECATED, TOOLS, answer, offer_tools, tool_named


def old(session: Session, tool: str, **arguments: object) -> ReadResult:
    return answer(session, tool, Call(arguments))


def test_read_file_is_read_with_mode_file(room: Room) -> None:
    room.put("a.txt", numbered_text(60))
    told = old(guarded(room), "read_file", path="a.txt", offset=10, limit=3)
    assert told == read(guarded(room, name="b"), "file", "a.txt", offset=10, limit=3)
    assert told.text.startswith("line 10 ")


def test_read_symbol_is_read_with_mode_symbol(room: Room) -> None:
    pytest.importorskip("tree_sitter")
    room.put("a.py", "def f():\n    return 1\n")
    room.put("b.py", "def f():\n    return 2\n")
    for name in ("name", "symbol_id", "sid", "symbol"):
        told = old(guarded(room, name=name), "read_symbol", path="b.py", **{name: "f"})
        assert told.text.startswith("b.py:1-2 of 3, function f\ndef f():\n    return 2")
        assert told.details["target"] == "f"


def test_get_snippet_is_read_with_mode_snippet(room: Room) -> None:
    room.put("a.txt", numbered_text(60))
    told = old(guarded(room), "get_snippet", path="a.txt", query="line 3", max_results=4, context_lines=0)
    assert told == read(guarded(room, name="b"), "snippet", "a.txt", pattern="line 3", limit=4, context_lines=0)
    assert len(meta_of(told)["hits"]) == 4
    lines = old(guarded(room, name="c"), "get_snippet", path="a.txt", start_line=5, end_line=6)
    assert lines.details["location"] == {"file": "a.txt", "line": 5, "end_line": 6}


def test_dry_run_diff_is_read_with_mode_diff_preview(room: Room) -> None:
    room.put("a.txt", "one\n")
    told = old(guarded(room), "dry_run_diff", path="a.txt", content="two\n", against="WORKTREE")
    assert told == read(guarded(room, name="b"), "diff_preview", "a.txt", content="two\n", against="WORKTREE")
    assert "-one\n+two\n" in told.text


@pytest.mark.parametrize("tool", ["read_file", "read_symbol", "get_snippet", "dry_run_diff"])
def test_a_wrong_call_gets_the_errors_of_read(room: Room, tool: str) -> None:
    error = error_of(old(guarded(room), tool))
    assert error["code"] == "INVALID_ARGS"
    assert "'target' must be a text" in error["message"]


def test_they_are_deprecated_and_hidden_unless_asked_for() -> None:
    asked = merge_layers([of_environment({"PAGEIN_DEPRECATED_TOOLS": "yes"})])
    names = {tool.name for tool in DEPRECATED}
    assert names == {"read_file", "read_symbol", "get_snippet", "dry_run_diff"}
    assert all(tool.description.startswith("Deprecated: use read with mode=") for tool in DEPRECATED)
    assert names.isdisjoint(tool.name for tool in (*TOOLS, *offer_tools(), *offer_tools("pi-rlm")))
    assert names <= {tool.name for tool in offer_tools(settings=asked.engine)}
    assert all(tool_named(name) is not None for name in names)
    for tool in DEPRECATED:
        assert set(tool.schema["required"]) <= set(tool.schema["properties"])
