"""The intake of recorded sessions: new or changed files are read once, many files on all cores."""

import time
from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Final

from pagein.past_sessions.report import IntakeProgress, Remark, RememberReport
from pagein.past_sessions.seen_files import SeenFiles, member_stamps, stamp_of
from pagein.past_sessions.source_intake import IntakeStore, IntakeTerms, SourceOutcome, take_source
from pagein.replay.readers import SessionFile, SkippedSource, Source, session_files, sources_of
from pagein.replay.workers import workers
from pagein.workspace.machine import machine

_WORTH_WORKERS: Final = 32_000_000
"""Bytes of files: for fewer, worker processes would take longer to start than they save."""
_KILLED: Final = "the process that read it was killed; --jobs 1 takes the least memory"


@dataclass(slots=True)
class _Tally:
    """The counts of an intake while it runs."""

    new: int = 0
    grown: int = 0
    messages: int = 0
    agents: Counter[str] = field(default_factory=Counter)
    files: int = 0
    known: int = 0
    size: int = 0
    unknown: int = 0
    skipped: list[Remark] = field(default_factory=list)
    failed: list[Remark] = field(default_factory=list)

    def add(self, source: Source, done: SourceOutcome) -> None:
        self.size += source.size
        self.new += done.new
        self.grown += done.grown
        self.messages += done.messages
        self.agents.update(done.agents)
        self.unknown += done.unknown
        self.skipped += done.skipped
        self.failed += done.failed

    def report(self, seconds: float) -> RememberReport:
        return RememberReport(
            new=self.new,
            grown=self.grown,
            messages=self.messages,
            agents=dict(sorted(self.agents.items())),
            files=self.files,
            known=self.known,
            size=self.size,
            seconds=seconds,
            unknown=self.unknown,
            skipped=tuple(self.skipped),
            failed=tuple(self.failed),
        )


@dataclass(slots=True)
class _OpenFile:
    """A file with sources still to come or under way.

    size: its bytes.
    is_named: whether the user named it.
    members: time of the last change of each session, for a database.
    """

    file: SessionFile
    stamp: str
    size: int
    is_named: bool
    members: dict[str, str] = field(default_factory=dict)
    sessions: list[str] = field(default_factory=list)
    under_way: int = 0
    is_listed: bool = False
    is_sound: bool = True


class Intake:
    """Takes recorded sessions into a store. Not thread-safe.

    open_store: opens the store, here and in worker processes.
    terms: the terms of the intake.
    jobs: number of worker processes; 0: one per core, where there is much to read; 1: none.
    """

    def __init__(self, open_store: Callable[[], IntakeStore], terms: IntakeTerms, *, jobs: int = 0) -> None:
        self._open_store = open_store
        self._store = open_store()
        self._terms = terms
        self._jobs = 1 if terms.looks else jobs
        self._seen = SeenFiles(self._store)

    def close(self) -> None:
        """Close the store."""
        self._store.close()

    def news(self, paths: Iterable[Path]) -> Iterator[SessionFile]:
        """Yield the new or changed files in these paths, without opening them."""
        for file in session_files(paths):
            if isinstance(file, SessionFile) and not self._seen.has(file.path, stamp_of(file.path)):
                yield file

    def remember(
        self,
        paths: Sequence[Path],
        progress: Callable[[IntakeProgress], object] = lambda _: None,
        *,
        named: bool = True,
        holds: bool = False,
    ) -> RememberReport:
        """Take every recorded session in these paths. Raises StoreError.

        named: whether the user named the paths, so that a file among them without a session is a failure. Else they are where
            agents of this machine record their sessions.
        holds: whether files may change again soon: they are recorded as seen once they no longer change, or by `flush`.
        """
        began = time.monotonic()
        tally = _Tally()
        files = list(self._waiting(paths, frozenset(paths) if named else frozenset(), tally))
        run = _IntakeRun(files, self._seen, tally, progress, holds=holds, looks=self._terms.looks)
        terms = self._terms if named else replace(self._terms, machine=machine())
        jobs = self._jobs if self._jobs or run.total >= _WORTH_WORKERS else 1
        take: Callable[[Source], SourceOutcome]
        if jobs == 1:
            take = partial(take_source, store=self._store, terms=terms)
        else:
            take = partial(_take_in_worker, open_store=self._open_store, terms=terms)
        with workers(jobs, _outcome_of_death) as spread:
            for outcome in spread(take, run.sources()):
                run.add(outcome)
        run.tell("")
        while files and not self._terms.looks and self._store.bundle_more(rest=not holds):
            pass
        if holds and not files:  # a quiet round
            self.flush()
        return tally.report(time.monotonic() - began)

    def remember_member(self, database: Path, session: str) -> SourceOutcome:
        """Take what is new in one session of a database. Raises StoreError."""
        source = Source(f"{database.name}:{session}", database, member=session)
        return take_source(source, store=self._store, terms=self._terms)

    def flush(self) -> None:
        """Store what is held back about known files. Raises StoreError."""
        if not self._terms.looks:
            self._seen.flush()

    def _waiting(self, paths: Iterable[Path], named: frozenset[Path], tally: _Tally) -> Iterator[_OpenFile]:
        for file in session_files(paths):
            if isinstance(file, SkippedSource):
                tally.failed.append(Remark(file.file, file.reason))
            elif self._seen.has(file.path, stamp := stamp_of(file.path)):
                tally.known += 1
            else:
                yield _OpenFile(file, stamp, _size(file.path), file.path in named)


