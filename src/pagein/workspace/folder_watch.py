"""Follow the files of a folder during work: a background thread reacts to file system events.

Rules of this file
------------------
1. The watch starts before the files are compared, so that no change between the two is missed.
2. Events only name paths to check. The actual change is found by comparing the file with its object (`followed_files.py`).
3. A missing file counts as deleted only after a short delay: many programs save by deleting and recreating a file.
4. Events may be lost (queue overflow, remounted folders), so everything is compared again from time to time.
5. A failure of the store or the disk does not end the watch: pending paths are checked again.
"""

import threading
import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path, PurePath
from typing import TYPE_CHECKING, Final

from pagein.errors import StoreError
from pagein.workspace.followed_files import FileObjects, FollowOutcome

if TYPE_CHECKING:
    from watchfiles import Change

_STEP_MS: Final = 20
_DEBOUNCE_MS: Final = 400
_TICK_MS: Final = 200
_GRACE: Final = 1.0
_ANEW: Final = 600.0
_UNWATCHED: Final = 15.0
_VERSION_CONTROL: Final = frozenset((".git", ".hg", ".svn", ".jj"))
Tell = Callable[[FollowOutcome], object]


class Watcher:
    """Keeps objects up to date with their files. `start` and `stop` are called once each, by the owner of the files.

    tell: receives each followed change, in the watcher's thread
    grace: seconds a file may be missing before it counts as deleted
    anew: seconds between complete comparisons
    """

    def __init__(
        self, folder: str, files: FileObjects, tell: Tell | None = None, *, grace: float = _GRACE, anew: float = _ANEW
    ) -> None:
        self._folder = str(Path(folder).resolve())
        self._files, self._tell, self._grace, self._anew = files, tell, grace, anew
        self._stopped = threading.Event()
        self._armed = threading.Event()
        self._thread: threading.Thread | None = None
        self._gone: dict[str, float] = {}
        self._again: set[str] = set()
        self.trouble: Exception | None = None
        """The last failure; None after a success."""

    def start(self, timeout: float | None = 30.0) -> bool:
        """Start the watch. Return once everything was compared, or False after `timeout` seconds."""
        self._thread = threading.Thread(target=self._run, name="pagein file watch", daemon=True)
        self._thread.start()
        return self._armed.wait(timeout)

    def stop(self, timeout: float | None = 10.0) -> bool:
        """Stop the watch. Return whether the thread ended within `timeout` seconds."""
        self._stopped.set()
        if self._thread is None:
            return True
        self._thread.join(timeout)
        return not self._thread.is_alive()

    def _run(self) -> None:
        while not self._stopped.is_set():
            try:
                self._watch()
            except (OSError, RuntimeError) as problem:
                # no more watches available, or the folder is missing: compare periodically instead
                self.trouble = problem
                self._look_again()
                self._armed.set()
                self._stopped.wait(min(self._anew, _UNWATCHED))

    def _watch(self) -> None:
        compared, watched = None, _identity(self._folder)
        for paths in folder_events(self._folder, self._stopped):
            if _identity(self._folder) != watched:
                raise FileNotFoundError(f"{self._folder} is another folder now")
            now = time.monotonic()
            if compared is None or now - compared >= self._anew:
                compared = now if self._look_again() else None
                self._armed.set()
            self._look_at(paths, now)

    def _look_again(self) -> bool:
        return self._carefully(self._files.look_again) is not None

    def _look_at(self, paths: Iterable[str], now: float) -> None:
        due = {path for path, since in self._gone.items() if now - since >= self._grace}
        asked = {*paths, *self._again}
        if due:
            done = self._carefully(lambda: self._files.news(due).done)
            if done is not None:
                self._gone = {path: since for path, since in self._gone.items() if path not in due}
        if asked:
            self._again = set(asked)
            self._carefully(lambda: self._first_look(asked, now))

    def _first_look(self, asked: Iterable[str], now: float) -> list[FollowOutcome]:
        news = self._files.news(asked, patient=True)
        self._again = set()
        for path in news.doubtful:
            self._gone.setdefault(path, now)
        return news.done

    def _carefully(self, work: Callable[[], list[FollowOutcome]]) -> list[FollowOutcome] | None:
        try:
            done = work()
        except StoreError as problem:
            self.trouble = problem
            return None
        self.trouble = None
        for one in done:
            if self._tell is not None:
                self._tell(one)
        return done


def folder_events(folder: str, stopped: threading.Event) -> Iterator[set[str]]:
    """Yield sets of changed paths; an empty set after a quiet moment, and at once in the beginning.

    Raises OSError or RuntimeError where no more can be watched.
    """
    from watchfiles import watch

    depth = len(PurePath(folder).parts)

    def is_relevant(change: "Change", path: str) -> bool:  # noqa: ARG001 - the watch calls it so
        return not _VERSION_CONTROL.intersection(PurePath(path).parts[depth:])

    for changes in watch(
        folder,
        watch_filter=is_relevant,
        step=_STEP_MS,
        debounce=_DEBOUNCE_MS,
        rust_timeout=_TICK_MS,
        yield_on_timeout=True,
        stop_event=stopped,
        raise_interrupt=False,
        ignore_permission_denied=True,
    ):
        yield {path for _, path in changes}


def _identity(folder: str) -> tuple[int, int]:
    about = Path(folder).stat()
    return about.st_dev, about.st_ino
