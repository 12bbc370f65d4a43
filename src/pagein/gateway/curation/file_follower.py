"""Note the machine of each session, and follow the sessions' files, in a thread beside the calls.

Rules of this file
------------------
1. A session is of this machine if its client asks from here, and the folder that it names is here.
2. A folder is watched while its sessions work, and a while after. The root and a user's home are never watched.
3. What was found is journaled when the agents of the folder rest, also those behind other gateways of the store, and the
   objects are up to the journals.
4. A failing store or disk costs only time.
"""

import logging
import queue
import threading
import time
from collections.abc import Callable, Iterable
from contextlib import closing, suppress
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Final

from pagein.errors import BadInput, PageinError
from pagein.gateway.curation.agent_work import AgentWork
from pagein.gateway.curation.journaled_work import JournaledWork
from pagein.memory.file_sightings import NewNote, journal_notes
from pagein.memory.session_machines import SessionMachines
from pagein.memory.session_summary import SessionSummary
from pagein.memory.workspace_files import WorkspaceFiles
from pagein.model.entries import Entry, MessageEntry, NoteEntry
from pagein.model.journal_notes import SystemPromptNote
from pagein.model.memory_notes import SessionPlaceNote
from pagein.model.messages import Text, ToolCall
from pagein.policy.clients.shell_changes import runs_on
from pagein.ports import DerivedLayer, WholeStore
from pagein.workspace.folder import Folder
from pagein.workspace.folder_watch import folder_events
from pagein.workspace.machine import machine

_PAUSE: Final = 0.2
_LONGEST_PAUSE: Final = 30.0
_PATIENCE: Final = 600.0
"""Seconds of silence after which a conversation that is at work does not keep others waiting."""
_IDLE: Final = 3_600.0
"""Seconds after the last request for which a folder is watched."""
_MOST_FOLDERS: Final = 16
_BETWEEN: Final = 0.5
"""Seconds between two comparisons of a folder with the journals, at least."""
_LATE: Final = 0.5
"""Seconds by which a journal may tell of a request or answer later than it came here."""
_SHARE: Final = 20.0
"""Seconds of rest for each second of such a comparison."""
_FIRST_ENTRIES: Final = 64
"""Entries of a journal among which the client names its folder."""
_ANEW: Final = 600.0
"""Seconds between two looks at all followed files, because events may be lost."""


@dataclass(frozen=True, slots=True)
class FollowTerms:
    """How files are followed.

    follows: value of the setting `follow_files`. excluded: patterns of files that are never read.
    """

    follows: str
    excluded: tuple[str, ...]


