"""Followed files on a real disk: only touched files are opened, nothing outside, nothing excluded, nothing half-written."""

import os
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import pytest
from tests.memory.told_journal import Journal
from tests.past_sessions.conftest import KEY

from pagein.erasure import forget_texts
from pagein.memory.file_sightings import NewNote, journal_notes
from pagein.memory.indexer import Indexer
from pagein.memory.projection_check import projection_faults
from pagein.memory.workspace_files import WorkspaceFiles
from pagein.model.derived_versions import FILES
from pagein.model.entries import Entry, NoteEntry
from pagein.model.memory_notes import FileSightingNote, SessionPlaceNote
from pagein.store.upkeep.sqlite_upkeep import SqliteUpkeep
from pagein.workspace.folder import Folder

TEXT = "one = 1\ntwo = 2\n"


@pytest.fixture
def work(tmp_path: Path) -> Path:
    (tmp_path / "work").mkdir()
    return tmp_path / "work"


@pytest.fixture
def store(tmp_path: Path) -> Iterator[SqliteUpkeep]:
    with closing(SqliteUpkeep(tmp_path / "one.pagein")) as made:
        journal_notes(made, [NewNote(SessionPlaceNote("a", "here", follows=True), 1.0)])
        yield made


def touch(store: SqliteUpkeep, *paths: Path) -> None:
    """Let a session write these files."""
    agent = Journal(store, "a", time.time() - 100)
    for number, path in enumerate(paths):
        agent.write(f"call-{number}", TEXT, str(path))
    Indexer(store).catch_up()


def sightings(store: SqliteUpkeep) -> list[FileSightingNote]:
    notes = (
        one.body.note for _, one in store.news(FILES) if isinstance(one, Entry) and isinstance(one.body, NoteEntry)
    )
    return [one for one in notes if isinstance(one, FileSightingNote)]


def settled(store: SqliteUpkeep, files: WorkspaceFiles, later: float = 0.0) -> list[tuple[str, str]]:
    """Let the files be looked at and told. Return what was told: op and name."""
    before = len(sightings(store))
    now = time.time() + 1.0 + later
    files.look(now)
    files.settle(now, lambda _: False)
    Indexer(store).catch_up()
    return [(one.op, Path(one.path).name) for one in sightings(store)[before:]]


def following(store: SqliteUpkeep, work: Path) -> WorkspaceFiles:
    return WorkspaceFiles(store, Folder(str(work)), "here")


def test_only_what_no_call_told_is_told_and_only_once(store: SqliteUpkeep, work: Path) -> None:
    one, two = work / "one.py", work / "two.py"
    for path in (one, two, work / "other.py"):
        path.write_text(TEXT)
    touch(store, one, two)
    files = following(store, work)
    assert settled(store, files) == []
    one.write_text("one = 11\n")
    (work / "other.py").write_text("nobody touched it")
    files.hear([str(one), str(work / "other.py")])
    assert settled(store, files) == [("change", "one.py")]
    assert settled(store, files) == []
    assert settled(store, following(store, work)) == [], "the next gateway finds nothing new"


def test_what_happened_while_nobody_watched_is_found_by_comparing(store: SqliteUpkeep, work: Path) -> None:
    names = ("one.py", "two.py", "three.py")
    for number, name in enumerate(names):
        (work / name).write_text(TEXT + f"number = {number}\n")
    touch(store, *(work / name for name in names))
    files = following(store, work)
    assert sorted(settled(store, files)) == [("change", name) for name in sorted(names)]
    (work / "one.py").write_text("one = 11\n")
    (work / "two.py").rename(work / "second.py")
    (work / "three.py").unlink()
    found = settled(store, following(store, work))
    assert sorted(found) == [("change", "one.py"), ("delete", "three.py"), ("move", "second.py")]


def outside_of(work: Path) -> Path:
    outside = work.parent / "outside.py"
    outside.write_text("outside = 1\n")
    return outside


def to_a_link(work: Path) -> Path:
    outside = outside_of(work)
    (work / "linked.py").symlink_to(outside)
    return work / "linked.py"


def behind_a_linked_folder(work: Path) -> Path:
    outside = outside_of(work)
    (work / "folder").symlink_to(outside.parent)
    return work / "folder" / outside.name


def excluded(work: Path) -> Path:
    (work / "keys").mkdir()
    (work / "keys" / "server.pem").write_text("secret")
    (work / "link.py").symlink_to(work / "keys" / "server.pem")
    return work / "link.py"


def too_large(work: Path) -> Path:
    (work / "large.py").write_text("x" * (5 << 20))
    return work / "large.py"


def pipe(work: Path) -> Path:
    os.mkfifo(work / "pipe.py")
    return work / "pipe.py"


@pytest.mark.parametrize("made", [outside_of, to_a_link, behind_a_linked_folder, excluded, too_large, pipe])
def test_a_file_outside_or_excluded_is_never_told(
    store: SqliteUpkeep, work: Path, made: Callable[[Path], Path]
) -> None:
    path = made(work)
    touch(store, path)
    files = following(store, work)
    files.hear([str(path), os.path.realpath(path)])
    files.hear_all()
    assert settled(store, files) == []


def test_a_text_with_a_key_is_not_stored(store: SqliteUpkeep, work: Path) -> None:
    path = work / "one.py"
    path.write_text(TEXT)
    touch(store, path)
    files = following(store, work)
    settled(store, files)
    path.write_text(f"key = '{KEY}'\n")
    files.hear([str(path)])
    assert settled(store, files) == [("change", "one.py")]
    assert not any(KEY.encode() in store.get(name) for name in store.names())


def test_a_forgotten_text_does_not_come_back_from_the_disk(store: SqliteUpkeep, work: Path, tmp_path: Path) -> None:
    path, private = work / "one.py", "the name of my cat is Fluffington\n"
    path.write_text(TEXT)
    touch(store, path)
    files = following(store, work)
    settled(store, files)
    path.write_text(TEXT + private)
    files.hear([str(path)])
    assert settled(store, files) == [("change", "one.py")]
    forget_texts(store, [private.strip()], None, tmp_path / "log")
    assert not any(b"Fluffington" in store.get(name) for name in store.names())
    path.write_text(private + TEXT)
    again = following(store, work)
    settled(store, again)
    assert settled(store, again) == []
    assert not any(b"Fluffington" in store.get(name) for name in store.names())
    assert list(projection_faults(store)) == []


def test_a_file_that_is_being_written_is_not_looked_at(store: SqliteUpkeep, work: Path) -> None:
    path = work / "one.py"
    path.write_text(TEXT)
    touch(store, path)
    files = following(store, work)
    settled(store, files)
    path.write_text("")
    files.hear([str(path)])
    files.look(path.stat().st_ctime + 0.01)
    assert not files.is_waiting
    path.write_text(TEXT)
    assert settled(store, files) == []


def test_a_file_that_is_saved_by_deleting_and_creating_it_is_never_deleted(store: SqliteUpkeep, work: Path) -> None:
    path = work / "one.py"
    path.write_text(TEXT)
    touch(store, path)
    files = following(store, work)
    settled(store, files)
    path.unlink()
    files.hear([str(path)])
    now = time.time()
    files.look(now)
    files.settle(now, lambda _: False)
    path.write_text("one = 11\n")
    files.hear([str(path)])
    assert settled(store, files) == [("change", "one.py")]
