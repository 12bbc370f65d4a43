"""The command `remember`, as a person runs it."""

import json
import os
import pty
import select
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest
import typer
from tests.cli.conftest import Ran
from tests.past_sessions.conftest import FIXTURES, Pi, entries, texts
from typer.testing import CliRunner

from pagein.cli import commands_remember
from pagein.memory.followed_place import is_followed
from pagein.model.writes import EVERYTHING
from pagein.store.sqlite.sqlite_store import SqliteStore

Run = Callable[..., Ran]


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """A home folder with the sessions of three agents."""
    folder = tmp_path / "home"
    for name, place in (
        ("claude-code.jsonl", ".claude/projects/-srv-shop/cc-1.jsonl"),
        ("codex.jsonl", ".codex/sessions/2026/03/02/rollout-2026-03-02-cx-1.jsonl"),
        ("pi-v3.jsonl", ".pi/agent/sessions/--srv-shop--/x_pi-three.jsonl"),
    ):
        path = folder / place
        path.parent.mkdir(parents=True)
        shutil.copy(FIXTURES / name, path)
    return folder


def test_named_files_are_taken_and_told(run: Run, tmp_path: Path) -> None:
    store = tmp_path / "s.pagein"
    done = run("remember", FIXTURES / "claude-code.jsonl", "--store", store)
    assert (done.status, done.err) == (0, "")
    assert "remembered 2 sessions, 21 messages: claude-code 1, claude-code/subagent 1" in done.out
    assert str(store) in done.out.replace("\n", "")
    again = run("remember", FIXTURES / "claude-code.jsonl", "--store", store)
    assert again.out == "nothing new; 1 file known already\n"


def test_json_is_one_object_with_every_figure(run: Run, tmp_path: Path) -> None:
    done = run("remember", FIXTURES / "codex.jsonl", FIXTURES / "torn.jsonl", "--store", tmp_path / "s", "--json")
    answer = json.loads(done.out)
    assert set(answer) == {
        "new", "grown", "messages", "agents", "files", "known_files", "bytes", "seconds", "object_seconds", "unknown_lines",
        "skipped", "failed", "store", "dry_run",
    }  # fmt: skip
    assert answer["agents"]["codex"] == 1
    assert answer["bytes"] == sum((FIXTURES / name).stat().st_size for name in ("codex.jsonl", "torn.jsonl"))


def test_the_objects_are_made_at_once_and_the_first_question_finds_them(run: Run, tmp_path: Path) -> None:
    store = tmp_path / "s.pagein"
    done = run("remember", FIXTURES / "claude-code.jsonl", "--store", store)
    assert "objects made in " in done.out
    with closing(SqliteStore(store)) as opened:
        assert is_followed(opened)
        assert {one.type for one in opened.objects(EVERYTHING)} >= {"session", "chat", "user", "toolcall", "file"}


