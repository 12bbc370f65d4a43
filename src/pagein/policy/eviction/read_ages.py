"""Age rules for file reads: eviction depends on the last access to the file.

An edit quotes text that a read showed, and does so while the file is being worked on. Measured on recorded sessions
(docs/residency.md): nearly every quote comes within three calls of the last access to the file, or from a file that the
current task has read and not edited yet. So a read may be evicted
- when its file was edited since, and was then left alone for `after_edit` calls: the work on it is done;
- when a person has spoken since it was shown, and the file was left alone for `after_task` calls: it belongs to an
  older task;
- else after `untouched` calls without an access, where that is set.

Every access to a file counts, also a failed one. Work per call grows with the accesses, not with the files.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Final, TypeAlias

from pagein.errors import BadSetting
from pagein.model.shared_map import SharedMap
from pagein.policy.eviction.residents import Resident
from pagein.policy.eviction.shared_queues import QueueLink, SharedQueue, walk

NEVER: Final = -1


@dataclass(frozen=True, slots=True)
class FileRules:
    """Calls without access to a file until its reads may be evicted.

    after_edit: after an edit. after_task: for a read from an older task.
    untouched: for every read; None keeps reads of the current task.
    """

    after_edit: int = 4
    after_task: int = 10
    untouched: int | None = None

    def __post_init__(self) -> None:
        for name in ("after_edit", "after_task", "untouched"):
            value = getattr(self, name)
            if value is not None and value < 1:
                raise BadSetting(f"{name} must be 1 or more, not {value}")


@dataclass(frozen=True, slots=True)
class Work:
    """Progress of the session.

    call: the next model call. task: the first call since a person last spoke.
    """

    rules: FileRules
    call: int
    task: int

    def keeps(self, born: int, *, touched: int, edited: int) -> bool:
        """Return whether a read stays, by its first call and the file's last access and edit."""
        idle = self.call - touched
        if born <= edited and idle >= self.rules.after_edit:
            return False
        if born < self.task and idle >= self.rules.after_task:
            return False
        return self.rules.untouched is None or idle < self.rules.untouched


@dataclass(frozen=True, slots=True)
class _FileVisit:
    """The last access to a file at some call."""

    path: str
    call: int


@dataclass(frozen=True, slots=True)
class _FileReads:
    """A file with reads in the window.

    touched, edited: calls that first saw its last access and last edit.
    left: whether some of its reads may be evicted by now.
    """

    touched: int
    edited: int = NEVER
    reads: tuple[Resident, ...] = ()
    left: bool = False


