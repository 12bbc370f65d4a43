"""The watcher on real folders, with real events."""

import os
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

import pytest
from tests.workspace.test_followed_files import Desk

from pagein.archive import files_of, watch
from pagein.errors import StoreError
from pagein.model.writes import Outcome, Write
from pagein.store.memory.memory_store import MemoryStore
from pagein.store.sqlite.sqlite_store import SqliteStore
from pagein.workspace.folder_watch import Watcher
from pagein.workspace.followed_files import FileObjects, FollowOutcome, News

_PATIENCE = 120.0


class Watched(Desk):
    """A desk whose files are watched. Knows what the watcher told."""

    def __init__(self, path: Path, store: MemoryStore | None = None, grace: float = 60.0) -> None:
        super().__init__(path, store)
        self.told: list[FollowOutcome] = []
        self.watcher = Watcher(str(path), self.files, self.told.append, grace=grace)

    def watch(self) -> None:
        assert self.watcher.start()

    @property
    def deeds(self) -> list[str]:
        """What the watcher told so far: of each change after it is in the store."""
        return [one.deed for one in self.told]

    def content(self, version_id: str) -> str | None:
        current = self.store.current(version_id)
        assert current is not None
        return self.store.content(current)


def until(true: Callable[[], object]) -> None:
    deadline = time.monotonic() + _PATIENCE
    while not true():
        assert time.monotonic() < deadline, "it did not happen in time"
        time.sleep(0.01)


@pytest.fixture
def desk(tmp_path: Path) -> Iterator[Watched]:
    folder = tmp_path / "work"
    folder.mkdir()
    desk = Watched(folder)
    yield desk
    assert desk.watcher.stop(60)


def test_a_change_is_followed_at_once(desk: Watched) -> None:
    version = desk.touch("a.txt", "one")
    desk.watch()
    desk.put("a.txt", "two")
    until(lambda: desk.content(version.id) == "two")
    until(lambda: desk.told)
    assert desk.deeds == ["changed"]
    assert desk.now(version).writer.kind == "watcher"


def test_what_happened_before_the_watch_began_is_found_when_it_begins(desk: Watched) -> None:
    version = desk.touch("a.txt", "one")
    desk.put("a.txt", "two")
    desk.watch()
    assert desk.content(version.id) == "two"


def test_a_move_is_followed(desk: Watched) -> None:
    version = desk.touch("a.txt", "one")
    desk.watch()
    desk.move("a.txt", "deep/b.txt")
    until(lambda: desk.now(version).metadata["path"] == str(desk.path / "deep/b.txt"))
    until(lambda: desk.told)
    assert desk.deeds == ["moved"]
    desk.put("deep/b.txt", "two")
    until(lambda: desk.content(version.id) == "two")


def test_a_deletion_is_followed_after_a_moment(tmp_path: Path) -> None:
    desk = Watched(tmp_path, grace=0.3)
    version = desk.touch("a.txt", "one")
    desk.watch()
    (desk.path / "a.txt").unlink()
    until(lambda: desk.now(version).deleted)
    until(lambda: desk.told)
    assert desk.deeds == ["deleted"]
    assert desk.watcher.stop(60)


def test_a_save_that_deletes_and_makes_anew_is_a_change(tmp_path: Path) -> None:
    desk = Watched(tmp_path)
    version = desk.touch("a.txt", "one")
    desk.watch()
    (desk.path / "a.txt").unlink()
    until(lambda: desk.watcher._gone)
    desk.put("a.txt", "two")
    until(lambda: desk.content(version.id) == "two")
    until(lambda: desk.told)
    assert desk.deeds == ["changed"]
    assert desk.watcher.stop(60)


def test_a_save_by_another_file_renamed_over_it_is_a_change(desk: Watched) -> None:
    version = desk.touch("a.txt", "one")
    desk.watch()
    for number in range(5):
        desk.put("a.txt.tmp", f"save {number}")
        (desk.path / "a.txt.tmp").replace(desk.path / "a.txt")
    until(lambda: desk.content(version.id) == "save 4")
    assert set(desk.deeds) <= {"changed"}
    assert len(list(desk.files.known_files())) == 1


def test_rapid_changes_end_in_the_right_state(desk: Watched) -> None:
    versions = [desk.touch(f"{number}.txt", "start") for number in range(20)]
    desk.watch()
    for turn in range(10):
        for number in range(20):
            desk.put(f"{number}.txt", f"turn {turn}")
    until(lambda: all(desk.content(version.id) == "turn 9" for version in versions))


def test_files_in_folders_that_were_made_later_are_followed(desk: Watched) -> None:
    desk.watch()
    version = desk.touch("new/deep/a.txt", "one")
    desk.put("new/deep/a.txt", "two")
    until(lambda: desk.content(version.id) == "two")


