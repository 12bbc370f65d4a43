"""Targets that cannot be read: each reason has its own code and a remedy, and nothing half-said."""

import os
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.tools.reading.reading_calls import error_of, guarded, meta_of, read
from tests.tools.recall_sessions import Room

from pagein.tools.calls import Call
from pagein.tools.catalogue import answer
from pagein.tools.reading.read_problems import CODES
from pagein.tools.reading.targets import MAX_BYTES

MODES: list[tuple[str, dict[str, object]]] = [
    ("file", {}),
    ("snippet", {"start_line": 1}),
    ("diff_preview", {"against": "WORKTREE"}),
]


def _huge(room: Room) -> str:
    with room.put("huge.log", "").open("r+b") as file:
        file.truncate(MAX_BYTES + 1)
    return "huge.log"


def _pipe(room: Room) -> str:
    os.mkfifo(room.folder / "pipe")
    return "pipe"


def _outside(room: Room) -> str:
    (room.folder.parent / "out.txt").write_text("secret\n")
    return "../out.txt"


def _escape(room: Room) -> str:
    (room.folder / "in.txt").symlink_to(_outside(room))
    return "in.txt"


def _put(name: str, content: str | bytes, target: str | None = None) -> Callable[[Room], str]:
    def make(room: Room) -> str:
        room.put(name, content)
        return target or name

    return make


MAKERS: dict[str, Callable[[Room], str]] = {
    "NOT_FOUND": _put("src/parser.py", "x\n", "src/parse.py"),
    "IS_DIRECTORY": _put("src/parser.py", "x\n", "src"),
    "NOT_A_FILE": _pipe,
    "FILE_TOO_LARGE": _huge,
    "BINARY_FILE": _put("a.bin", b"\x7fELF\0\0\1"),
    "WRONG_ENCODING": _put("latin.txt", "one\ncafé\n".encode("latin-1")),
    "OUTSIDE_WORKSPACE": _outside,
    "SYMLINK_ESCAPE": _escape,
    "EXCLUDED_FILE": _put(".env", "TOKEN=secret\n"),
    "EXCLUDED_FOLDER": _put("node_modules/a/index.js", "x\n"),
}
"""Makes a target of each kind in the workspace, by its code."""
TEXT = {"BINARY_FILE", "WRONG_ENCODING"}
CASES = [
    (code, mode, arguments)
    for code in MAKERS
    for mode, arguments in MODES
    if mode != "diff_preview" or code not in TEXT  # a diff of binary files is an answer
]


@pytest.mark.parametrize(("code", "mode", "arguments"), CASES, ids=[f"{code}-{mode}" for code, mode, _ in CASES])
def test_each_reason_has_its_code_in_each_mode(room: Room, code: str, mode: str, arguments: dict[str, object]) -> None:
    session = guarded(room)
    target = MAKERS[code](room)
    leaf = session.leaf
    told = read(session, mode, target, **arguments)
    error = error_of(told)
    assert error["code"] == code in CODES
    assert "secret" not in told.text
    assert told.details["location"] is None
    assert session.leaf == leaf, "a refused read is not journaled"


def test_what_the_messages_say(room: Room) -> None:
    session = guarded(room)
    assert error_of(read(session, "file", MAKERS["NOT_FOUND"](room)))["next_calls"][0] == {
        "tool": "read", "arguments": {"mode": "file", "target": "src/parser.py"}
    }  # fmt: skip
    assert read(session, "file", "src").text.startswith("src is a folder. Name a file in it, such as src/parser.py.")
    assert "byte 0xe9 at 7, in line 2" in read(session, "file", MAKERS["WRONG_ENCODING"](room)).text


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_a_file_without_permission_is_unreadable(room: Room) -> None:
    room.put("a.txt", "x\n").chmod(0)
    assert error_of(read(guarded(room), "file", "a.txt"))["code"] == "UNREADABLE"


def test_an_absolute_path_and_a_link_inside_are_the_file(room: Room) -> None:
    file = room.put("src/a.py", "x = 1\n")
    (room.folder / "link.py").symlink_to("src/a.py")
    session = guarded(room)
    for target in (str(file), "link.py", "src/../src/a.py"):
        told = read(session, "file", target, bypass_cache=True)
        assert told.text == "x = 1\n"
        assert told.details["location"] == {"file": "src/a.py", "line": 1, "end_line": 2}


def test_a_workspace_behind_a_link_is_the_workspace(room: Room, tmp_path: Path) -> None:
    room.put("a.txt", "x\n")
    (tmp_path / "door").symlink_to(room.folder)
    session = guarded(room)
    session.work_in(str(tmp_path / "door"))
    assert read(session, "file", "a.txt").text == "x\n"
    assert read(session, "file", str(room.folder / "a.txt"), bypass_cache=True).text == "x\n"


def test_without_a_folder_there_is_nothing_to_read(room: Room) -> None:
    from pagein.engine.session import Session

    session = guarded(room)
    alone = Session("alone", session._parts)
    assert error_of(read(alone, "file", "a.txt"))["code"] == "NO_WORKSPACE"


def test_a_name_with_a_nul_is_an_argument_error(room: Room) -> None:
    assert error_of(read(guarded(room), "file", "a\0b"))["code"] == "INVALID_ARGS"


