"""`read` with mode=symbol: a definition by its name, proven like any other read."""

import sys

import pytest
from tests.tools.reading.reading_calls import error_of, guarded, meta_of, read
from tests.tools.recall_sessions import Room

pytest.importorskip("tree_sitter")

SERVER = '''"""A server."""
import os
from pathlib import Path


class Server:
    """Serves."""

    # Binds first, so that a caller can ask for the port.
    @property
    def address(self):
        host = "localhost"
        port = self.port
        scheme = "http"
        path = "/"
        return f"{scheme}://{host}:{port}{path}"

    def stop(self):
        return os.getpid()


def stop():
    return Path()
'''


def test_a_symbol_is_shown_with_decorators_and_comment_and_its_place(room: Room) -> None:
    room.put("src/server.py", SERVER)
    session = guarded(room)
    told = read(session, "symbol", "Server.address")
    assert told.text.startswith("src/server.py:9-16 of 24, ")
    assert "\n    # Binds first" in told.text
    assert '    return f"{scheme}://{host}:{port}{path}"' in told.text
    assert told.details["location"] == {"file": "src/server.py", "line": 9, "end_line": 16}
    resolved = meta_of(told)["resolved_symbol"]
    assert (resolved["qualified"], resolved["line"], resolved["end_line"]) == ("Server.address", 11, 16)
    assert resolved["id"] == "src/server.py#Server.address"
    again = read(session, "symbol", resolved["id"])
    assert again.text.endswith("[readcache: unchanged in lines 9-16 of 24]")
    assert "[readcache: unchanged in lines 9-16 of 24]" in read(session, "file", "src/server.py").text


def test_what_a_file_showed_comes_back_as_a_marker(room: Room) -> None:
    room.put("server.py", SERVER)
    session = guarded(room)
    session.read("server.py")
    assert read(session, "symbol", "address").text.endswith("\n[readcache: unchanged in lines 9-16 of 24]")
    assert meta_of(read(session, "symbol", "address"))["stabilization"]["metrics_snapshot"]["reads_lines_total"] == 0


def test_a_changed_symbol_is_found_where_it_is_now(room: Room) -> None:
    room.put("server.py", SERVER)
    session = guarded(room)
    read(session, "symbol", "address")
    room.put("server.py", "# new\n" + SERVER.replace('"/"', '"/x"'))
    told = read(session, "symbol", "address")
    assert told.details["location"] == {"file": "server.py", "line": 10, "end_line": 17}
    assert '"/x"' in told.text


def test_context_adds_imports_and_the_enclosing_header(room: Room) -> None:
    room.put("server.py", SERVER)
    told = read(guarded(room), "symbol", "Server.stop", include_context=True)
    assert told.text.split("\n") == [
        "server.py:18-19 of 24, method Server.stop, with context from line 2",
        "import os",
        "from pathlib import Path",
        "[readcache: lines 4-5 of 24 not shown]",
        "class Server:",
        "[readcache: lines 7-17 of 24 not shown]",
        "    def stop(self):",
        "        return os.getpid()",
        "",
        "[5 more lines in file. Use mode='file' with offset=20 to continue.]",
    ]


def test_an_ambiguous_name_lists_the_candidates_and_a_path_decides(room: Room) -> None:
    room.put("server.py", SERVER)
    room.put("b.py", "def stop():\n    return 1\n")
    session = guarded(room)
    error = error_of(read(session, "symbol", "stop"))
    assert error["code"] == "AMBIGUOUS_SYMBOL"
    for place in ("server.py:18-19", "server.py:22-23", "b.py:1-2"):
        assert place in error["message"]
    assert "def stop(self)" in error["message"]
    chosen = error["next_calls"][0]["arguments"]
    assert read(session, "symbol", chosen["target"]).details["ok"]
    assert read(session, "symbol", "stop", path="b.py").details["location"] == {
        "file": "b.py", "line": 1, "end_line": 2
    }  # fmt: skip


def test_unknown_names_and_files_without_symbols_have_their_own_codes(room: Room) -> None:
    room.put("server.py", SERVER)
    room.put("broken.py", "def (:\n  ===\n")
    room.put("notes.txt", "stop\n")
    session = guarded(room)
    unknown = error_of(read(session, "symbol", "adress"))
    assert unknown["code"] == "UNKNOWN_SYMBOL"
    assert "address" in unknown["message"]
    assert error_of(read(session, "symbol", "stop", path="broken.py"))["code"] == "UNPARSABLE"
    assert error_of(read(session, "symbol", "stop", path="notes.txt"))["code"] == "NO_GRAMMAR"
    assert error_of(read(session, "symbol", "stop", path="gone.py"))["code"] == "NOT_FOUND"
    assert error_of(read(session, "symbol", "stop", path="../out.py"))["code"] == "OUTSIDE_WORKSPACE"
    assert error_of(read(session, "symbol", "address", offset=99))["code"] == "OUT_OF_RANGE"


