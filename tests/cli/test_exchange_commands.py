import gzip
import json
import os
import pty
import stat
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from pagein.cli.cli import main
from pagein.model.entries import Entry, MessageEntry
from pagein.model.messages import Message, ToolCall, ToolResult
from pagein.store.upkeep.sqlite_upkeep import SqliteUpkeep
from pagein.testing.lived_in_store import LivedIn, make_lived_in_store
from pagein.testing.upkeep_contract import export_all, note_entry

PAGEIN = (sys.executable, "-m", "pagein")


@dataclass(frozen=True, slots=True)
class Done:
    returncode: int
    stdout: bytes
    stderr: bytes


Run = Callable[..., Done]


@pytest.fixture
def lived(tmp_path: Path) -> LivedIn:
    return make_lived_in_store(tmp_path / "one.pagein", tmp_path / "work", 5, 60)


@pytest.fixture
def run(
    lived: LivedIn, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfdbinary: pytest.CaptureFixture[bytes]
) -> Run:
    """Runs pagein in the folder, on the store that was lived in unless another is named."""
    monkeypatch.setenv("PAGEIN_STORE", str(lived.store))
    monkeypatch.chdir(tmp_path)

    def running(*arguments: str | Path) -> Done:
        monkeypatch.setattr(sys, "argv", ["pagein", *map(str, arguments)])
        capfdbinary.readouterr()
        with pytest.raises(SystemExit) as left:
            main()
        out, err = capfdbinary.readouterr()
        return Done(int(left.value.code or 0), out, err)

    return running


def lines_of(store: Path) -> bytes:
    opened = SqliteUpkeep(store)
    try:
        return b"".join(export_all(opened))
    finally:
        opened.close()


@pytest.mark.parametrize("name", ["all.jsonl", "all.jsonl.gz"])
def test_a_store_goes_out_and_in_again_as_a_person_would_do_it(
    lived: LivedIn, tmp_path: Path, run: Run, name: str
) -> None:
    done = run("export", name)
    assert (done.returncode, done.stderr) == (0, b"")
    assert done.stdout.startswith(b"exported ")
    data = (tmp_path / name).read_bytes()
    assert (gzip.decompress(data) if name.endswith("gz") else data) == lines_of(lived.store)
    assert stat.S_IMODE((tmp_path / name).stat().st_mode) == 0o600
    done = run("import", name, "--store", tmp_path / "two.pagein", "--json")
    assert done.returncode == 0
    answer = json.loads(done.stdout)
    assert {kind: answer["added"][kind] for kind in ("blob", "version", "object", "session", "entry")} == {
        kind: answer["records"][kind] for kind in ("blob", "version", "object", "session", "entry")
    }
    assert lines_of(tmp_path / "two.pagein") == lines_of(lived.store)
    assert json.loads(run("import", name, "--store", tmp_path / "two.pagein", "--json").stdout)["added"] == {}
    assert run("check", "--store", tmp_path / "two.pagein").returncode == 0


