import multiprocessing
import os
import signal
import sqlite3
import subprocess
import sys
import textwrap
import threading
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from pagein.errors import DamagedBlob, StoreError
from pagein.model.entries import Entry, NoteEntry
from pagein.model.messages import UnreadableLine
from pagein.model.names import ContentHash
from pagein.model.objects import ObjectId
from pagein.store.sql.sqlite_schema import APPLICATION_ID, MIGRATIONS
from pagein.store.sqlite.sqlite_store import SqliteStore
from pagein.store.store_location import default_path, store_name
from pagein.testing.blob_store import BlobStoreContract, JournalStoreContract, an_object

pytestmark = pytest.mark.damages_store


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "deep" / "folder" / "one.pagein"


@pytest.fixture
def store(path: Path) -> Iterator[SqliteStore]:
    store = SqliteStore(path)
    yield store
    store.close()


class TestSqliteBlobs(BlobStoreContract):
    pass


class TestSqliteJournals(JournalStoreContract):
    pass


def _sql(path: Path, statement: str, *values: object) -> list[tuple[object, ...]]:
    connection = sqlite3.connect(path, isolation_level=None)
    try:
        return connection.execute(statement, values).fetchall()
    finally:
        connection.close()


def test_opening_a_store_creates_nothing(path: Path) -> None:
    SqliteStore(path).close()
    assert not path.parent.exists()


@pytest.mark.slow
def test_whoever_opens_a_new_store_waits_for_those_who_create_it(store: SqliteStore, path: Path) -> None:
    """Four processes on a loaded machine: the last waited over 5 seconds for the others."""
    path.parent.mkdir(parents=True)
    creator = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
    creator.execute("PRAGMA journal_mode=WAL")
    creator.execute("BEGIN IMMEDIATE")
    end = threading.Timer(6.0, creator.rollback)
    end.start()
    assert store.get(store.put(b"body")) == b"body"
    end.join()
    creator.close()


def test_a_limited_patience_is_limited_also_for_a_new_store(path: Path) -> None:
    path.parent.mkdir(parents=True)
    creator = sqlite3.connect(path, isolation_level=None)
    creator.execute("PRAGMA journal_mode=WAL")
    creator.execute("BEGIN IMMEDIATE")
    hasty = SqliteStore(path, patience=0.1)
    with pytest.raises(StoreError, match="locked"):
        hasty.put(b"body")
    creator.rollback()
    creator.close()
    hasty.put(b"body")
    hasty.close()


def test_files_and_folders_are_for_the_user_alone(store: SqliteStore, path: Path) -> None:
    before = os.umask(0)
    try:
        store.put(b"body")
    finally:
        os.umask(before)
    for made in (path.parent.parent, path.parent):
        assert made.stat().st_mode & 0o777 == 0o700
    files = sorted(path.parent.iterdir())
    assert {file.name for file in files} == {"one.pagein", "one.pagein-shm", "one.pagein-wal"}
    assert [file.stat().st_mode & 0o777 for file in files] == [0o600] * 3


def test_a_store_readable_by_others_is_made_private(path: Path, store: SqliteStore) -> None:
    store.put(b"body")
    store.close()
    path.chmod(0o644)
    SqliteStore(path).put(b"more")
    assert [file.stat().st_mode & 0o777 for file in path.parent.iterdir()] == [0o600] * 3


def test_an_existing_folder_keeps_its_mode(tmp_path: Path) -> None:
    tmp_path.chmod(0o755)
    SqliteStore(tmp_path / "one.pagein").put(b"body")
    assert tmp_path.stat().st_mode & 0o777 == 0o755