def test_files_that_nobody_touched_are_not_kept(desk: Watched) -> None:
    version = desk.touch("a.txt", "one")
    desk.watch()
    desk.put("other.txt", "unknown")
    desk.put(".env", "SECRET")
    desk.put("a.txt", "two")
    until(lambda: desk.content(version.id) == "two")
    assert len(list(desk.files.known_files())) == 1


def test_stopping_is_final(desk: Watched) -> None:
    version = desk.touch("a.txt", "one")
    desk.watch()
    assert desk.watcher.stop(60)
    desk.put("a.txt", "two")
    time.sleep(0.3)
    assert desk.content(version.id) == "one"
    assert not [thread for thread in threading.enumerate() if thread.name == "pagein file watch"]


class _Failing(MemoryStore):
    """A store that is out of order for a while."""

    broken = False

    def write(self, write: Write) -> Outcome:
        if self.broken:
            raise StoreError("disk is full")
        return super().write(write)


def test_what_could_not_be_stored_is_looked_at_again(tmp_path: Path) -> None:
    store = _Failing()
    desk = Watched(tmp_path, store)
    version = desk.touch("a.txt", "one")
    desk.watch()
    store.broken = True
    desk.put("a.txt", "two")
    until(lambda: desk.watcher.trouble is not None)
    assert desk.content(version.id) == "one"
    store.broken = False
    until(lambda: desk.content(version.id) == "two")
    assert desk.watcher.trouble is None
    assert desk.watcher.stop(60)


def test_a_folder_that_is_replaced_is_watched_anew(desk: Watched) -> None:
    version = desk.touch("a.txt", "one")
    desk.watch()
    desk.path.rename(desk.path.with_name("old"))
    desk.path.mkdir()
    desk.put("a.txt", "two")
    until(lambda: desk.content(version.id) == "two")
    assert desk.store.current(version.id) is not None


def test_a_folder_that_cannot_be_watched_is_compared_now_and_then(tmp_path: Path) -> None:
    desk = Watched(tmp_path / "none")
    desk.watcher = Watcher(str(tmp_path / "none"), desk.files, anew=0.1)
    desk.watch()
    version = desk.touch("a.txt", "one")
    desk.put("a.txt", "two")
    until(lambda: desk.content(version.id) == "two")
    assert desk.watcher.stop(60)


def test_events_that_were_lost_are_made_up_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    desk = Watched(tmp_path)
    version = desk.touch("a.txt", "one")
    monkeypatch.setattr(FileObjects, "news", lambda *_arguments, **_options: pytest.fail("no event should come"))
    elsewhere = tmp_path / "quiet"
    elsewhere.mkdir()
    desk.watcher = Watcher(str(elsewhere), desk.files, anew=0.3)
    desk.watch()
    desk.put("a.txt", "two")
    until(lambda: desk.content(version.id) == "two")
    assert desk.watcher.stop(60)


class _Noting(FileObjects):
    """Files that note where they were told to look."""

    seen: list[str]

    def news(self, paths: Iterable[str], *, patient: bool = False) -> News:
        self.seen += paths
        return super().news(paths, patient=patient)


def test_version_control_makes_no_work(desk: Watched) -> None:
    desk.files.__class__ = _Noting
    seen: list[str] = []
    desk.files.seen = seen  # type: ignore[attr-defined]
    desk.watch()
    desk.put(".git/objects/ab/cd", "x")
    desk.put("sub/.git/HEAD", "x")
    desk.put("last.txt", "x")
    until(lambda: str(desk.path / "last.txt") in seen)
    assert not [path for path in seen if f"{os.sep}.git" in path]


def test_the_files_of_a_folder_are_followed_into_a_real_store(tmp_path: Path) -> None:
    folder = tmp_path / "work"
    folder.mkdir()
    store = SqliteStore(tmp_path / "store.pagein")
    files = files_of(store, folder)
    (folder / "Plan.md").write_text("one [[Later]]")
    version = files.touch("Plan.md")
    assert version is not None
    told: list[FollowOutcome] = []
    (folder / "Plan.md").write_text("two [[Later]]")
    with watch(files, folder, told.append):
        assert [one.deed for one in told] == ["changed"]
        (folder / "Plan.md").rename(folder / "Moved.md")
        until(lambda: len(told) == 2)
    current = store.current(version.id)
    assert current is not None
    assert (current.nickname, current.metadata["path"]) == ("Moved", str(folder / "Moved.md"))
    assert [store.content(one) for one in store.history(version.id)] == [
        "one [[Later]]",
        "two [[Later]]",
        "two [[Later]]",
    ]
    again = files_of(store, folder)
    assert again.look_again() == []
    store.close()
