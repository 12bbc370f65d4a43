"""Stores damaged at random: what `pagein check --repair` makes of them, against plain reads row by row.

Bits flipped, pages zeroed, files cut off, with and without a write-ahead log beside. Seeded, so that a failure can be had again.
"""

import json
import random
import shutil
import sqlite3
import sys
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

import pytest

from pagein.cli.cli import main
from pagein.errors import BadInput, StoreError
from pagein.model.entries import Entry, NoteEntry
from pagein.store.upkeep.sqlite_upkeep import SqliteUpkeep
from pagein.testing.lived_in_store import make_lived_in_store
from pagein.upkeep import check_store, repair_file

pytestmark = pytest.mark.damages_store

PAGE = 4096
FAST, ALL = 24, 200
LATE = Counter({"journal": 60, "session": 1, "life": 1, "writer_session": 1})
"""The rows that only the log has."""


@dataclass(frozen=True, slots=True)
class Whole:
    """A healthy store: its file and log, how many rows each table has with the log, and the highest row id of each."""

    file: bytes
    log: bytes
    rows: Counter[str]
    highest: dict[str, int]


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Whole:
    folder = tmp_path_factory.mktemp("whole")
    store = SqliteUpkeep(folder / "one.pagein")
    store.adopt_secret(bytes(32))  # so that all that follows from it is the same each time
    store.close()
    lived = make_lived_in_store(folder / "one.pagein", folder / "work", 11, 120)
    alone = lived.store.read_bytes()
    store = SqliteUpkeep(lived.store)
    store.append(
        "late", [Entry(str(n), str(n - 1) if n else None, NoteEntry("n", f'"{"x" * 200} {n}"')) for n in range(60)]
    )
    file, log = (lived.store.with_name(lived.store.name + end).read_bytes() for end in ("", "-wal"))
    with store._database.open_reader() as rows:
        names = [
            name
            for (name,) in rows.execute(
                "SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite%' AND sql NOT LIKE '%WITHOUT ROWID%'"
            )
        ]
        counts = {name: rows.execute(f"SELECT count(*), max(rowid) FROM {name}").fetchone() for name in names}  # noqa: S608
    store.close()
    assert log
    assert file == alone, "what came last stands in the log"
    return Whole(
        file,
        log,
        Counter({name: count for name, (count, _) in counts.items()}),
        {name: last or 0 for name, (_, last) in counts.items()},
    )


