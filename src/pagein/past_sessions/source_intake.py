"""The intake of a source: the news of its sessions is appended to their journals.

Rules of this file
------------------
1. A session that a gateway or a program journaled stands as it is: its recording is skipped.
2. Entries are appended in small transactions, parents first. So an interrupted intake leaves the beginning of a
   session, and the next one adds the rest.
3. A failure of one source never ends the intake of the others. A failure of the store does.
"""

import time
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain
from typing import Final, Protocol

from pagein.engine.log.pageout import Pager
from pagein.engine.log.privacy import Privacy
from pagein.errors import PageinError, StoreError
from pagein.memory.file_sightings import NewNote, journal_notes
from pagein.memory.session_machines import SessionMachines
from pagein.model.entries import Entry, MessageEntry, NoteEntry, RequestSent, is_bridge
from pagein.model.memory_notes import RecordedNote, SessionPlaceNote
from pagein.past_sessions.recorded_journal import RecordedJournal, session_name
from pagein.past_sessions.report import Remark
from pagein.ports import BlobStore, JournalStore, TokenCounter
from pagein.replay.readers import Source, read_source
from pagein.replay.record.recorded_session import RecordedSession

_ENTRIES: Final = 256
_TOKENS: Final = 250_000
_OWN: Final = "pagein."
_JOURNALED: Final = "a gateway or a program keeps the journal of this session, so its recording is not needed"


class IntakeStore(JournalStore, BlobStore, Protocol):
    """A store with journals."""

    def bundle_more(self, *, rest: bool = False) -> int:
        """Store some blobs or lines that are alone together in less room, and return how many.

        rest: also a few, because no more follow soon
        """

    def close(self) -> None:
        """Close files and connections."""


@dataclass(frozen=True, slots=True)
class IntakeTerms:
    """The terms of an intake.

    counter: the counter of tokens, for the weights of messages.
    excluded: patterns of file names with content that is never stored.
    looks: True to read the recordings and write nothing.
    machine: id of the machine on which the agents worked; "" if it is unknown.
    """

    counter: TokenCounter
    excluded: tuple[str, ...]
    looks: bool = False
    machine: str = ""


@dataclass(frozen=True, slots=True)
class SourceOutcome:
    """The result of the intake of a source. The fields are those of `RememberReport`.

    sessions: names of the sessions in the source.
    """

    sessions: tuple[str, ...] = ()
    new: int = 0
    grown: int = 0
    messages: int = 0
    agents: Mapping[str, int] = field(default_factory=dict)
    unknown: int = 0
    skipped: tuple[Remark, ...] = ()
    failed: tuple[Remark, ...] = ()


def take_source(source: Source, store: IntakeStore, terms: IntakeTerms) -> SourceOutcome:
    """Append what is new in the sessions of a source. Raises StoreError."""
    taking = _SourceIntake(source, store, terms)
    try:
        for session in read_source(source):
            taking.take(session)
    except StoreError:
        raise
    except PageinError as error:
        taking.fail(str(error).removeprefix(source.label).lstrip(":, "))
    except Exception as error:  # noqa: BLE001 - a bug met by one source is reported with it, the others go on
        taking.fail(f"pagein failed on it: {type(error).__name__}: {error}")
    return SourceOutcome(
        sessions=tuple(taking.sessions),
        new=taking.new,
        grown=taking.grown,
        messages=taking.messages,
        agents=dict(taking.agents),
        unknown=taking.unknown,
        skipped=tuple(taking.skipped),
        failed=tuple(taking.failed),
    )


@dataclass(slots=True)
class _SourceIntake:
    """The intake of a source while it runs."""

    source: Source
    store: IntakeStore
    terms: IntakeTerms
    sessions: list[str] = field(default_factory=list)
    new: int = 0
    grown: int = 0
    messages: int = 0
    agents: Counter[str] = field(default_factory=Counter)
    unknown: int = 0
    skipped: list[Remark] = field(default_factory=list)
    failed: list[Remark] = field(default_factory=list)
    machines: SessionMachines = field(init=False)

    def __post_init__(self) -> None:
        self.machines = SessionMachines(self.store)

    def fail(self, reason: str, session: str = "") -> None:
        self.failed.append(Remark(self.source.label, reason, session))

    def take(self, session: RecordedSession) -> None:
        privacy = Privacy(Pager(self.store, ""), self.terms.excluded)
        journal = RecordedJournal(session, privacy, self.terms.counter)
        entries = journal.entries()
        begun = list(_first_entries(entries))
        if not isinstance(begun[-1].body, MessageEntry):
            return  # nothing was said yet
        name = session_name(session.head, begun[-1].id)
        self.sessions.append(name)
        if not name or name.startswith(_OWN):
            self.fail(f"a session cannot be named {name!r}; change its id", name)
            return
        known = self._known_entries(name)
        if known is None:
            self.skipped.append(Remark(self.source.label, _JOURNALED, name))
            return
        self._note_machine(name, session.head.cwd or "")
        added = self._append(name, chain(begun, entries), known)
        if journal.lost:
            first = journal.lost[0]
            self.fail(
                f"line {first.line}: {first.why}. What could be read is remembered ({len(journal.lost)} lines are "
                "lost); if there is a whole copy, remember that too",
                name,
            )
        self.unknown += journal.unknown
        if added:
            self.new += not known
            self.grown += bool(known)
            self.messages += added
            self.agents[session.head.agent] += 1

    def _note_machine(self, name: str, folder: str) -> None:
        """Journal the session's machine before the session's entries, because the names of files include the machine."""
        if not self.terms.machine or self.terms.looks:
            return
        self.machines.catch_up()
        if self.machines.newest(name) is None:
            note = SessionPlaceNote(name, self.terms.machine, folder)
            journal_notes(self.store, [NewNote(note, time.time())])  # noqa: TID251 - the rim reads the clock

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
        if last is not None and last.id in known and self.store.leaf(name) != last.id:
            batch = [last]  # the recording was rewound to an earlier end
        self._keep(name, batch)
        return added

    def _keep(self, name: str, batch: Sequence[Entry]) -> None:
        if batch and not self.terms.looks:
            with self.store.exclusive():
                self.store.append(name, batch)
            while self.store.bundle_more():
                pass

    def _known_entries(self, name: str) -> set[str] | None:
        """Return the names of the stored entries of a session; None for a journal without a recording."""
        known: set[str] = set()
        if self.store.leaf(name) is None:
            return known
        is_recorded = False
        for entry in self.store.entries(name):
            if not isinstance(entry, Entry):
                continue
            is_recorded = is_recorded or _is_facts(entry)
            if isinstance(entry.body, RequestSent) or not (is_recorded or is_bridge(entry)):
                return None
            if not is_bridge(entry):
                known.add(entry.id)
        return known


def _first_entries(entries: Iterator[Entry]) -> Iterator[Entry]:
    """Yield the entries up to the first message."""
    for entry in entries:
        yield entry
        if isinstance(entry.body, MessageEntry):
            return


def _is_facts(entry: Entry) -> bool:
    """Return whether this is the first entry of a journal made from a recording."""
    return isinstance(entry.body, NoteEntry) and isinstance(entry.body.note, RecordedNote)
