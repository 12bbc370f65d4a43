"""The intake of recorded sessions: each file is read once, and what is new in its sessions is appended to their journals.

Rules of this file
------------------
1. A session that a gateway or a program journaled stands as it is: its recording is skipped.
2. Entries are appended in small transactions, parents first. So an interrupted intake leaves the beginning of a
   session, and the next one adds the rest.
3. A failure of one file never ends the intake of the others. A failure of the store does.
"""

import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, Protocol

from pagein.engine.log.pageout import Pager
from pagein.engine.log.privacy import Privacy
from pagein.errors import PageinError, StoreError
from pagein.model.entries import Entry, MessageEntry, NoteEntry, RequestSent, is_bridge
from pagein.model.journal_notes import RecordedNote
from pagein.past_sessions.recorded_journal import RecordedJournal, session_name
from pagein.past_sessions.report import IntakeProgress, Remark, RememberReport
from pagein.past_sessions.seen_files import SeenFiles, member_stamps, stamp_of
from pagein.ports import BlobStore, JournalStore, TokenCounter
from pagein.replay.readers import SessionFile, SkippedSource, Source, read_source, session_files, sources_of
from pagein.replay.record.recorded_session import RecordedSession

_ENTRIES: Final = 256
_TOKENS: Final = 250_000
_OWN: Final = "pagein."
_JOURNALED: Final = "a gateway or a program keeps the journal of this session, so its recording is not needed"


class IntakeStore(JournalStore, BlobStore, Protocol):
    """A store with journals."""


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