def damaged(whole: Whole, seed: int) -> tuple[bytes, bytes]:
    """The file and its log after an accident. Every other one has no log any more, and with it not the session that was written last."""
    dice = random.Random(seed)  # noqa: S311 - a test's dice
    file, log = bytearray(whole.file), bytearray(whole.log if seed % 2 else b"")
    hurt = log if log and dice.random() < 0.4 else file
    match seed % 3:
        case 0:
            for _ in range(dice.choice([1, 5, 40])):
                hurt[dice.randrange(len(hurt))] ^= 1 << dice.randrange(8)
        case 1:
            for _ in range(dice.choice([1, 1, 3])):
                page = dice.randrange(len(hurt) // PAGE)
                hurt[page * PAGE : (page + 1) * PAGE] = bytes(PAGE)
        case _:
            del hurt[dice.randrange(1, len(hurt)) :]
    return bytes(file), bytes(log)


def put(folder: Path, file: bytes, log: bytes) -> Path:
    folder.mkdir(exist_ok=True)
    path = folder / "one.pagein"
    path.write_bytes(file)
    if log:
        path.with_name("one.pagein-wal").write_bytes(log)
    return path


def plain_reads(folder: Path, file: bytes, log: bytes, whole: Whole) -> Counter[str]:
    """How many rows SQLite gives of each table, asked for one by one, of a copy."""
    found: Counter[str] = Counter()
    connection = sqlite3.connect(put(folder, file, log))
    # so that a damaged text does not hide its row
    connection.text_factory = bytes
    for table, last in whole.highest.items():
        for row in range(1, last + 1):
            try:
                one = connection.execute(f"SELECT * FROM {table} WHERE rowid = ?", (row,)).fetchone()  # noqa: S608
                found[table] += one is not None
            except (sqlite3.Error, UnicodeDecodeError):  # the second for a message in which SQLite quotes damaged bytes
                continue
    connection.close()
    return found


def counted(path: Path) -> Counter[str]:
    connection = sqlite3.connect(path)
    names = [
        name
        for (name,) in connection.execute(
            "SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite%' AND sql NOT LIKE '%WITHOUT ROWID%'"
        )
    ]
    counts = {name: connection.execute(f"SELECT count(*) FROM {name}").fetchone()[0] for name in names}  # noqa: S608
    connection.close()
    return Counter(counts)


def seeds() -> list[object]:
    return [pytest.param(seed, marks=[pytest.mark.slow] if seed >= FAST else []) for seed in range(ALL)]


@pytest.mark.parametrize("seed", seeds())
def test_a_repair_keeps_every_row_that_plain_reads_give(tmp_path: Path, whole: Whole, seed: int) -> None:
    file, log = damaged(whole, seed)
    plain = plain_reads(tmp_path / "plain", file, log, whole)
    path = put(tmp_path / "repaired", file, log)
    try:
        done = repair_file(path)
    except BadInput:  # nothing of it is left
        assert not plain
        assert path.read_bytes() == file
        return
    kept = path if done.kept is None else done.kept
    kept_log = kept.with_name(kept.name + "-wal")
    assert kept.read_bytes() == file
    assert (kept_log.read_bytes() if kept_log.exists() else b"") == log
    after = counted(path)
    assert {table: (count, after[table]) for table, count in plain.items() if after[table] < count} == {}
    missing = whole.rows - after
    if log != whole.log:  # what is cut off at the end of a log leaves no trace
        missing -= LATE
    assert not (done.report.is_clean and missing), f"missing, and all is said to be well: {dict(missing)}"
    sound = sqlite3.connect(path)
    assert sound.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
    sound.close()
    store = SqliteUpkeep(path)
    assert not [one.why for one in check_store(store).findings if "cannot be looked at" in one.why]
    store.append("main", [Entry("goes on", None, NoteEntry("n", "{}"))])
    assert store.leaf("main") == "goes on"
    store.close()
    again = repair_file(path)
    assert again.kept is None, "a second repair found something left to do"


def test_a_healthy_store_stays_as_it_is(tmp_path: Path, whole: Whole) -> None:
    path = put(tmp_path, whole.file, whole.log)
    done = repair_file(path)
    assert (done.report.findings, done.kept) == ([], None)
    assert (path.read_bytes(), path.with_name("one.pagein-wal").read_bytes()) == (whole.file, whole.log)


def test_a_store_that_is_in_use_is_not_exchanged(tmp_path: Path, whole: Whole) -> None:
    """Whoever has it open would go on writing to the old file."""
    import subprocess

    file = bytearray(whole.file)
    path = put(tmp_path, bytes(file), b"")
    code = f"""
import sys
from pathlib import Path
from pagein.store.sqlite.sqlite_store import SqliteStore
store = SqliteStore(Path({str(path)!r}))
store.figures()
print("open", flush=True)
sys.stdin.read()
"""
    with subprocess.Popen([sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as other:  # noqa: S603 - ours
        assert other.stdout is not None
        assert other.stdout.readline() == b"open\n"
        with path.open("r+b") as handle:
            handle.seek(5 * PAGE)
            handle.write(bytes(PAGE))
        before = path.read_bytes()
        with pytest.raises(BadInput, match="is in use; end what uses it"):
            repair_file(path)
        assert path.read_bytes() == before
        other.communicate()
    assert not [one for one in tmp_path.iterdir() if "damaged" in one.name]


def test_deleted_rows_stay_deleted_after_a_repair(tmp_path: Path, whole: Whole) -> None:
    """Pages that are free still hold what stood on them."""
    path = put(tmp_path, whole.file, b"")
    store = SqliteUpkeep(path)
    gone = [one.name for one in store.sessions()][:1]
    store.drop_sessions(gone)
    store.close()
    with path.open("r+b") as handle:  # the index of blobs, say: any damage that has all of the file read
        connection = sqlite3.connect(path)
        (root,) = connection.execute(
            "SELECT rootpage FROM sqlite_schema WHERE name = 'sqlite_autoindex_blob_1'"
        ).fetchone()
        connection.close()
        handle.seek((root - 1) * PAGE)
        handle.write(bytes(PAGE))
    done = repair_file(path)
    assert done.report.is_clean
    assert done.kept is not None
    store = SqliteUpkeep(path)
    assert gone[0] not in [one.name for one in store.sessions()]
    store.close()


def test_the_command_says_what_was_lost_and_keeps_the_old_file(
    tmp_path: Path, whole: Whole, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    connection = sqlite3.connect(put(tmp_path / "one", whole.file, b""))
    query = "SELECT max(journal.number) FROM journal JOIN writer_session ON writer_session.number = session WHERE name = 'main'"
    (row,) = connection.execute(query).fetchone()
    (name,) = connection.execute("SELECT id FROM journal WHERE number = ?", (row,)).fetchone()
    connection.close()
    path = put(tmp_path / "two", whole.file, b"")
    with path.open("r+b") as handle:
        at = whole.file.index(name, whole.file.index(b"SQLite") + 100)
        page = at // PAGE
        handle.seek(page * PAGE)
        handle.write(bytes(PAGE))

    def run(*arguments: str) -> tuple[int, str]:
        monkeypatch.setattr(sys, "argv", ["pagein", *arguments, "--store", str(path)])
        with pytest.raises(SystemExit) as left:
            main()
        return int(left.value.code or 0), capsys.readouterr().out

    status, told = run("check", "--repair", "--json")
    answer = json.loads(told)
    assert status == int(not answer["clean"])
    assert answer["kept"] == str(path) + ".damaged-1"
    assert answer["rows"]["journal"] == whole.rows["journal"] - LATE["journal"]
    assert {
        name: whole.rows[name] - count for name, count in answer["rows"].items() if whole.rows[name] > count
    } == LATE
    assert path.stat().st_mode & 0o777 == 0o600
    assert run("check")[0] == status
    status, told = run("check", "--repair")
    assert (status, "all well" in told, "kept as" in told) == (0, True, False)


def test_a_repair_refuses_and_keeps_a_file_that_is_no_store(tmp_path: Path) -> None:
    path = tmp_path / "notes.txt"
    path.write_text("not a store " * 1000)
    with pytest.raises((BadInput, StoreError)):
        repair_file(path)
    assert [one.name for one in tmp_path.iterdir()] == ["notes.txt"]
    other = tmp_path / "other.db"
    connection = sqlite3.connect(other)
    connection.execute("CREATE TABLE session(name TEXT, leaf TEXT)")
    connection.execute("INSERT INTO session VALUES('a', 'b')")
    connection.commit()
    connection.close()
    before = other.read_bytes()
    with pytest.raises((BadInput, StoreError), match="not a store of pagein"):
        repair_file(other)
    assert other.read_bytes() == before
    shutil.rmtree(tmp_path)
