"""The log of operations: whole lines, one owner, bounded, and never in the way."""

import json
import os
import stat
import subprocess
import sys
import threading
from pathlib import Path
from typing import get_args

import pytest
from tests.tools.recall_sessions import Room, ask, long_text

import pagein
from pagein.engine.log.trajectory import Operation, Trajectory
from pagein.model.messages import Message, Text, ToolCall, ToolResult

WRITER = """
import sys
from pathlib import Path
from pagein.engine.log.trajectory import Trajectory
log = Trajectory(Path(sys.argv[1]), lambda: 1.0, largest=1_500, kept=120)
for n in range(300):
    log.operation("peek", session=sys.argv[2], objects=[f"pg-{n}"], details={"n": n, "pad": "x" * (n % 60)})
assert log.failure is None, log.failure
"""


@pytest.fixture
def room(tmp_path: Path) -> Room:
    (tmp_path / "work").mkdir()
    return Room(tmp_path / "work", tmp_path / "store" / "s.pagein")


def lines(file: Path) -> list[dict[str, object]]:
    return [json.loads(line) for line in file.read_bytes().splitlines()]


def all_lines(file: Path) -> list[dict[str, object]]:
    return [line for one in sorted(file.parent.glob(f"{file.name}*")) for line in lines(one)]


def test_an_operation_is_one_line_in_the_words_of_the_specification(tmp_path: Path) -> None:
    file = tmp_path / "log.jsonl"
    log = Trajectory(file, lambda: 1_700_000_000.25)
    log.operation(
        "search", session="main", objects=["pg-1"], details={"pattern": "x\ud800", "matchCount": 1}, took=0.0125
    )
    log.append({"kind": "call", "callId": "c"})
    assert lines(file) == [
        {
            "kind": "operation", "operation": "search", "session": "main", "objectIds": ["pg-1"],
            "details": {"pattern": "x\ud800", "matchCount": 1}, "wallClockMs": 12.5, "timestamp": 1_700_000_000_250,
        },
        {"kind": "call", "callId": "c", "timestamp": 1_700_000_000_250},
    ]  # fmt: skip


def test_the_file_is_the_users_alone(tmp_path: Path) -> None:
    file = tmp_path / "new" / "folder" / "log.jsonl"
    before = os.umask(0)
    try:
        log = Trajectory(file, lambda: 1.0, largest=10)
        log.append({"n": 1})
        log.append({"n": 2})
    finally:
        os.umask(before)
    for one in file.parent.iterdir():
        assert stat.S_IMODE(one.stat().st_mode) == 0o600
    assert stat.S_IMODE(file.parent.stat().st_mode) == 0o700


def test_a_file_that_would_grow_too_large_is_moved_aside(tmp_path: Path) -> None:
    file = tmp_path / "log.jsonl"
    log = Trajectory(file, lambda: 1.0, largest=100, kept=2)
    for n in range(10):
        log.append({"n": n, "pad": "x" * 20})
    names = sorted(one.name for one in tmp_path.iterdir())
    assert names == ["log.jsonl", "log.jsonl.1", "log.jsonl.2"]
    assert all(one.stat().st_size <= 100 for one in tmp_path.iterdir())
    kept = [line["n"] for name in ("log.jsonl.2", "log.jsonl.1", "log.jsonl") for line in lines(tmp_path / name)]
    assert kept == list(range(10))[-len(kept) :]


def test_without_older_files_the_log_begins_anew(tmp_path: Path) -> None:
    file = tmp_path / "log.jsonl"
    log = Trajectory(file, lambda: 1.0, largest=100, kept=0)
    for n in range(10):
        log.append({"n": n, "pad": "x" * 20})
    assert [one.name for one in tmp_path.iterdir()] == ["log.jsonl"]
    assert lines(file)[-1]["n"] == 9


def test_one_line_larger_than_the_bound_is_written_all_the_same(tmp_path: Path) -> None:
    file = tmp_path / "log.jsonl"
    log = Trajectory(file, lambda: 1.0, largest=10)
    log.append({"pad": "x" * 100})
    assert log.failure is None
    assert len(lines(file)) == 1


def test_half_a_line_of_a_dead_process_spoils_no_other(tmp_path: Path) -> None:
    file = tmp_path / "log.jsonl"
    file.write_bytes(b'{"n":1}\n{"n":2,"pa')
    Trajectory(file, lambda: 1.0).append({"n": 3})
    told = file.read_bytes().split(b"\n")
    assert json.loads(told[0]) == {"n": 1}
    assert json.loads(told[2])["n"] == 3


