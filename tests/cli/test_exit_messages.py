"""Commands whose output, store or arguments cannot be used end with a sentence, and without a traceback."""

import json
import os
import re
import socket
import sqlite3
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from tests.cli.conftest import Ran

import pagein
from pagein.cli.cli import app
from pagein.errors import BadInput
from pagein.testing.lived_in_store import make_lived_in_store

Run = Callable[..., Ran]


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("lived")
    return make_lived_in_store(folder / "one.pagein", folder / "work", 11, 60).store


def asked_of(path: Path, question: str, *values: str) -> list[tuple[int, ...]]:
    connection = sqlite3.connect(path)
    try:
        return connection.execute(question, values).fetchall()
    finally:
        connection.close()


@pytest.mark.skipif(not Path("/dev/full").is_char_device(), reason="no device that is always full")
@pytest.mark.parametrize("asked", ["search a", "export - --quiet", "check --json", "objects", "status", "--version"])
def test_a_full_disk_behind_standard_output_is_told_in_a_line(store: Path, asked: str) -> None:
    command = asked.split() + ([] if asked.startswith("-") else ["--store", str(store)])
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(  # noqa: S603 - our own command
            [sys.executable, "-m", "pagein", *command], stdout=full, stderr=subprocess.PIPE, check=False, timeout=60
        )
    assert done.stderr.decode() == "pagein: cannot write to standard output: No space left on device\n"
    assert done.returncode == 2


@pytest.mark.parametrize("asked", ["search a", "export - --quiet", "objects --json"])
def test_a_reader_that_has_seen_enough_is_no_failure_to_tell_of(store: Path, asked: str) -> None:
    reader, writer = socket.socketpair()
    reader.close()
    done = subprocess.run(  # noqa: S603 - our own command
        [sys.executable, "-m", "pagein", *asked.split(), "--store", str(store)],
        stdout=writer.fileno(),
        stderr=subprocess.PIPE,
        check=False,
        timeout=60,
    )
    writer.close()
    assert done.stderr == b""


@pytest.mark.damages_store
@pytest.mark.parametrize("command", ["check", "search needle", "objects"])
def test_a_store_that_cannot_be_read_is_told_of_with_what_to_do(
    store: Path, tmp_path: Path, run: Run, command: str
) -> None:
    ran = run(*command.split(), "--store", damage(store, tmp_path, "blob", "version", "object", "document"))
    assert ran.status == 2
    assert "pagein check --repair" in ran.err
    assert "Traceback" not in ran.err


def damage(store: Path, folder: Path, *tables: str) -> Path:
    """Copy a store, with these tables overwritten."""
    damaged = folder / "one.pagein"
    data = bytearray(store.read_bytes())
    for table in tables:
        [(size,)] = asked_of(store, "PRAGMA page_size")
        [(root,)] = asked_of(store, "SELECT rootpage FROM sqlite_schema WHERE name = ?", table)
        data[(root - 1) * size : root * size] = bytes(size)
    damaged.write_bytes(data)
    return damaged


@pytest.mark.damages_store
@pytest.mark.parametrize("table", ["life", "document"])
def test_status_names_a_damaged_store_with_what_to_do_and_ends_as_other_commands_do(
    store: Path, tmp_path: Path, run: Run, table: str
) -> None:
    damaged = damage(store, tmp_path, table)
    if table == "document":  # read for the costs of the last days, after the state of the store
        with sqlite3.connect(damaged) as writer:
            writer.execute("UPDATE life SET touched = 1e10")
    ran = run("status", "--store", damaged)
    assert (ran.status, ran.err) == (2, "")
    assert f"store     store {damaged}: " in ran.out
    assert "pagein check --repair" in ran.out
    told = run("status", "--json", "--store", damaged)
    assert told.status == 2
    assert "pagein check --repair" in json.loads(told.out)["store"]["problem"]


@pytest.mark.parametrize("content", [b"", b"words of somebody " * 500])
def test_status_refuses_the_file_of_somebody_else(tmp_path: Path, run: Run, content: bytes) -> None:
    foreign = tmp_path / "notes.db"
    foreign.write_bytes(content)
    if not content:
        with sqlite3.connect(foreign) as writer:
            writer.execute("CREATE TABLE note (text)")
    for ran in (run("status", "--store", foreign), run("status", "--json", "--store", foreign)):
        assert ran.status == 2
        assert str(foreign) in ran.out
        assert "another path" in ran.out or "move the file away" in ran.out
    missing = run("status", "--store", tmp_path / "none.pagein")
    assert (missing.status, "there is no store" in missing.out) == (0, True)