class FileFollower:
    """A thread that follows files. `work` is told of requests and answers by the curator.

    open_store: opens the gateway's store, and makes none; raises BadInput if there is none. layer: the objects over it.
    """

    def __init__(
        self,
        open_store: Callable[[], WholeStore],
        layer: DerivedLayer,
        terms: FollowTerms,
        logger: logging.Logger | None = None,
    ) -> None:
        self.work = AgentWork()
        self._open_store = open_store
        self._layer = layer
        self._terms = terms
        self._logger = logger if logger is not None else logging.getLogger(__name__)
        self._ended = threading.Event()
        self._thread: threading.Thread | None = None
        self._folders: dict[str, _WatchedFolder] = {}
        self._folder_of: dict[str, str] = {}
        self._asked: dict[str, float] = {}
        self._background = _BackgroundCommands()

    def start(self, busy: Callable[[], bool]) -> None:
        """Begin. busy: not asked, because the agents' own work tells more."""
        del busy
        self._thread = threading.Thread(target=self._run, name="pagein-files", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """End the thread, after a last look at the files."""
        self._ended.set()
        self.work.came_anew.set()
        if self._thread is not None:
            self._thread.join()

    def _wait(self) -> bool:
        """Wait a moment, or until a session asks for the first time. Return whether the thread shall end."""
        self.work.came_anew.wait(_PAUSE)
        self.work.came_anew.clear()
        return self._ended.is_set()

    def _run(self) -> None:
        pause = _PAUSE
        while not self._ended.is_set():
            try:
                self._follow_until_the_end()
            except BadInput:  # there is no store yet, or it was deleted: it is not made here
                self._ended.wait(_PAUSE)
            except (PageinError, OSError) as problem:
                if pause < _LONGEST_PAUSE:
                    self._logger.warning("files are not followed: %s", problem)
                self._ended.wait(pause)
                pause = min(4 * pause, _LONGEST_PAUSE)
        for one in self._folders.values():
            one.stop()

    def _follow_until_the_end(self) -> None:
        while not self.work.near_sessions():  # nothing is opened before there is something to follow
            if self._wait():
                return
        with closing(self._open_store()) as store:
            for one in self._folders.values():
                one.begin_anew(store)
            machines, journaled = SessionMachines(store), JournaledWork(store)
            while True:
                self._note_sessions(store, machines)
                self._look(store, machines, journaled)
                if self._wait():
                    break
            self._look(store, machines, journaled)

    # --- sessions ---

    def _note_sessions(self, store: WholeStore, machines: SessionMachines) -> None:
        near = self.work.near_sessions()
        for session, last in near.items():
            if self._asked.get(session) == last:
                continue
            machines.catch_up()
            told = machines.newest(session)
            folder = self._folder_of.get(session) or self._folder_in(store, session)
            is_followed = bool(folder) and self._is_watched(store, folder, last)
            wanted = SessionPlaceNote(session, machine(), folder, is_followed)
            if (folder and not Path(folder).is_dir()) or (told is not None and told == wanted):
                self._asked[session] = last
                continue
            journal_notes(store, [NewNote(wanted, time.time())])  # noqa: TID251 - the rim reads the clock
            self._folder_of[session] = folder
            self._asked[session] = last
        self._asked = {session: last for session, last in self._asked.items() if session in near}

    @staticmethod
    def _folder_in(store: WholeStore, session: str) -> str:
        """Return the folder named in the client's own texts; "" if absent.

        The journal is read, and not the objects made from it: they may be far behind, and the session touches files soon.
        """
        found = SessionSummary()
        for _, entry in islice(store.news(session), _FIRST_ENTRIES):
            body = entry.body if isinstance(entry, Entry) else None
            if isinstance(body, NoteEntry) and isinstance(body.note, SystemPromptNote):
                found = found.with_folder((body.note.text,))
            elif isinstance(body, MessageEntry) and body.message.role == "user":
                found = found.with_folder(block.text for block in body.message.blocks if isinstance(block, Text))
            if found.folder:
                break
        return found.folder

    def _is_watched(self, store: WholeStore, folder: str, last: float) -> bool:
        """Return whether a folder is watched; start the watch of a watchable folder."""
        if folder in self._folders:
            self._folders[folder].last = last
            return True
        path = Path(folder)
        is_wide = path.resolve() in (Path("/"), Path.home().resolve())
        if self._terms.follows == "off" or is_wide or not path.is_dir() or len(self._folders) >= _MOST_FOLDERS:
            return False
        made = _WatchedFolder(Folder(folder, self._terms.excluded), last)
        made.begin_anew(store)
        made.start()
        self._folders[folder] = made
        return True

    # --- files ---

    def _look(self, store: WholeStore, machines: SessionMachines, journaled: JournaledWork) -> None:
        now, place = time.time(), store.last_place()  # noqa: TID251 - the rim reads the clock
        for path, one in list(self._folders.items()):
            one.look(now)
            others = self._others(path)
            if one.wants_to_tell(place, now) and self.work.is_at_rest(others, _PATIENCE):
                journaled.catch_up()
                machines.catch_up()
                work = journaled.at(now)
                elsewhere = self._told_better(work) | _sessions_elsewhere(machines, work.sessions(), path)
                if not work.is_at_rest(elsewhere, _PATIENCE):
                    continue
                if self._layer.catch_up(stop=self._ended.is_set).behind:
                    continue  # a call that is not an object yet may explain what was found
                one.files.settle(now, self._is_person(store, others, work, elsewhere))
                took = time.time() - now  # noqa: TID251 - the same
                one.told, one.due = place, now + max(_BETWEEN, _SHARE * took)
            elif now - one.last > _IDLE and not one.files.is_waiting:
                self._folders.pop(path).stop()

    def _is_person(
        self, store: WholeStore, others: frozenset[str], journaled: AgentWork, elsewhere: frozenset[str]
    ) -> Callable[[float], bool]:
        """Return whether a change at a moment is a person's, for a folder without the work of other sessions.

        others, elsewhere: these sessions, of this gateway and of those in the journals.
        """
        sessions = self.work.sessions() - others
        asked = self._terms.follows == "person" and not self._background.runs_in(store, sessions)
        return lambda at: asked and self.work.was_at_rest(at, others) and journaled.was_at_rest(at, elsewhere)

    def _others(self, folder: str) -> frozenset[str]:
        """Return the sessions known to work in other folders."""
        return frozenset(session for session, known in self._folder_of.items() if known and not _overlap(known, folder))

    def _told_better(self, journaled: AgentWork) -> frozenset[str]:
        """Return the sessions of which this gateway knows at least what their journals tell."""
        told = journaled.near_sessions()
        mine = self.work.near_sessions()
        return frozenset(session for session, last in mine.items() if last + _LATE >= told.get(session, 0.0))


def _sessions_elsewhere(machines: SessionMachines, sessions: Iterable[str], folder: str) -> frozenset[str]:
    """Return the sessions that surely work on another machine or in another folder."""
    notes = {session: note for session in sessions if (note := machines.newest(session)) is not None}
    return frozenset(
        session
        for session, note in notes.items()
        if note.machine != machine() or (note.folder and not _overlap(note.folder, folder))
    )


class _BackgroundCommands:
    """Knows the sessions with a command left running in the background, which may change files at any time."""

    def __init__(self) -> None:
        self._read: dict[str, int] = {}
        self._found: set[str] = set()

    def runs_in(self, store: WholeStore, sessions: frozenset[str]) -> bool:
        for session in sessions - self._found:
            for place, entry in store.news(session, self._read.get(session, 0)):
                self._read[session] = place
                body = entry.body if isinstance(entry, Entry) else None
                blocks = body.message.blocks if isinstance(body, MessageEntry) else ()
                if any(isinstance(block, ToolCall) and runs_on(block.arguments) for block in blocks):
                    self._found.add(session)
        return bool(sessions & self._found)


class _WatchedFolder:
    """A folder with the thread that watches its changes.

    last: time of the last request of its sessions. told: place of the journals up to which its files were told.
    due: time of the next comparison, at the earliest.
    """

    files: WorkspaceFiles

    def __init__(self, folder: Folder, last: float) -> None:
        self.last = last
        self.told = -1
        self.due = 0.0
        self._folder = folder
        self._news: queue.SimpleQueue[frozenset[str]] = queue.SimpleQueue()
        self._ended = threading.Event()
        self._all_due = 0.0
        self._thread = threading.Thread(target=self._watch, name="pagein-file-events", daemon=True)

    def begin_anew(self, store: WholeStore) -> None:
        self.files = WorkspaceFiles(store, self._folder, machine())
        self.told = -1

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        self._ended.set()
        self._thread.join(1.0)

    def look(self, now: float) -> None:
        with suppress(queue.Empty):
            while True:
                paths = self._news.get_nowait()
                self.files.hear(paths) if paths else self.files.hear_all()
        if now >= self._all_due:
            self.files.hear_all()
            self._all_due = now + _ANEW
        self.files.look(now)

    def wants_to_tell(self, place: int, now: float) -> bool:
        return now >= self.due and (self.files.is_waiting or place != self.told)

    def _watch(self) -> None:
        while not self._ended.is_set():
            try:
                for paths in folder_events(self._folder.path, self._ended):
                    if paths:
                        self._news.put(frozenset(paths))
            except (OSError, RuntimeError):
                # no more watches available, or the folder is missing: compare all from time to time instead
                self._news.put(frozenset())
                self._ended.wait(15.0)


def _overlap(one: str, other: str) -> bool:
    return f"{one.rstrip('/')}/".startswith(f"{other.rstrip('/')}/") or f"{other.rstrip('/')}/".startswith(
        f"{one.rstrip('/')}/"
    )