class Intake:
    """Takes recorded sessions into a store. Not thread-safe.

    store: the store.
    counter: the counter of tokens, for the weights of messages.
    excluded: patterns of file names with content that is never stored.
    looks: True to read the files and write nothing.
    """

    def __init__(
        self, store: IntakeStore, counter: TokenCounter, excluded: tuple[str, ...], *, looks: bool = False
    ) -> None:
        self._store = store
        self._counter = counter
        self._excluded = excluded
        self._looks = looks
        self._seen = SeenFiles(store)

    def news(self, paths: Iterable[Path]) -> Iterator[SessionFile]:
        """Yield the files in these paths that are new or changed, without opening them."""
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

        named: whether the user named the paths, so that a file among them without a session is a failure.
        holds: whether files may change again soon: that they are known is stored when they no longer do, or by `flush`.
        """
        began = time.monotonic()
        tally = _Tally()
        strict = frozenset(paths) if named else frozenset[Path]()
        waiting: list[tuple[SessionFile, str, int]] = []
        for file in session_files(paths):
            if isinstance(file, SkippedSource):
                tally.failed.append(Remark(file.file, file.reason))
            elif self._seen.has(file.path, stamp := stamp_of(file.path)):
                tally.known += 1
            else:
                waiting.append((file, stamp, _size(file.path)))
        total = sum(size for *_, size in waiting)
        done = 0
        for place, (file, stamp, size) in enumerate(waiting):
            progress(IntakeProgress(place, len(waiting), file.label, done, total))
            self._take_file(file, stamp, tally, is_named=file.path in strict, holds=holds)
            done += size
        progress(IntakeProgress(len(waiting), len(waiting), "", done, total))
        if holds and not waiting:  # a quiet round
            self.flush()
        return tally.report(time.monotonic() - began)

    def flush(self) -> None:
        """Store what is held back about known files. Raises StoreError."""
        if not self._looks:
            self._seen.flush()

    def _take_file(self, file: SessionFile, stamp: str, tally: _Tally, *, is_named: bool, holds: bool) -> None:
        tally.files += 1
        members: dict[str, str] | None = None
        names: list[str] = []
        is_sound = True
        for source in sources_of(file):
            if isinstance(source, SkippedSource):
                remark = Remark(source.file, source.reason)
                is_fine = source.is_sound and not (is_named and source.file == file.label)
                (tally.skipped if is_fine else tally.failed).append(remark)
                is_sound = is_sound and is_fine
                continue
            if source.member is None:
                found = self._take_source(source, tally)
                names += found or ()
                is_sound = is_sound and found is not None
                continue
            members = member_stamps(file.path) if members is None else members
            changed = members.get(source.member, "")
            if not self._seen.has(file.path, changed, source.member):
                found = self._take_source(source, tally)
                is_sound = is_sound and found is not None
                if found is not None and not self._looks:
                    self._seen.add(file.path, changed, found, source.member, holds=holds)
        if not is_sound:
            self._seen.pass_over(file.path, stamp)
        elif not self._looks:
            self._seen.add(file.path, stamp, tuple(names), holds=holds)

    def _take_source(self, source: Source, tally: _Tally) -> tuple[str, ...] | None:
        """Return the names of the sessions in a source; None after a failure, which is in the tally."""
        tally.size += source.size
        before = len(tally.failed)
        names: list[str] = []
        try:
            for session in read_source(source):
                name = session_name(session.head)
                names.append(name)
                self._take_session(source, session, name, tally)
        except StoreError:
            raise
        except PageinError as error:
            tally.failed.append(Remark(source.label, str(error).removeprefix(source.label).lstrip(":, ")))
        except Exception as error:  # noqa: BLE001 - a bug met by one file is reported with it, the others go on
            tally.failed.append(Remark(source.label, f"pagein failed on it: {type(error).__name__}: {error}"))
        return None if len(tally.failed) > before else tuple(names)

    def _take_session(self, source: Source, session: RecordedSession, name: str, tally: _Tally) -> None:
        if not name or name.startswith(_OWN):
            tally.failed.append(Remark(source.label, f"a session cannot be named {name!r}; change its id", name))
            return
        known = self._known_entries(name)
        if known is None:
            tally.skipped.append(Remark(source.label, _JOURNALED, name))
            return
        privacy = Privacy(Pager(self._store, ""), self._excluded)
        journal = RecordedJournal(session, privacy, self._counter)
        added = self._append(name, journal.entries(), known)
        if journal.lost:
            first = journal.lost[0]
            tally.failed.append(
                Remark(
                    source.label,
                    f"line {first.line}: {first.why}. What could be read is remembered ({len(journal.lost)} lines are "
                    "lost); if there is a whole copy, remember that too",
                    name,
                )
            )
        tally.unknown += journal.unknown
        if added:
            tally.new += not known
            tally.grown += bool(known)
            tally.messages += added
            tally.agents[session.head.agent] += 1

    def _append(self, name: str, entries: Iterable[Entry], known: set[str]) -> int:
        """Append the unknown entries, and make the last entry the leaf. Returns the number of messages appended."""
        batch: list[Entry] = []
        tokens = added = 0
        last: Entry | None = None
        for entry in entries:
            last = entry
            if entry.id in known:
                continue
            batch.append(entry)
            if isinstance(entry.body, MessageEntry):
                added += 1
                tokens += entry.body.tokens
            if len(batch) >= _ENTRIES or tokens >= _TOKENS:
                self._keep(name, batch)
                batch, tokens = [], 0
        if last is not None and not batch and known and self._store.leaf(name) != last.id:
            batch = [last]
        self._keep(name, batch)
        return added

    def _keep(self, name: str, batch: Sequence[Entry]) -> None:
        if batch and not self._looks:
            with self._store.exclusive():
                self._store.append(name, batch)

    def _known_entries(self, name: str) -> set[str] | None:
        """Return the names of the stored entries of a session; None for a journal that is not made from a recording."""
        known: set[str] = set()
        if self._store.leaf(name) is None:
            return known
        is_recorded = False
        for entry in self._store.entries(name):
            if not isinstance(entry, Entry):
                continue
            is_recorded = is_recorded or _is_facts(entry)
            if isinstance(entry.body, RequestSent) or not (is_recorded or is_bridge(entry)):
                return None
            if not is_bridge(entry):
                known.add(entry.id)
        return known


def _is_facts(entry: Entry) -> bool:
    """Return whether this is the first entry of a journal made from a recording."""
    return isinstance(entry.body, NoteEntry) and isinstance(entry.body.note, RecordedNote)


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except OSError:
        return 0