class _IntakeRun:
    """The files of an intake on their way: each is noted as known after the intake of all its sources.

    total: bytes of all files.
    """

    def __init__(
        self,
        files: Sequence[_OpenFile],
        seen: SeenFiles,
        tally: _Tally,
        progress: Callable[[IntakeProgress], object],
        *,
        holds: bool,
        looks: bool,
    ) -> None:
        self._files = files
        self._seen = seen
        self._tally = tally
        self._progress = progress
        self._holds = holds
        self._looks = looks
        self._order: deque[tuple[_OpenFile, Source]] = deque()
        self._done = 0
        self.total = sum(one.size for one in files)

    def tell(self, label: str) -> None:
        """Report the progress. label: the source that is next."""
        self._progress(IntakeProgress(self._tally.files, len(self._files), label, self._done, self.total))

    def sources(self) -> Iterator[Source]:
        """Yield the sources to take. The outcome of each comes to `add`, in the same order."""
        for opened in self._files:
            for found in sources_of(opened.file):
                if isinstance(found, SkippedSource):
                    self._pass_over(opened, found)
                elif not self._is_known(opened, found):
                    self.tell(found.label)
                    self._order.append((opened, found))
                    opened.under_way += 1
                    yield found
            opened.is_listed = True
            self._settle(opened)

    def add(self, outcome: SourceOutcome) -> None:
        """Add the outcome of the next source."""
        opened, source = self._order.popleft()
        opened.under_way -= 1
        self._tally.add(source, outcome)
        opened.is_sound = opened.is_sound and not outcome.failed
        if source.member is None:
            opened.sessions += outcome.sessions
        elif not (outcome.failed or self._looks):
            changed = opened.members.get(source.member, "")
            self._seen.add(opened.file.path, changed, outcome.sessions, source.member, holds=self._holds)
        self._settle(opened)

    def _pass_over(self, opened: _OpenFile, found: SkippedSource) -> None:
        is_fine = found.is_sound and not (opened.is_named and found.file == opened.file.label)
        (self._tally.skipped if is_fine else self._tally.failed).append(Remark(found.file, found.reason))
        opened.is_sound = opened.is_sound and is_fine

    def _is_known(self, opened: _OpenFile, source: Source) -> bool:
        if source.member is None:
            return False
        opened.members = opened.members or member_stamps(opened.file.path)
        return self._seen.has(opened.file.path, opened.members.get(source.member, ""), source.member)

    def _settle(self, opened: _OpenFile) -> None:
        """Note a file as known after the intake of all its sources."""
        if not opened.is_listed or opened.under_way:
            return
        self._tally.files += 1
        self._done += opened.size
        if not opened.is_sound:
            self._seen.pass_over(opened.file.path, opened.stamp)
        elif not self._looks:
            self._seen.add(opened.file.path, opened.stamp, tuple(opened.sessions), holds=self._holds)


_opened: IntakeStore | None = None
"""The store of this worker process, open until its end."""


def _take_in_worker(source: Source, open_store: Callable[[], IntakeStore], terms: IntakeTerms) -> SourceOutcome:
    global _opened  # noqa: PLW0603 - a worker has one store for all its sources
    if _opened is None:
        _opened = open_store()
    return take_source(source, _opened, terms)


def _outcome_of_death(source: Source) -> SourceOutcome:
    return SourceOutcome(failed=(Remark(source.label, _KILLED),))


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except OSError:
        return 0