def test_several_processes_and_their_rotations_lose_no_line(tmp_path: Path) -> None:
    file = tmp_path / "log.jsonl"
    writers = [
        subprocess.Popen([sys.executable, "-c", WRITER, str(file), name])  # noqa: S603 - our own
        for name in "abc"
    ]
    assert [one.wait(300) for one in writers] == [0, 0, 0]
    told = all_lines(file)
    assert len(told) == 900
    assert all(one.stat().st_size <= 1_500 for one in tmp_path.iterdir())
    for name in "abc":
        assert {str(line["objectIds"]) for line in told if line["session"] == name} == {
            f"['pg-{n}']" for n in range(300)
        }


def test_threads_of_one_process_lose_no_line(tmp_path: Path) -> None:
    file = tmp_path / "log.jsonl"
    log = Trajectory(file, lambda: 1.0, largest=5_000, kept=100)

    def write(name: int) -> None:
        for _ in range(50):
            log.append({"t": name})

    threads = [threading.Thread(target=write, args=(name,)) for name in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(all_lines(file)) == 200


def test_what_cannot_be_written_is_remembered_and_raises_nothing(tmp_path: Path) -> None:
    blocked = tmp_path / "file"
    blocked.write_text("")
    log = Trajectory(blocked / "log.jsonl", lambda: 1.0)
    log.append({"n": 1})
    assert log.failure is not None
    assert "NotADirectoryError" in log.failure
    link = tmp_path / "link.jsonl"
    link.symlink_to(tmp_path / "elsewhere")
    through_a_link = Trajectory(link, lambda: 1.0)
    through_a_link.append({"n": 1})
    assert through_a_link.failure is not None
    assert not (tmp_path / "elsewhere").exists()


def test_a_log_that_works_again_forgets_why_it_did_not(tmp_path: Path) -> None:
    folder = tmp_path / "folder"
    folder.write_text("")
    log = Trajectory(folder / "log.jsonl", lambda: 1.0)
    log.append({"n": 1})
    folder.unlink()
    log.append({"n": 2})
    assert log.failure is None
    assert len(lines(folder / "log.jsonl")) == 1


def test_every_operation_of_a_session_is_logged_and_no_content(room: Room) -> None:
    session = room.session()
    room.put("a.txt", "file content 12345")
    [name] = room.paged(session, long_text("paged out content"))
    ask(session, "ingest", paths=["a.txt"])
    ask(session, "peek", id=name, offset=5, length=7)
    ask(session, "search", pattern="out content")
    ask(session, "stats")
    room.close()
    told = room.log()
    assert [line["operation"] for line in told] == ["externalize", "ingest", "peek", "search", "stats"]
    assert {line["session"] for line in told} == {"main"}
    left, ingested, peeked, searched, _ = told
    assert left["objectIds"] == peeked["objectIds"] == searched["objectIds"] == [name]
    assert left["details"] == {"epoch": 1, "frontier": 2, "tokens": len(long_text("paged out content"))}
    assert ingested["details"] == {"paths": ["a.txt"], "fileCount": 1, "skipped": 0}
    assert peeked["details"] == {"offset": 5, "length": 7}
    assert searched["details"] == {"pattern": "out content", "matchCount": 40}
    assert "12345" not in json.dumps(told)
    assert "paged out content line" not in json.dumps(told)


def test_a_log_that_cannot_be_written_is_told_of_by_stats(room: Room) -> None:
    session = room.session()
    [name] = room.paged(session, long_text("first"))
    room.store.with_name(room.store.name + ".trajectory.jsonl").unlink()
    room.store.with_name(room.store.name + ".trajectory.jsonl").mkdir()
    assert ask(session, "peek", id=name, length=5).text.startswith("first")
    assert "Trajectory log: not written (IsADirectoryError" in ask(session, "stats").text
    room.close()


def test_each_operation_that_is_declared_is_logged_by_something_that_a_user_does(room: Room) -> None:
    session = room.session()
    room.put("a.txt", "content")
    [name] = room.paged(session, long_text("first"))
    with pagein.open(room.store, workspace=room.folder) as engine:  # where nothing leaves at these prices
        ordered = engine.session("ordered")
        ordered.append(Message("user", (Text("please"),)))
        for n in range(9):
            ordered.append(Message("assistant", (ToolCall(f"c{n}", "Bash", "{}"),)))
            ordered.append(Message("tool", (ToolResult(f"c{n}", long_text(f"second {n}"), "Bash"),)))
            ordered.advance()
        ordered.hand.epoch()  # but at the user's word
        ordered.append(Message("assistant", (ToolCall("c9", "Bash", "{}"),)))
        ordered.append(Message("tool", (ToolResult("c9", "ok", "Bash"),)))
        ordered.advance()
    session.hand.off()
    session.hand.on()
    ask(session, "ingest", paths=["a.txt"])
    ask(session, "peek", id=name)
    ask(session, "search", pattern="first")
    ask(session, "stats")
    room.close()
    assert {line["operation"] for line in room.log()} == set(get_args(Operation))