def test_an_export_goes_through_a_pipe(lived: LivedIn, tmp_path: Path) -> None:
    out = [*PAGEIN, "export", "-", "--json", "--store", str(lived.store)]
    into = [*PAGEIN, "import", "-", "--store", str(tmp_path / "two.pagein")]
    with subprocess.Popen(out, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as writing:  # noqa: S603 - ours
        subprocess.run(into, stdin=writing.stdout, check=True, capture_output=True)  # noqa: S603 - ours
        assert writing.stderr is not None
        assert json.loads(writing.stderr.read())["lost"] == []
    assert writing.returncode == 0
    assert lines_of(tmp_path / "two.pagein") == lines_of(lived.store)


def test_two_exports_of_one_store_are_the_same_file(tmp_path: Path, run: Run) -> None:
    for name in ("a.jsonl.gz", "b.jsonl.gz"):
        run("export", name)
    assert (tmp_path / "a.jsonl.gz").read_bytes() == (tmp_path / "b.jsonl.gz").read_bytes()


def test_a_failed_export_keeps_the_earlier_file(lived: LivedIn, tmp_path: Path) -> None:
    target = tmp_path / "all.jsonl"
    target.write_text("the backup of yesterday")
    store = SqliteUpkeep(lived.store)
    store.put(os.urandom(100_000))
    store.close()
    code = f"""
import resource, signal, sys
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (50_000, 50_000))
sys.argv = ["pagein", "export", {str(target)!r}, "--store", {str(lived.store)!r}]
from pagein.cli.cli import main
main()
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, check=False)  # noqa: S603 - ours
    assert done.returncode == 2
    assert b"all.jsonl: File too large; nothing was written" in done.stderr
    assert target.read_text() == "the backup of yesterday"
    assert sorted(path.name for path in tmp_path.iterdir() if "all.jsonl" in path.name) == ["all.jsonl"]


def test_a_compressed_file_that_was_cut_short_is_refused(tmp_path: Path, run: Run) -> None:
    run("export", "all.jsonl.gz")
    data = (tmp_path / "all.jsonl.gz").read_bytes()
    for cut in (5, len(data) // 2, len(data) - 4):
        (tmp_path / "all.jsonl.gz").write_bytes(data[:cut])
        done = run("import", "all.jsonl.gz", "--store", tmp_path / "two.pagein")
        assert done.returncode == 2
        assert b"all.jsonl.gz: the compressed file is cut short or damaged" in done.stderr
        assert b"nothing was imported" in done.stderr
    assert b'"blob"' not in lines_of(tmp_path / "two.pagein")


def test_a_damaged_line_is_named_by_file_and_number(lived: LivedIn, tmp_path: Path, run: Run) -> None:
    lines = lines_of(lived.store).splitlines(keepends=True)
    lines[6] = lines[6][:40] + b"\n"
    (tmp_path / "bad.jsonl").write_bytes(b"".join(lines))
    done = run("import", "bad.jsonl", "--store", tmp_path / "two.pagein")
    assert (done.returncode, done.stdout) == (2, b"")
    assert done.stderr.startswith(b"pagein: bad.jsonl, line 7: ")


@pytest.mark.parametrize(
    ("arguments", "why"),
    [
        (("export", "x.jsonl", "--store", "none.pagein"), b"there is no store at none.pagein"),
        (("check", "--store", "none.pagein"), b"there is no store at none.pagein"),
        (("gc", "--store", "none.pagein"), b"there is no store at none.pagein"),
        (("export", "no/such/folder/x.jsonl"), b"no/such/folder/x.jsonl: No such file or directory"),
        (("import", "nowhere.jsonl"), b"nowhere.jsonl: No such file or directory"),
        (("import", "work"), b"work: a folder without store.jsonl"),
        (("gc", "--older-than", "soon"), b"not a time: 'soon'"),
        (("gc", "--quota", "lots"), b"not a size: 'lots'"),
        (("gc", "--end", "nobody"), b"there is no session 'nobody'"),
        (("export", "rlm", "--pi-rlm", "nobody"), b"there is no session 'nobody'"),
    ],
)
def test_a_failed_exchange_exits_with_2_and_a_reason(
    tmp_path: Path, run: Run, arguments: tuple[str, ...], why: bytes
) -> None:
    done = run(*arguments)
    assert (done.returncode, done.stdout) == (2, b"")
    assert why in done.stderr
    assert not (tmp_path / "none.pagein").exists()


@pytest.mark.parametrize("name", ["two.pagein", "new/folder/two.pagein"])
def test_a_failed_import_creates_no_file(lived: LivedIn, tmp_path: Path, run: Run, name: str) -> None:
    """An empty store would pass every check as if all were well."""
    (tmp_path / "bad.jsonl").write_bytes(lines_of(lived.store)[:-30])
    before = sorted(tmp_path.rglob("*"))
    done = run("import", "bad.jsonl", "--store", name)
    assert (done.returncode, done.stdout) == (2, b"")
    assert b"nothing was imported" in done.stderr
    assert sorted(tmp_path.rglob("*")) == before
    (tmp_path / "good.jsonl").write_bytes(lines_of(lived.store))
    assert run("import", "good.jsonl", "--store", name).returncode == 0
    assert stat.S_IMODE((tmp_path / name).stat().st_mode) == 0o600
    assert [path.name for path in (tmp_path / name).parent.iterdir() if path.name.startswith(".")] == []
    assert run("check", "--store", name).returncode == 0


@pytest.mark.parametrize(
    "address",
    [
        "host=db.example user=me password=hush",
        " dbname = agents password=hush",
        "user=me password=hush",
        "service=agents",
        "sslmode=require host=x password=hush",
        "postgresql:me:hush@host/agents",
        "postgres:/me:hush@host/agents",
        "POSTGRESQL://me:hush@host/agents",
    ],
)
@pytest.mark.parametrize("command", [("import", "all.jsonl"), ("check",), ("objects",), ("reads", "--session", "main")])
def test_an_address_of_a_database_never_becomes_a_file(
    tmp_path: Path, run: Run, command: tuple[str, ...], address: str
) -> None:
    run("export", "all.jsonl")
    before = sorted(tmp_path.rglob("*"))
    done = run(*command, "--store", address)
    assert (done.returncode, done.stdout) == (2, b"")
    assert b"postgresql://" in done.stderr
    assert b"hush" not in done.stderr
    assert sorted(tmp_path.rglob("*")) == before


def test_a_store_in_memory_is_none_to_look_after(tmp_path: Path, run: Run) -> None:
    run("export", "all.jsonl")
    for command in (("import", "all.jsonl"), ("check",)):
        assert b"name a file" in run(*command, "--store", ":memory:").stderr
    assert not (tmp_path / ":memory:").exists()


@pytest.mark.damages_store
def test_an_export_omits_unreadable_content_and_tells_by_its_exit_status(lived: LivedIn, run: Run) -> None:
    store = SqliteUpkeep(lived.store)
    with store._database.open_writer() as rows:
        rows.execute("UPDATE blob SET data = x'00' WHERE hash = (SELECT hash FROM object LIMIT 1)")
    store.close()
    done = run("export", "all.jsonl")
    assert done.returncode == 1
    assert b"not exported: " in done.stderr


def test_progress_is_shown_to_people_only(lived: LivedIn, tmp_path: Path) -> None:
    """On a terminal there is a line that moves; in a pipe there is nothing (see above)."""
    ours, theirs = pty.openpty()
    with subprocess.Popen(  # noqa: S603 - ours
        [*PAGEIN, "check", "--store", lived.store], cwd=tmp_path, stdout=subprocess.PIPE, stderr=theirs
    ) as process:
        os.close(theirs)
        seen = b""
        try:
            while part := os.read(ours, 4096):
                seen += part
        except OSError:  # Linux says so when the other side is closed
            pass
        assert process.stdout is not None
        told = process.stdout.read()
    os.close(ours)
    assert process.returncode == 0
    assert b"checking" in seen
    assert told.startswith(b"checked ")


def test_the_own_journals_of_pagein_are_counted_apart(tmp_path: Path, run: Run) -> None:
    store = SqliteUpkeep(tmp_path / "own.pagein")
    for name in ("one", "two", "pagein.orders"):
        store.append(name, [note_entry("a")])
    store.close()
    told = ("--store", tmp_path / "own.pagein", "--json")
    checked = json.loads(run("check", *told).stdout)["checked"]
    exported = json.loads(run("export", "own.jsonl", *told).stdout)["records"]
    imported = json.loads(run("import", "own.jsonl", "--store", tmp_path / "two.pagein", "--json").stdout)
    for counts in (checked, exported, imported["records"], imported["added"]):
        assert (counts["session"], counts["own journal"]) == (2, 1)


def test_an_export_is_written_to_a_pipe_and_through_a_link_and_replaces_neither(tmp_path: Path, run: Run) -> None:
    pipe, link, real, copy = (tmp_path / name for name in ("pipe", "link", "real.jsonl", "copy"))
    real.write_bytes(b"earlier")
    link.symlink_to(real)
    os.mkfifo(pipe)
    code = f"from pathlib import Path; Path({str(copy)!r}).write_bytes(Path({str(pipe)!r}).read_bytes())"
    with subprocess.Popen((sys.executable, "-c", code)) as reader:  # noqa: S603 - ours
        try:
            assert run("export", pipe).returncode == 0
            assert pipe.is_fifo()
            assert reader.wait(timeout=60) == 0
        finally:
            reader.kill()
    assert run("export", link).returncode == 0

    assert link.is_symlink()
    assert real.read_bytes() == copy.read_bytes()
    assert run("export", tmp_path / "work").stderr.decode().endswith("work: Is a directory\n")


def test_no_export_replaces_a_store(lived: LivedIn, tmp_path: Path, run: Run) -> None:
    (tmp_path / "link").symlink_to(lived.store)
    for name in (lived.store, tmp_path / "link"):
        refused = run("export", name)
        assert refused.returncode == 2
        assert b"no export replaces one" in refused.stderr
    assert run("check").returncode == 0


def test_an_export_and_an_import_leave_out_names_of_the_setting_excluded(
    run: Run, lived: LivedIn, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = SqliteUpkeep(lived.store)
    call = Message("assistant", (ToolCall("call", "Bash", '{"command":"cat my.secret"}'),))
    result = Message("user", (ToolResult("call", "hunter2", "Bash"),))
    store.append("mine", [Entry("1", None, MessageEntry(call)), Entry("2", "1", MessageEntry(result, (9,)))])
    store.close()
    assert run("export", "whole.jsonl").returncode == 0
    monkeypatch.setenv("PAGEIN_EXCLUDED", "*.secret")
    assert run("export", "all.jsonl").returncode == 0
    assert b"hunter2" in (tmp_path / "whole.jsonl").read_bytes()
    assert b"hunter2" not in (tmp_path / "all.jsonl").read_bytes()
    assert run("import", "whole.jsonl", "--store", "new.pagein").returncode == 0
    assert b"hunter2" not in lines_of(tmp_path / "new.pagein")
