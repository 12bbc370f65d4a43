"""Stores without write permission can be read, and no file is created beside them."""

import json
import os
import shutil
import sqlite3
import stat
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from pagein.errors import StoreError
from pagein.store.upkeep.sqlite_upkeep import SqliteUpkeep
from pagein.testing.lived_in_store import LivedIn, make_lived_in_store

pytestmark = pytest.mark.damages_store

NOBODY = 65_534
# Root may write everything. So the commands run once as root, by which all modules are loaded, and then as somebody else.
AS_SOMEBODY = """
import contextlib, io, json, os, sys
from pagein import wiring
from pagein.cli.cli import main
from pagein.errors import StoreError

def run(arguments):
    sys.argv = ["pagein", *arguments]
    out, err, status = io.TextIOWrapper(io.BytesIO()), io.TextIOWrapper(io.BytesIO()), 0
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        try:
            main()
        except SystemExit as left:
            status = int(left.code or 0)
    for one in (out, err):
        one.flush()
    return [status, out.buffer.getvalue().decode(), err.buffer.getvalue().decode()]

commands = json.loads(sys.argv[1])
warm, cold, user = sys.argv[2:5]
for command in commands:
    run([*command, "--store", warm])
wiring.remedy_of(StoreError(""))  # the other user may not be able to read the modules of pagein
if int(user):
    os.setuid(int(user))
answers = [run([*command, "--store", cold]) for command in commands]
print(json.dumps(answers))
"""


@pytest.fixture(scope="module")
def life(tmp_path_factory: pytest.TempPathFactory) -> LivedIn:
    folder = tmp_path_factory.mktemp("lived")
    return make_lived_in_store(folder / "one.pagein", folder / "work", 3, 60)


@pytest.fixture
def room() -> Iterator[Path]:
    """A folder that others can get to, which those of pytest are not."""
    folder = Path(tempfile.mkdtemp(prefix="pagein-room-"))
    folder.chmod(0o755)
    yield folder
    for path in (folder, *folder.rglob("*")):
        path.chmod(0o755)
    shutil.rmtree(folder)


def place(life: LivedIn, room: Path, kind: str) -> Path:
    """A copy of the store in a folder of its own, closed to all but reading."""
    folder = room / kind.replace(" ", "-")
    folder.mkdir()
    store = Path(shutil.copy(life.store, folder / "one.pagein"))
    if kind != "no log":
        writer = SqliteUpkeep(store)
        writer.put(b"only the log has this" * 100)
        left = [
            store.with_name(store.name + end) for end in ("", "-wal", *(["-shm"] if kind == "log and index" else []))
        ]
        copies = [shutil.copy(path, path.with_suffix(".copy" + path.suffix[7:])) for path in left]
        writer.close()
        for path in folder.iterdir():
            if str(path) not in {str(copy) for copy in copies}:
                path.unlink()
        for copy, path in zip(copies, left, strict=True):
            Path(copy).rename(path)
    for path in folder.iterdir():
        path.chmod(0o444)
    folder.chmod(0o555)
    return store


def seen(store: Path, *commands: list[str], warm: Path) -> list[tuple[int, str, str]]:
    user = NOBODY if os.geteuid() == 0 else 0
    arguments = [sys.executable, "-c", AS_SOMEBODY, json.dumps(commands), str(warm), str(store), str(user)]
    at_home = {**os.environ, "HOME": str(store.parent)}
    done = subprocess.run(arguments, capture_output=True, text=True, check=False, env=at_home)  # noqa: S603 - ours
    assert done.returncode == 0, done.stderr
    return [(one[0], one[1], one[2]) for one in json.loads(done.stdout.splitlines()[-1])]


@pytest.mark.parametrize("kind", ["no log", "log", "log and index"])
def test_a_store_in_a_folder_that_may_not_be_written_is_looked_at(
    life: LivedIn, room: Path, tmp_path: Path, kind: str
) -> None:
    store = place(life, room, kind)
    warm = Path(shutil.copy(life.store, tmp_path / "warm.pagein"))
    before = {path.name: path.read_bytes() for path in store.parent.iterdir()}
    commands = [
        ["check", "--json"],
        ["objects", "--json"],
        ["search", "line", "--json"],
        ["export", "-", "--quiet"],
        ["gc"],
        ["show", "note-1"],
        ["reads", "--session", "main"],
    ]
    answers = seen(store, *commands, warm=warm)
    told = dict(zip([command[0] for command in commands], answers, strict=True))
    assert {name: status for name, (status, _, _) in told.items()} == dict.fromkeys(told, 0), told
    assert '"clean":true' in told["check"][1]
    assert ("only the log has this" in told["export"][1]) == (kind != "no log")
    assert {path.name: path.read_bytes() for path in store.parent.iterdir()} == before


def test_writing_to_it_is_refused_with_the_remedy(life: LivedIn, room: Path, tmp_path: Path) -> None:
    store = place(life, room, "no log")
    warm = Path(shutil.copy(life.store, tmp_path / "warm.pagein"))
    ((status, _, told),) = seen(store, ["gc", "--end", "main"], warm=warm)
    assert status == 2
    assert "one.pagein may only be read here: let this user write both the file and its folder" in told
    assert "Traceback" not in told


def test_a_store_opened_for_reading_writes_nothing(life: LivedIn, tmp_path: Path) -> None:
    store = Path(shutil.copy(life.store, tmp_path / "one.pagein"))
    before = store.read_bytes()
    looking = SqliteUpkeep(store, looks=True)
    assert next(one.name for one in looking.sessions()) == "fork 1"
    with pytest.raises(StoreError, match="may only be read here"):
        looking.put(b"more")
    looking.close()
    assert store.read_bytes() == before
    assert [path.name for path in tmp_path.iterdir()] == ["one.pagein"]


def test_a_store_of_an_older_pagein_that_may_not_be_written_is_refused_in_words(life: LivedIn, tmp_path: Path) -> None:
    store = Path(shutil.copy(life.store, tmp_path / "one.pagein"))
    connection = sqlite3.connect(store)
    connection.execute("DELETE FROM migration WHERE number = (SELECT max(number) FROM migration)")
    connection.commit()
    connection.close()
    looking = SqliteUpkeep(store, looks=True)
    with pytest.raises(StoreError, match=r"an older pagein .*cannot be brought up to date: let this user write"):
        looking.sessions()
    looking.close()


def test_existing_files_keep_their_modes(life: LivedIn, room: Path) -> None:
    store = place(life, room, "no log")
    assert stat.S_IMODE(store.stat().st_mode) == 0o444