_Visits: TypeAlias = SharedQueue[_FileVisit]


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class WaitingReads:
    """The reads too young for eviction, by file; immutable, derived from `NO_FILES`, with shared structure.

    task: the first call of the current task.
    """

    _watched: SharedMap[_FileReads] = field(default_factory=SharedMap)
    # Accesses in the order of their calls, for files with reads that wait for this alone: an edited file, an older task, any.
    _edited: _Visits = field(default_factory=SharedQueue)
    _older: _Visits = field(default_factory=SharedQueue)
    _all: _Visits = field(default_factory=SharedQueue)
    # Files touched since a person spoke last, newest first.
    _fresh: QueueLink[str] | None = None
    task: int = 0

    def with_read(self, read: Resident) -> "WaitingReads":
        """Add a read to the waiting reads, new in the window or again too young."""
        watched = self._watched.get(read.path) or _FileReads(read.born)
        reads = tuple(sorted((*watched.reads, read), key=lambda one: (one.message, one.block)))
        return self._visit(read.path, replace(watched, touched=max(watched.touched, read.born), reads=reads))

    def touch(self, path: str, call: int, *, edited: bool) -> "tuple[WaitingReads, bool]":
        """Record an access to a file, first seen by call number `call`.

        Also return whether reads that were old enough must wait again.
        """
        watched = self._watched.get(path)
        if watched is None:
            return self, False
        now = replace(watched, touched=max(watched.touched, call), edited=call if edited else watched.edited)
        return self._visit(path, replace(now, left=False)), watched.left

    def spoken(self, call: int) -> "WaitingReads":
        """Start a new task at call number `call`, the first call after a person spoke."""
        paths = dict.fromkeys(walk(self._fresh))
        found = ((path, self._watched.get(path)) for path in paths)
        visits = [_FileVisit(path, watched.touched) for path, watched in found if watched is not None]
        older = SharedQueue.of(sorted((*self._older, *visits), key=lambda one: one.call)) if visits else self._older
        return replace(self, _older=older, _fresh=None, task=call)

    def at_call(self, call: int, rules: FileRules) -> "tuple[WaitingReads, list[Resident]]":
        """Remove and return the reads that may be evicted before call number `call`."""
        edited, done = self._edited.split_ready(lambda visit: visit.call <= call - rules.after_edit)
        older, past = self._older.split_ready(lambda visit: visit.call <= call - rules.after_task)
        wait = rules.untouched
        every, idle = (
            (SharedQueue(), []) if wait is None else self._all.split_ready(lambda visit: visit.call <= call - wait)
        )
        if not done and not past and not idle:
            return (self, []) if wait is not None else (replace(self, _all=every), [])
        now, out = replace(self, _edited=edited, _older=older, _all=every), list[Resident]()
        task = self.task
        for visits, may_go in ((done, _was_edited), (past, lambda read, _: read.born < task), (idle, _any)):
            for visit in visits:
                now, gone = now._release(visit, may_go)  # noqa: SLF001 its own kind
                out.extend(gone)
        return now, out

    def _release(
        self, visit: _FileVisit, may_go: Callable[[Resident, _FileReads], bool]
    ) -> "tuple[WaitingReads, list[Resident]]":
        watched = self._watched.get(visit.path)
        if watched is None or watched.touched != visit.call:  # accessed again: a later visit replaces this one
            return self, []
        gone = [read for read in watched.reads if may_go(read, watched)]
        if not gone:
            return self, []
        stay = tuple(read for read in watched.reads if not may_go(read, watched))
        return replace(self, _watched=self._watched.put(visit.path, replace(watched, reads=stay, left=True))), gone

    def _visit(self, path: str, watched: _FileReads) -> "WaitingReads":
        visit = _FileVisit(path, watched.touched)
        was_edited = any(_was_edited(read, watched) for read in watched.reads)
        is_older = any(read.born < self.task for read in watched.reads)
        return replace(
            self,
            _watched=self._watched.put(path, watched),
            _edited=self._edited.with_item(visit) if was_edited else self._edited,
            _older=self._older.with_item(visit) if is_older else self._older,
            _all=self._all.with_item(visit),
            _fresh=QueueLink(path, self._fresh),
        )

    def without_places(self, gone: frozenset[tuple[int, int]], before: Mapping[int, int]) -> "WaitingReads":
        """Remove the reads at these places, and update the tokens in front of the remaining messages."""
        now = self._watched
        for path in list(now):
            watched = now[path]
            stay = tuple(read.behind(before) for read in watched.reads if (read.message, read.block) not in gone)
            if stay != watched.reads:
                now = now.put(path, replace(watched, reads=stay))
        return self if now is self._watched else replace(self, _watched=now)

    def __iter__(self) -> Iterator[Resident]:
        """Yield the waiting reads, file by file."""
        for path in self._watched:
            yield from self._watched[path].reads


NO_FILES: Final = WaitingReads()


def of_path(residents: Iterable[Resident], path: str) -> list[Resident]:
    """Return the residents that show this file."""
    return [one for one in residents if one.is_read and one.path == path]


def _was_edited(read: Resident, watched: _FileReads) -> bool:
    return read.born <= watched.edited


def _any(_read: Resident, _watched: _FileReads) -> bool:
    return True