def test_a_broken_link_is_not_proposed_in_its_own_place(room: Room) -> None:
    room.put("src/other.py", "x\n")
    (room.folder / "gone").symlink_to("src/gone")
    error = error_of(read(guarded(room), "file", "gone"))
    assert (error["code"], error["message"]) == ("NOT_FOUND", "There is no file src/gone. Use search to find it.")


def test_a_folder_is_told_with_files_and_without_links(room: Room) -> None:
    room.put("b/c/d.py", "x\n")
    room.put("b/e.py", "x\n")
    (room.folder / "b/a").symlink_to("/etc")
    session = guarded(room)
    assert read(session, "file", "b").text == "b is a folder. Name a file in it, such as b/e.py."
    assert read(session, "file", ".").text == ". is a folder. Name a file in it, such as b/."


def test_utf_16_is_text_in_another_encoding(room: Room) -> None:
    room.put("a.txt", "hello\n".encode("utf-16"))
    error = error_of(read(guarded(room), "file", "a.txt"))
    assert (error["code"], "UTF-16" in error["message"]) == ("WRONG_ENCODING", True)


def test_a_file_below_a_folder_with_an_at_sign_is_read_by_every_proposed_call(room: Room) -> None:
    pytest.importorskip("tree_sitter")
    room.put("@scope/a.py", "def run():\n    return 1\n")
    session = guarded(room)
    assert read(session, "symbol", "run").text.startswith("@scope/a.py:1-2 of 3")
    told = read(session, "snippet", ".", pattern="return", context_lines=1)
    assert told.text.startswith("@scope/a.py:1-3 of 3, 1 match: line 2")
    told = read(session, "snippet", ".", pattern="return")
    assert told.text == "1 match in 1 file\n@scope/a.py:2:     return 1"
    for call in meta_of(told)["next_calls"]:
        assert call["arguments"]["target"] == "./@scope/a.py"
        assert read(session, **call["arguments"]).details["ok"]


LONG = "a" * 3_000


@pytest.mark.parametrize(
    ("mode", "target", "arguments"),
    [
        ("file", f"{LONG[:240]}/{LONG[:240]}/b.txt", {}),
        ("file", LONG, {}),
        ("file", f"/outside/{LONG}", {}),
        ("file", f"b.txt:{LONG}", {}),
        ("symbol", LONG, {}),
        ("symbol", "f", {"path": LONG}),
        ("snippet", "b.txt", {"pattern": LONG}),
        ("snippet", ".", {"pattern": LONG}),
        ("diff_preview", LONG, {}),
        ("diff_preview", "b.txt", {"against": f"commit:{LONG}"}),
        ("diff_preview", "b.txt", {"against": f"snapshot:{LONG}"}),
        ("file", "b.txt", {LONG: 1}),
    ],
)
def test_long_words_of_a_call_are_not_repeated_whole(
    room: Room, mode: str, target: str, arguments: dict[str, object]
) -> None:
    room.put("b.txt", "x\n")
    told = read(guarded(room), mode, target, **arguments)
    assert len(error_of(told)["message"]) < 800
    assert len(str(error_of(told)["next_calls"])) < 1_500


def test_a_missing_file_is_found_by_its_name_with_the_next_call(room: Room) -> None:
    room.put("src/login.py", "x = 1\n")
    session = guarded(room)
    [call] = error_of(read(session, "file", "lib/login.py"))["next_calls"]
    told = answer(session, call["tool"], Call(call["arguments"]))
    assert "[Files with this in their path: src/login.py.]" in told.text
    [found] = told.details["meta"]["stabilization"]["next_calls"]  # type: ignore[index]
    assert read(session, **found["arguments"]).text == "x = 1\n"


def test_a_folder_is_told_with_calls_that_read_its_files(room: Room) -> None:
    room.put("src/a.py", "x = 1\n")
    room.put("src/b.py", "x = 2\n")
    session = guarded(room)
    calls = error_of(read(session, "file", "src"))["next_calls"]
    reads = [call for call in calls if call["tool"] == "read"]
    assert [read(session, **call["arguments"]).text for call in reads] == ["x = 1\n", "x = 2\n"]


@pytest.mark.parametrize("name", ["a[1].py", "a*.py", "a?.py", "{a,b}.py", "x[0]/a.py"])
def test_a_name_that_looks_like_a_glob_is_the_file_of_this_name(room: Room, name: str) -> None:
    pytest.importorskip("tree_sitter")
    room.put(name, "def run():\n    return 'glob'\n")
    for other in ("a1.py", "ab.py", "b.py", "x0/a.py"):
        room.put(other, "def run():\n    return 'plain'\n")
    session = guarded(room)
    assert "'glob'" in read(session, "file", name).text
    assert "'glob'" in read(session, "snippet", name, start_line=2, bypass_cache=True).text
    assert "'glob'" in read(session, "snippet", name, pattern="return", bypass_cache=True).text
    told = read(session, "symbol", "run", path=name, bypass_cache=True)
    assert "'glob'" in told.text
    assert told.details["location"]["file"] == name  # type: ignore[index]
    found = answer(session, "search", Call({"pattern": "return", "search_type": "code", "path": name}))
    assert [hit["path"] for hit in found.details["hits"]] == [name]  # type: ignore[attr-defined]
    for call in found.details["meta"]["stabilization"]["next_calls"]:  # type: ignore[index]
        assert read(session, **call["arguments"]).details["ok"]