def test_a_long_symbol_is_cut_at_a_line_and_goes_on_with_offset(room: Room) -> None:
    room.put("long.py", "def long():\n" + "".join(f"    step_{number} = {number}\n" for number in range(900)))
    session = guarded(room)
    told = read(session, "symbol", "long")
    meta = meta_of(told)
    assert (meta["preview_degraded"], meta["truncated"]) == (True, True)
    assert meta["stabilization"]["budget_state"] == "SOFT_LIMIT"
    following = read(session, "symbol", "long", offset=meta["next_offset"])
    last = told.details["location"]["end_line"]  # type: ignore[index]
    assert following.details["location"]["line"] == last + 1  # type: ignore[index]
    assert meta["next_calls"] == [
        {"tool": "read", "arguments": {"mode": "symbol", "target": "long.py#long", "offset": meta["next_offset"]}}
    ]


def test_without_preview_the_signature_is_told(room: Room) -> None:
    room.put("server.py", SERVER)
    session = guarded(room)
    told = read(session, "symbol", "Server", preview_mode="none")
    assert told.text == "server.py:6-19 of 24, class Server: class Server"
    assert "readcache" not in told.details


def test_symbols_of_excluded_files_are_not_found(room: Room) -> None:
    room.put("server.pem", SERVER)
    (room.folder / "link.py").symlink_to("server.pem")
    assert error_of(read(guarded(room), "symbol", "Server"))["code"] == "UNKNOWN_SYMBOL"


def test_without_grammars_the_remedy_is_told(room: Room, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "tree_sitter", None)  # as if it were not installed
    room.put("server.py", SERVER)
    error = error_of(read(guarded(room), "symbol", "Server"))
    assert error["code"] == "NO_SYMBOLS"
    assert "pip install 'pagein[symbols]'" in error["message"]


def test_calls_for_similar_names_name_one_definition_each(room: Room) -> None:
    room.put("a.py", "class A:\n    def run(self):\n        pass\n\n\nclass B:\n    def run(self):\n        pass\n")
    room.put("b.py", "def other():\n    pass\n")
    session = guarded(room)
    error = error_of(read(session, "symbol", "run", path="b.py"))
    assert error["message"].startswith("No symbol in b.py has the name run. Similar: a.py#A.run, a.py#B.run.")
    reads = [call["arguments"] for call in error["next_calls"] if call["tool"] == "read"]
    assert [one["target"] for one in reads] == ["a.py#A.run", "a.py#B.run"]
    for one in reads:
        assert read(session, **one).text.startswith("a.py:")


def test_a_copy_in_an_excluded_folder_makes_no_name_ambiguous(room: Room) -> None:
    for path in ("src/a.py", "vendor/a.py"):
        room.put(path, "def run():\n    pass\n")
    told = read(guarded(room), "symbol", "run")
    assert told.text.startswith("src/a.py:1-2 of 3, function run\n")
    assert error_of(read(guarded(room, folders="warn", name="other"), "symbol", "run"))["code"] == "AMBIGUOUS_SYMBOL"
    room.put("src/b.py", "def run():\n    pass\n")
    error = error_of(read(guarded(room, name="third"), "symbol", "run"))
    assert [call["arguments"]["target"] for call in error["next_calls"]] == ["src/a.py#run", "src/b.py#run"]
    assert "vendor" not in error["message"]
    assert error_of(read(guarded(room, name="third"), "symbol", "run", path="vendor"))["code"] == "EXCLUDED_FOLDER"


def test_the_path_of_a_file_names_no_file_of_this_name_elsewhere(room: Room) -> None:
    for path in ("a.py", "src/a.py"):
        room.put(path, f"def run():\n    return {path!r}\n")
    session = guarded(room)
    assert "return 'a.py'" in read(session, "symbol", "run", path="a.py").text
    assert "return 'src/a.py'" in read(session, "symbol", "run", path="src").text
    room.put("a.py", "def (:\n")
    assert error_of(read(session, "symbol", "run", path="a.py"))["code"] == "UNPARSABLE"