def test_a_path_that_is_no_file_is_refused_and_unchanged(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe", 0o644)
    (tmp_path / "pipe").chmod(0o644)
    with pytest.raises(StoreError, match="not a file"):
        SqliteStore(tmp_path / "pipe").put(b"body")
    assert (tmp_path / "pipe").stat().st_mode & 0o777 == 0o644


def test_a_file_of_another_kind_is_refused_and_left_alone(tmp_path: Path) -> None:
    notes = tmp_path / "notes.txt"
    notes.write_text("not a store")
    notes.chmod(0o644)
    with pytest.raises(StoreError, match=r"notes\.txt is not a database; choose another path"):
        SqliteStore(notes).put(b"body")
    assert (notes.read_text(), notes.stat().st_mode & 0o777) == ("not a store", 0o644)


@pytest.mark.parametrize("mode", ["delete", "wal"])
def test_the_database_of_another_program_is_refused_and_left_alone(tmp_path: Path, mode: str) -> None:
    other = tmp_path / "app.db"
    with closing(sqlite3.connect(other)) as app:
        app.execute(f"PRAGMA journal_mode={mode}")
        app.execute("CREATE TABLE user (name)")
    other.chmod(0o664)
    before = other.read_bytes()
    with pytest.raises(StoreError, match=r"app\.db is a SQLite file, but not a store of pagein"):
        SqliteStore(other).put(b"body")
    assert (other.read_bytes(), other.stat().st_mode & 0o777) == (before, 0o664)


def test_another_process_finds_what_was_stored(store: SqliteStore, path: Path) -> None:
    stored = an_object(store, b"body" * 1000)
    store.put_objects([(stored, b"body" * 1000)])
    fresh = SqliteStore(path)
    assert fresh.find(stored.id) == stored
    assert fresh.get(stored.content) == b"body" * 1000
    assert fresh.secret() == store.secret()


def test_content_is_compressed_where_that_helps(store: SqliteStore, path: Path) -> None:
    store.put(b"again and again " * 10_000)
    store.put(os.urandom(10_000))
    sizes = _sql(path, "SELECT codec, length(packed) < 1000 FROM blob JOIN alone USING(number) ORDER BY blob.number")
    assert sizes == [(1, 1), (0, 0)]


@pytest.mark.parametrize("content", [b"short", b"long enough to be compressed " * 100])
@pytest.mark.parametrize(
    "harm",
    [
        "UPDATE blob SET data = substr(data, 1, length(data) - 1)",
        "UPDATE blob SET data = zeroblob(40)",
        "UPDATE blob SET codec = 9",
    ],
)
def test_damage_is_noticed_and_healed_by_putting_again(
    store: SqliteStore, path: Path, content: bytes, harm: str
) -> None:
    name = store.put(content)
    _sql(path, harm)
    with pytest.raises(DamagedBlob):
        store.get(name)
    assert store.put(content) == name
    assert store.get(name) == content


def test_a_checksum_catches_a_flipped_bit(store: SqliteStore, path: Path) -> None:
    content = b"".join(b"line %d\n" % number for number in range(1000))
    name = store.put(content)
    ((data,),) = _sql(path, "SELECT packed FROM alone")
    assert isinstance(data, bytes)
    for place in range(4, len(data), 97):
        flipped = data[:place] + bytes([data[place] ^ 1]) + data[place + 1 :]
        _sql(path, "UPDATE alone SET packed = ?", flipped)
        with pytest.raises(DamagedBlob):
            store.get(name)


def test_an_entry_that_cannot_be_read_is_a_value(store: SqliteStore, path: Path) -> None:
    store.append("one", [Entry("a", None, NoteEntry("n", "{}")), Entry("b", "a", NoteEntry("n", "{}"))])
    _sql(path, "UPDATE journal SET line = ? WHERE id = CAST('a' AS BLOB)", b"{torn")
    first, second = store.entries("one")
    assert isinstance(first, UnreadableLine)
    assert isinstance(second, Entry)


def test_a_batch_is_stored_whole_or_not_at_all(store: SqliteStore, path: Path) -> None:
    store.put(b"first")
    _sql(
        path,
        "CREATE TRIGGER full BEFORE INSERT ON blob WHEN (SELECT count(*) FROM blob) >= 3 BEGIN SELECT raise(ABORT, 'no room'); END",
    )
    with pytest.raises(StoreError, match="no room"):
        store.put_many([b"second", b"third", b"fourth"])
    assert list(store.names()) == [ContentHash.of(b"first")]
    stored = an_object(store, b"fifth")
    others = [(an_object(store, content), content) for content in (b"sixth", b"seventh")]
    with pytest.raises(StoreError, match="no room"):
        store.put_objects([(stored, b"fifth"), *others])
    assert store.find(stored.id) is None


def test_a_full_disk_is_a_store_error_and_costs_nothing_that_was_stored(store: SqliteStore) -> None:
    name = store.put(b"before")
    with store._database.open_reader() as connection:
        (pages,) = connection.execute("PRAGMA page_count").fetchone()
        connection.execute(f"PRAGMA max_page_count={pages + 2}")
    with pytest.raises(StoreError, match="full"):
        store.put(os.urandom(200_000))
    assert store.get(name) == b"before"
    store.put(b"small still fits")


def test_an_error_within_a_write_undoes_only_that_write(store: SqliteStore, path: Path) -> None:
    store.put(b"first")
    _sql(
        path,
        "CREATE TRIGGER full BEFORE INSERT ON blob WHEN (SELECT count(*) FROM blob) >= 3 BEGIN SELECT raise(ABORT, 'no room'); END",
    )
    with store.exclusive():
        store.put(b"second")
        with pytest.raises(StoreError):
            store.put_many([b"third", b"fourth"])
    assert set(store.names()) == {ContentHash.of(b"first"), ContentHash.of(b"second")}


def test_an_exception_of_the_caller_during_a_write_is_no_store_error(store: SqliteStore) -> None:
    with pytest.raises(FileNotFoundError), store.exclusive():
        raise FileNotFoundError("a file of the workspace")


@pytest.mark.parametrize("content", [b"this is no database at all, but text " * 40, None])
def test_a_file_that_is_no_store_is_refused_and_left_alone(tmp_path: Path, content: bytes | None) -> None:
    path = tmp_path / "file.db"
    if content is None:
        _sql(path, "CREATE TABLE precious(a)")
    else:
        path.write_bytes(content)
    before = path.read_bytes()
    with pytest.raises(StoreError):
        SqliteStore(path).put(b"body")
    assert path.read_bytes() == before


def test_a_store_in_a_place_that_cannot_be_is_a_store_error(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("not a folder")
    with pytest.raises(StoreError):
        SqliteStore(tmp_path / "file" / "one.pagein").put(b"body")


def test_a_store_of_a_newer_pagein_is_refused(store: SqliteStore, path: Path) -> None:
    store.put(b"body")
    store.close()
    _sql(path, "INSERT INTO migration(number, name) VALUES(?, 'from the future')", len(MIGRATIONS) + 1)
    with pytest.raises(StoreError, match="newer"):
        SqliteStore(path).put(b"more")


def test_a_store_of_the_first_version_is_brought_up_to_date(path: Path) -> None:
    path.parent.mkdir(parents=True)
    connection = sqlite3.connect(path)
    connection.execute(f"PRAGMA application_id={APPLICATION_ID}")
    connection.execute("CREATE TABLE migration(number INTEGER PRIMARY KEY, name TEXT NOT NULL)")
    for statement in MIGRATIONS[0][1]:
        connection.execute(statement)
    connection.execute("INSERT INTO migration VALUES(1, 'first')")
    connection.execute(
        "INSERT INTO blob(hash, codec, data) VALUES(?, 0, 'x')", (bytes.fromhex(ContentHash.of(b"x").hex),)
    )
    connection.commit()
    connection.close()
    store = SqliteStore(path)
    assert store.has(ContentHash.of(b"x"))
    assert _sql(path, "SELECT count(*) FROM migration") == [(len(MIGRATIONS),)]


def test_a_closed_store_is_a_store_error(store: SqliteStore) -> None:
    store.put(b"body")
    store.close()
    with pytest.raises(StoreError, match="closed"):
        store.put(b"more")


def test_an_object_of_a_neighbouring_store_is_known_to_be_elsewhere(tmp_path: Path) -> None:
    one, other = SqliteStore(tmp_path / "one.pagein"), SqliteStore(tmp_path / "other.pagein")
    (tmp_path / "rubbish.pagein").write_text("no store")
    _sql(tmp_path / "foreign.pagein", "CREATE TABLE object(id)")
    stored = an_object(other, b"body")
    other.put_objects([(stored, b"body")])
    one.put(b"mine")
    assert one.elsewhere(stored.id)
    assert not one.elsewhere(ObjectId("pg-00000000-00000000"))
    assert not other.elsewhere(stored.id)


def test_threads_share_a_store(store: SqliteStore) -> None:
    contents = [[f"{thread}-{number % 30}".encode() * 20 for number in range(60)] for thread in range(4)]
    failures: list[BaseException] = []

    def work(mine: list[bytes]) -> None:
        try:
            for content in mine:
                assert store.get(store.put(content)) == content
        except BaseException as problem:  # noqa: BLE001 -- handed to the test
            failures.append(problem)

    threads = [threading.Thread(target=work, args=(mine,)) for mine in contents]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []
    assert len(list(store.names())) == 4 * 30


def _write_many(path: Path, start: int, secrets: "multiprocessing.Queue[bytes]") -> None:
    store = SqliteStore(path)
    for number in range(start, start + 60):
        content = f"content {number} ".encode() * 50
        store.put_objects([(an_object(store, content, call_id=str(number)), content)])
    secrets.put(store.secret())
    store.close()


def test_two_processes_write_one_new_store_at_once(path: Path) -> None:
    context = multiprocessing.get_context("spawn")
    secrets: multiprocessing.Queue[bytes] = context.Queue()
    # Ranges overlap: the same content is put by both.
    workers = [context.Process(target=_write_many, args=(path, start, secrets)) for start in (0, 30)]
    for worker in workers:
        worker.start()
    found = {secrets.get(timeout=300) for _ in workers}
    for worker in workers:
        worker.join(300)
        assert worker.exitcode == 0
    assert len(found) == 1
    store = SqliteStore(path)
    assert len(list(store.names())) == 90
    assert all(store.get(name) for name in store.names())


_WRITER = textwrap.dedent("""
    import sys
    from pathlib import Path
    from pagein.store.sqlite.sqlite_store import SqliteStore
    from pagein.testing.blob_store import an_object
    store = SqliteStore(Path(sys.argv[1]))
    for number in range(100_000):
        content = (f"content {number} " * 200).encode()
        stored = an_object(store, content, call_id=str(number))
        store.put_objects([(stored, content)])
        print(stored.id, flush=True)
""")


@pytest.mark.parametrize("after", [1, 7, 40])
def test_stored_content_survives_kill_9_at_any_moment(path: Path, after: int) -> None:
    with subprocess.Popen([sys.executable, "-c", _WRITER, str(path)], stdout=subprocess.PIPE, text=True) as writer:  # noqa: S603 -- our own interpreter
        assert writer.stdout is not None
        told = [writer.stdout.readline().strip() for _ in range(after)]
        writer.send_signal(signal.SIGKILL)
        told += [line.strip() for line in writer.stdout.read().splitlines() if line.count("-") == 2]
    store = SqliteStore(path)
    whole = [ObjectId.parse(line) for line in told if len(line) == len("pg-01234567-89abcdef")]
    assert len(whole) >= after
    for object_id in whole:
        stored = store.find(object_id)
        assert stored is not None
        assert store.get(stored.content).startswith(b"content ")
    assert _sql(path, "PRAGMA integrity_check") == [("ok",)]


def test_a_full_disk_refuses_a_new_store_at_once(path: Path) -> None:
    """A caller that waits for a process which may be switching to WAL took 5 seconds for each try, and pi gave up."""
    code = f"""
        import resource, signal, time
        from pathlib import Path
        from pagein.errors import StoreError
        from pagein.store.sqlite.sqlite_store import SqliteStore
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))
        begun = time.monotonic()
        try:
            SqliteStore(Path({str(path)!r})).put(b"text")
        except StoreError:
            print(time.monotonic() - begun)
    """
    done = subprocess.run([sys.executable, "-c", textwrap.dedent(code)], capture_output=True, text=True, check=True)  # noqa: S603 - ours
    assert float(done.stdout) < 4


def test_each_workspace_has_its_own_recognisable_store_file() -> None:
    one, other = store_name("/srv/work/my project"), store_name("/srv/other/my project")
    assert one != other
    assert one.startswith("my-project-")
    assert one.endswith(".pagein")
    assert store_name("/").startswith("workspace-")
    assert default_path("/srv/x").name == store_name("/srv/x")