def test_ctrl_c_while_objects_are_made_tells_what_was_remembered(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupt(*_: object, **__: object) -> str:
        raise KeyboardInterrupt

    app, store = typer.Typer(), tmp_path / "s.pagein"
    commands_remember.add_to(app)
    with monkeypatch.context() as patched:
        patched.setattr("pagein.archive.catch_up", interrupt)
        done = CliRunner().invoke(app, [str(FIXTURES / "claude-code.jsonl"), "--store", str(store)])
    assert done.exit_code != 0
    assert "remembered 2 sessions, 21 messages" in done.stdout
    assert "objects made" not in done.stdout
    assert "what was remembered stays" in done.stderr
    assert "objects made in " in run("remember", FIXTURES / "codex.jsonl", "--store", store).out
    with closing(SqliteStore(store)) as opened:
        assert is_followed(opened)


def test_what_files_need_is_bundled_at_the_end_also_after_a_ctrl_c_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupt(*_: object) -> int:
        raise KeyboardInterrupt

    app, store = typer.Typer(), tmp_path / "s.pagein"
    commands_remember.add_to(app)
    monkeypatch.setattr("pagein.store.sql.file_bundles._PACKED_REST", 1)
    files = [str(FIXTURES / name) for name in ("claude-code.jsonl", "codex.jsonl", "pi-v3.jsonl")]
    with monkeypatch.context() as patched:
        patched.setattr("pagein.store.sql.sql_blobs.take_step", interrupt)
        done = CliRunner().invoke(app, [*files, "--store", str(store)])
    assert (done.exit_code != 0, "what was remembered stays" in done.stderr) == (True, True)
    assert where_files_are(store)["waiting"] > 2
    assert CliRunner().invoke(app, [*files, "--store", str(store)]).exit_code == 0
    assert where_files_are(store)["waiting"] == 0
    assert where_files_are(store)["bundled"] > 2


def where_files_are(store: Path) -> dict[str, int]:
    """Return how many texts that the histories of files need are in bundles, and how many wait."""
    with closing(SqliteStore(store)) as opened, opened._database.open_reader() as rows:
        assert is_followed(opened)
        ((bundled, waiting),) = rows.execute(
            """SELECT sum(CASE WHEN alone.number IS NULL THEN 1 ELSE 0 END), count(alone.number)
               FROM file_text LEFT JOIN alone ON alone.number = file_text.number"""
        ).fetchall()
    return {"bundled": int(bundled), "waiting": int(waiting)}


def test_a_bad_path_is_named_the_others_are_taken_and_the_status_says_so(run: Run, tmp_path: Path) -> None:
    done = run("remember", tmp_path / "gone", FIXTURES / "codex.jsonl", "--store", tmp_path / "s.pagein")
    assert done.status == 1
    assert "remembered 1 session" in done.out
    assert "no such file or folder" in done.err.replace("\n", " ")


def test_only_bad_paths_are_a_refusal_that_makes_no_store(run: Run, tmp_path: Path) -> None:
    done = run("remember", tmp_path / "gone", tmp_path / "away", "--store", tmp_path / "s.pagein", "--json")
    assert (done.status, done.out) == (2, "")
    assert f"no such file or folder: {tmp_path / 'gone'}, {tmp_path / 'away'}" in done.err
    assert not (tmp_path / "s.pagein").exists()


def test_the_sessions_of_the_machine_need_a_yes_where_nobody_can_be_asked(run: Run, home: Path, tmp_path: Path) -> None:
    store = tmp_path / "s.pagein"
    done = run("remember", "--store", store)
    assert done.status == 2
    for agent in ("claude-code", "codex", "pi"):
        assert agent in done.err
    assert "pagein remember --yes" in done.err
    assert not store.exists()
    done = run("remember", "--yes", "--store", store)
    assert (done.status, home.exists()) == (0, True)
    assert "remembered 4 sessions" in done.out
    assert run("remember", "--store", store).out == "nothing new; 3 files known already\n"  # nothing to ask about


def test_a_machine_without_sessions_is_told_so(run: Run, tmp_path: Path) -> None:
    done = run("remember", "--yes", "--store", tmp_path / "s.pagein")
    assert done.status == 2
    assert "no recorded session" in done.err
    assert "pagein remember FILE" in done.err


@pytest.mark.usefixtures("home")
def test_a_dry_run_stores_nothing(run: Run, tmp_path: Path) -> None:
    store = tmp_path / "s.pagein"
    done = run("remember", "--dry-run", "--store", store)
    assert done.status == 0
    assert "would remember 4 sessions" in done.out
    assert not store.exists()
    assert run("remember", "--dry-run", "--watch", "--store", store).status == 2


@pytest.mark.parametrize(("answer", "status"), [(b"\n", 0), (b"n\n", 2), (b"\x03", 130)])
def test_a_person_is_asked_once(
    answer: bytes,
    status: int,
    home: Path,
    tmp_path: Path,
) -> None:
    store = tmp_path / "s.pagein"
    ours, theirs = pty.openpty()
    command = [sys.executable, "-m", "pagein", "remember", "--store", str(store)]
    env = {**os.environ, "HOME": str(home), "COLUMNS": "100"}
    with subprocess.Popen(  # noqa: S603 - our own command
        command, stdin=theirs, stdout=theirs, stderr=theirs, env=env, start_new_session=True,
        preexec_fn=_take_terminal,  # noqa: PLW1509 - no threads here
    ) as process:  # fmt: skip
        os.close(theirs)
        said = _read(ours, until=b"[Y/n]")
        os.write(ours, answer)
        said += _read(ours)
        assert process.wait(60) == status
    os.close(ours)
    assert said.count(b"[Y/n]") == 1
    assert b"New on this machine" in said
    assert store.exists() == (status == 0)


def _take_terminal() -> None:
    import fcntl
    import termios

    fcntl.ioctl(0, termios.TIOCSCTTY, 0)


def _read(terminal: int, until: bytes | None = None) -> bytes:
    said, began = b"", time.monotonic()
    while time.monotonic() - began < 60 and (until is None or until not in said):
        if not select.select([terminal], [], [], 1.0)[0]:
            continue
        try:
            more = os.read(terminal, 4096)
        except OSError:
            break
        if not more:
            break
        said += more
    return said


def test_a_watch_takes_what_comes_and_ends_with_ctrl_c(tmp_path: Path) -> None:
    pi = Pi(tmp_path / "s" / "s.jsonl")
    pi.user("first")
    place = tmp_path / "s.pagein"
    command = [
        sys.executable,
        "-m",
        "pagein",
        "remember",
        str(pi.path.parent),
        "--store",
        str(place),
        "--watch",
        "--json",
    ]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:  # noqa: S603 - ours
        assert process.stdout is not None
        assert process.stderr is not None
        first = json.loads(process.stdout.readline())
        assert process.stderr.readline() == b"watching; Ctrl-C ends it\n"
        pi.answer("second")
        second = json.loads(process.stdout.readline())
        process.send_signal(signal.SIGINT)
        _, told = process.communicate(timeout=60)
    assert (first["new"], second["grown"], second["messages"]) == (1, 1, 1)
    assert (process.returncode, told) == (0, b"no longer watching\n")
    store = SqliteStore(place)
    assert texts(entries(store, "pi-1")) == ["first", "second"]
    store.close()


def test_the_help_has_examples(run: Run) -> None:
    done = run("remember", "--help")
    assert done.status == 0
    for example in ("pagein remember --yes --watch", "pagein remember ~/.claude/projects"):
        assert example in done.out