@pytest.mark.parametrize("command", ["check", "check --repair"])
def test_a_database_that_is_away_ends_a_check_with_its_reason(run: Run, command: str) -> None:
    ran = run(*command.split(), "--store", "postgresql://someone:hidden@127.0.0.1:1/x")
    assert (ran.status, ran.out) == (2, "")
    assert "connection" in ran.err
    assert "hidden" not in ran.err


@pytest.mark.parametrize("more", ["--json", "--line 3", "--length 5"])
def test_all_of_a_text_is_printed_alone_or_not_at_all(run: Run, tmp_path: Path, more: str) -> None:
    ran = run("peek", "pg-01234567-89abcdef", "--all", *more.split(), "--store", tmp_path / "s.pagein")
    assert ran.status == 2
    assert "leave out options that select or shape a part" in ran.err


@pytest.mark.parametrize("address", ["bla", "http://[::1", "http://x:99999", "ftp://x", "http://", "http://x/a b"])
@pytest.mark.parametrize("command", ["status", "doctor"])
def test_an_invalid_gateway_address_is_refused_with_an_example(run: Run, command: str, address: str) -> None:
    ran = run(command, "--url", address)
    assert ran.status == 2
    assert f"--url {address!r} is no address of a gateway; write for example http://127.0.0.1:8790" in ran.err
    assert "Traceback" not in ran.err


def test_a_taken_port_and_a_gateway_that_is_away_are_told_in_words_with_what_to_do(run: Run) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        ran = run("serve", "--port", str(port))
    line = f"cannot listen at 127.0.0.1 port {port}: Address already in use; --port 0 takes any that is free"
    assert (ran.status, line in ran.err) == (2, True)
    away = run("top", "--url", f"http://127.0.0.1:{port}")
    assert (
        f"no gateway answers at http://127.0.0.1:{port} (Connection refused); pagein run AGENT starts one" in away.err
    )


@pytest.fixture(params=[b"SSH-2.0-OpenSSH_9.6\r\n", b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}"])
def stranger(request: pytest.FixtureRequest) -> Iterator[str]:
    """Something else that listens where a gateway is looked for."""
    listening = socket.create_server(("127.0.0.1", 0))

    def answer() -> None:
        while True:
            try:
                connection, _ = listening.accept()
            except OSError:
                return
            with connection:
                connection.recv(65_536)
                connection.sendall(request.param)

    thread = threading.Thread(target=answer, daemon=True)
    thread.start()
    yield f"http://127.0.0.1:{listening.getsockname()[1]}"
    listening.shutdown(socket.SHUT_RDWR)
    listening.close()
    thread.join(5)


def test_status_reports_a_foreign_server_at_the_address(run: Run, stranger: str) -> None:
    ran = run("status", "--json", "--url", stranger)
    assert ran.status == 0, ran.err
    assert stranger in json.loads(ran.out)["gateway"]["problem"]


def test_doctor_reports_a_foreign_server_at_the_address(run: Run, stranger: str) -> None:
    ran = run("doctor", "--json", "--url", stranger, "--anthropic", stranger, "--openai", stranger)
    assert ran.status == 1, ran.err
    found = {one["what"]: one["level"] for one in json.loads(ran.out)["findings"]}
    assert found["gateway"] == "wrong"


@pytest.mark.parametrize("command", ["ingest a.txt", "peek pg-01234567-89abcdef", "read a.txt"])
def test_a_session_without_a_name_is_refused_as_its_export_could_not_be_imported(
    tmp_path: Path, run: Run, command: str
) -> None:
    (tmp_path / "a.txt").write_text("text\n")
    ran = run(*command.split(), "--session", "", "--workspace", tmp_path, "--store", tmp_path / "s.pagein")
    assert ran.status == 2
    assert "a session" in ran.err
    assert "name" in ran.err
    with pagein.open(tmp_path / "s.pagein", workspace=tmp_path) as engine, pytest.raises(BadInput):
        engine.session("")


def test_each_command_shows_an_example_in_its_help() -> None:
    missing = [
        one.name or getattr(one.callback, "__name__", "")
        for one in app.registered_commands
        if not re.match(r"Examples?:", one.epilog or "")
    ]
    assert missing == []


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere a folder in use cannot be removed")
def test_a_current_folder_that_is_gone_is_told_in_a_line(tmp_path: Path) -> None:
    (tmp_path / "gone").mkdir()
    start = f"import os; os.chdir({str(tmp_path / 'gone')!r}); os.rmdir(os.getcwd()); from pagein.cli.cli import main; main()"
    command = [sys.executable, "-c", start, "read", "--mode", "file", "a.py"]
    done = subprocess.run(command, capture_output=True, check=False, env={**os.environ, "HOME": str(tmp_path)})  # noqa: S603 - our own command
    told = b"pagein: the current folder does not exist any more; change to another one\n"
    assert (done.returncode, done.stderr) == (2, told)
