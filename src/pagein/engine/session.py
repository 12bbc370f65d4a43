"""A session: the caller appends messages, and `advance` returns the request for each model call.

The session has no rules of its own. It journals events, asks the policy, stores evicted content, and renders the state
at its current entry.
"""

import contextlib
import math
from collections.abc import Callable, Iterable
from functools import cached_property
from os import PathLike, fspath

from pagein.engine.conversation import Reply, in_thread
from pagein.engine.intake.request_fields import Request
from pagein.engine.log.journal import Journal
from pagein.engine.log.privacy import Privacy
from pagein.engine.log.request_draft import Repairs, pieces_since, shared_length
from pagein.engine.log.session_log import SessionLog
from pagein.engine.log.state import Rules, State
from pagein.engine.prepared_request import OPEN_GATE, Gate, Observation, PreparedRequest, WindowCall, WindowRequest
from pagein.engine.provider_traffic import Traffic
from pagein.engine.reads import testimony
from pagein.engine.reads.evidence import Evidence
from pagein.engine.reads.placed_reads import PlacedReads
from pagein.engine.reads.read_figures import ReadingStatus
from pagein.engine.reads.session_guards import SessionGuards
from pagein.engine.reads.session_reads import OwnWrite, ReadResult, SessionReads
from pagein.engine.recall.delegated_questions import DelegatedQuestions
from pagein.engine.recall.session_recall import SessionRecall
from pagein.engine.recall.stored_objects import StoredObjects
from pagein.engine.sent_windows import SentWindows
from pagein.engine.session_parts import SessionParts
from pagein.engine.session_pools import SessionPools
from pagein.engine.window.pin_actions import Touch
from pagein.engine.window_stages import WindowStages
from pagein.errors import HostError, StoreError
from pagein.model.entries import Entry, EntryId, RecallEntry
from pagein.model.journal_notes import Note
from pagein.model.messages import Message
from pagein.policy.clients.profile import Profile
from pagein.policy.clients.window_files import WindowFiles
from pagein.policy.eviction.residency import EMPTY, ResidentSet
from pagein.ports import Files, Signal
from pagein.providers.validity import Api


class Session(DelegatedQuestions):
    """A session of an agent. One thread appends messages and prepares requests; reads and other turns may come from any.

    traffic: its provider requests.
    sent_windows: the windows that gateways on the same store sent.
    begin: opens a new session of the same engine, for forks; None for a session without an engine.
    again: reopens the session of a name after an erasure; None for a session without an engine.
    resumes: True to continue from the last snapshot.
    """

    def __init__(
        self,
        name: str,
        parts: SessionParts,
        *,
        begin: "Callable[[str], Session] | None" = None,
        again: "Callable[[str], Session] | None" = None,
        resumes: bool = False,
    ) -> None:
        rules = Rules(parts.residency, parts.excluded)
        self._parts = parts
        self._begin = begin
        self._again = again
        self._log = SessionLog(name, rules, parts.pager, parts.journals, parts.snapshots, resumes=resumes)
        self._window = WindowStages(self._log, parts)
        self.traffic = Traffic(self._window)
        self.sent_windows = SentWindows(parts.journals)
        self._folder: str | None = None
        self._residents: tuple[ResidentSet, frozenset[str]] = (EMPTY, frozenset())
        self._successor: Session | None = None

    @classmethod
    def resume(
        cls,
        name: str,
        parts: SessionParts,
        *,
        begin: "Callable[[str], Session] | None" = None,
        again: "Callable[[str], Session] | None" = None,
    ) -> "Session":
        """Return the session as its journal was stored, without unreadable entries and their descendants.

        Without the store, the session begins as new, and catches up at its first turn (law 7).
        """
        session = cls(name, parts, begin=begin, again=again, resumes=True)
        session._try_to_catch_up()
        return session

    @property
    def name(self) -> str:
        """The session's name."""
        return self._log.name

    @property
    def model(self) -> str | None:
        """The name of the session's model; None if unknown."""
        return self._window.model

    @model.setter
    def model(self, model: str | None) -> None:
        self._window.model = model

    @property
    def leaf(self) -> EntryId | None:
        """The session's current entry; None before the first."""
        return self._log.leaf

    @property
    def journal(self) -> Journal[State]:
        """The journal with every branch. Read it only; the session adds entries."""
        return self._log.journal

    @property
    def evidence(self) -> Evidence:
        """The read answers that the window proves at the current entry."""
        return self._window.evidence

    @property
    def client(self) -> Profile | None:
        """The client profile at the current entry; None if unknown."""
        return self._window.rereads.states[self.leaf].profile

    @property
    def window_files(self) -> WindowFiles:
        """What the window shows of files, once a request holds the messages up to the current entry."""
        return self._window.files

    def window(self) -> list[Message]:
        """Return the messages of the next request."""
        return [self._log.privacy.shows(one) for one in testimony.window(self._log.state())]

    @property
    def repairs(self) -> Repairs:
        """Counts of repairs on this branch so far."""
        return self._log.state().draft.repairs

    def append(self, message: Message, *, name: EntryId | None = None) -> EntryId:
        """Append a message.

        name: the client's own name for it, unique in the session; None to compute a name.
        A read answer that the window would not prove at this place is shown in full (see `SessionReads.upheld`).
        """
        return self._window.append(message, name=name)

    def note_compaction(self, kept: int = 0) -> EntryId:
        """Record a compaction: the window keeps only leading system messages and the last `kept` messages."""
        return self._log.note_compaction(kept)

    def note(self, note: Note) -> EntryId:
        """Journal a fact beside the messages, redacted. For facts of your own take an `OtherNote`.

        Raises ValueError for text that JSON cannot hold.
        """
        return self._log.note(note)

    def is_private(self, text: str) -> bool:
        """Return whether a text holds spans that must not be stored, by their shape."""
        return self._log.privacy.is_private(text)

    def fingerprint(self, text: str) -> str:
        """Return a digest of a text that may be journaled: it is keyed with the store's secret."""
        return self._log.privacy.fingerprint(text)

    def move(self, leaf: EntryId | None) -> None:
        """Go to another entry: the next message makes a branch there. Raises HostError for an unknown entry."""
        self._log.move(leaf)

    def advance(self, at: float | None = None, gate: Gate = OPEN_GATE) -> WindowRequest:
        """Return the request for the next model call.

        at: time in seconds since 1970; None for the time of the last message.
        """
        self._try_to_catch_up()
        before = self._window.sent
        call = WindowCall(at=self._log.state().now if at is None else at, gate=gate)
        done = self._window.decide(call)
        keep = shared_length(before, self._window.sent)
        tail = tuple(self._log.privacy.shows(one.message) for one in pieces_since(self._window.sent, keep))
        rest = done.epoch, done.opened, done.failure, done.previewed, done.crowded, done.shown_once, done.is_short
        return WindowRequest(keep, tail, *rest)

    def last_request(self) -> list[Message]:
        """Return the messages of the last prepared request; empty before the first."""
        return [self._log.privacy.shows(piece.message) for piece in pieces_since(self._window.sent, 0)]

    def forget(self) -> None:
        """Drop everything before the current entry. A stored session drops nothing."""
        self._log.forget()

    def keep(self) -> None:
        """Store the unsaved entries; `advance` does the same. Raises StoreError; then the caller may try again."""
        self._log.keep()

    def catch_up(self) -> None:
        """Read the entries of other processes (see `SessionLog.catch_up`). Raises StoreError."""
        self._log.catch_up()

    def _try_to_catch_up(self) -> None:
        """Read the entries of other processes, if the store is available. A failure is reported at the next write."""
        with contextlib.suppress(StoreError):
            self._log.catch_up()

    def turn(self) -> contextlib.AbstractContextManager[None]:
        """Lock the session against other threads and processes (see `SessionLog.turn`). Raises StoreError."""
        return self._log.turn()

    def recall(self, object_id: str) -> str:
        """Return the exact text that was evicted under this id. Raises NotRecallable with the reason, or StoreError."""
        text = self._parts.pager.recall(object_id)
        self._log.add(RecallEntry(object_id))
        return text

    def may_leave(self, call_id: str) -> bool:
        """Return whether the result of this call is in the window and may be evicted, now or later."""
        standing = self._log.state().standing
        if self._residents[0] is not standing:
            self._residents = (standing, frozenset(one.call_id for one in standing.all()))
        return call_id in self._residents[1]

    def work_in(self, folder: str) -> None:
        """Set the folder for relative paths of reads."""
        outside, proofs = self._parts.outside, self._window.proofs
        with self._log.lock:
            if folder != self._folder:
                self._folder = folder
                if "pools" in self.__dict__:
                    self.pools.work_in(folder)
                files = None if outside is None else outside.folder(folder)
                self._window.reads = (
                    None if outside is None or files is None else SessionReads(self._log, proofs, outside, files)
                )

    @property
    def reads(self) -> SessionReads:
        """The session's reads, and the model's knowledge from them. Raises HostError without a working folder."""
        if self._window.reads is None:
            raise HostError(f"session {self.name!r} was opened without a workspace, so it cannot read files")
        return self._window.reads

    @property
    def placed(self) -> PlacedReads:
        """Reads of chosen lines. Raises HostError without a working folder."""
        return PlacedReads(self._log, self.reads)

    def tokens_of(self, text: str) -> int:
        """Return the estimated tokens of a tool result with this text."""
        return math.ceil(self._parts.counter.count(text))

    @cached_property
    def guards(self) -> SessionGuards:
        """The guards of the session's reads: budget, relevance and metrics."""
        return SessionGuards(self._log, self._parts.guards, self._files)

    @cached_property
    def pools(self) -> SessionPools:
        """The pools: the objects known to the model, and the active ones."""
        parts, recalls = self._parts, self._window.recalls
        return SessionPools(self._log, parts.outside, self._files, recalls, parts.pools, self._folder or "")

    @property
    def recalls(self) -> SessionRecall:
        """The session's recall and ingest. Raises HostError for a session without an engine."""
        if self._window.recalls is None:
            raise HostError(f"session {self.name!r} stands alone and cannot recall; open it from an engine")
        return self._window.recalls

    @property
    def objects(self) -> StoredObjects:
        """The stored objects of every session (see `StoredObjects`). Raises HostError for a session without a store of them."""
        return self.recalls.objects

    @property
    def is_removed(self) -> bool:
        """True if its journal was found to be removed from the store since it was opened; open the session again."""
        return self._log.is_removed

    @property
    def is_kept(self) -> bool:
        """True if the store has everything."""
        return self._log.is_kept and not self.traffic.owes

    def prepare(
        self, request: Request, *, at: float | None = None, api: Api | None = None, model: str = ""
    ) -> PreparedRequest:
        """Return the provider's request to send for this one, given as fields (with an SDK's objects) or bytes.

        at: seconds since 1970; None for now.
        api: wire format; None to detect it.
        model: the model's name, if the address of the call has it and the request does not, as for Gemini.

        Raises BadInput for a body that no provider would read.
        """
        if self._again is not None and (self.is_removed or self._log.privacy.is_outdated):
            self._successor = self._again(self.name)
        now = self._now() if at is None else at
        return (self._successor or self).traffic.prepare_fields(request, api, now, model)

    async def aprepare(
        self, request: Request, *, at: float | None = None, api: Api | None = None, model: str = ""
    ) -> PreparedRequest:
        """Run `prepare` in a thread, for coroutines."""
        return await in_thread(lambda: self.prepare(request, at=at, api=api, model=model))

    def observe(self, reply: Reply, prepared: PreparedRequest | None = None) -> Observation:
        """Record the provider's reply to a request (see `Traffic.observe`). Raises HostError without a request.

        prepared: the answered request, needed with several concurrent calls; None for the last one.
        """
        return (self._successor or self).traffic.observe_reply(reply, prepared)

    async def aobserve(self, reply: Reply, prepared: PreparedRequest | None = None) -> Observation:
        """Run `observe` in a thread, for coroutines."""
        return await in_thread(lambda: self.observe(reply, prepared))

    @property
    def hand(self) -> Touch:
        """Pin actions: pin, drop, restore and veto results, order an epoch, pin a text, switch off."""
        return Touch(self._log, self._parts.pager, self._log_switch)

    @property
    def folder(self) -> str | None:
        """Folder for relative paths; None if unset."""
        return self._folder

    def read(
        self,
        path: str | PathLike[str],
        offset: float | None = None,
        limit: float | None = None,
        *,
        bypass_cache: bool = False,
        signal: Signal | None = None,
    ) -> ReadResult:
        """Read a file as the agent's own tool would, or answer shorter with the same content (see `SessionReads.read`)."""
        return self.reads.read(fspath(path), offset=offset, limit=limit, bypass=bypass_cache, signal=signal)

    def refresh(self, path: str | PathLike[str], offset: float | None = None, limit: float | None = None) -> ReadResult:
        """Make the next read of this file, or of these lines, show the full text (see `SessionReads.refresh`)."""
        return self.reads.refresh(fspath(path), offset=offset, limit=limit)

    def compact(self) -> None:
        """Record a compaction of everything so far: no earlier read is known any more."""
        try:
            with self.turn():
                self.note_compaction()
        except StoreError:  # holds in memory at once; the next `keep` stores it
            self.note_compaction()

    def note_write(self, path: str | PathLike[str], text: str) -> OwnWrite:
        """Record a write of a whole file by the model (see `SessionReads.note_write`)."""
        return self.reads.note_write(fspath(path), text)

    def note_edit(self, path: str | PathLike[str], old: str, new: str) -> OwnWrite:
        """Record an edit by the model: `new` in place of `old` (see `SessionReads.note_edit`)."""
        return self.reads.note_edit(fspath(path), ((old, new),))

    def status(self) -> ReadingStatus:
        """Return the figures on reads on this branch, by any process."""
        self._try_to_catch_up()
        return self.reads.status(self.journal.branch(self.leaf))

    def fork(self, name: str) -> "Session":
        """Return a new, independent session with the same branch so far, with the entries of other processes.

        Raises BadInput for a name in use, and StoreError if the journal of this session was removed: texts that left
        its window may be gone.
        """
        if self._begin is None:
            raise HostError(f"session {self.name!r} stands alone and cannot be forked; open it from an engine")
        with self._log.lock:
            self._try_to_catch_up()
            if self.is_removed:
                raise StoreError(f"the journal of session {self.name!r} was removed since it was opened; open it again")
            forked = self._begin(name)
            forked.inherit(self.journal.branch(self.leaf), self._folder, self._log.privacy)
        return forked

    def inherit(self, branch: Iterable[Entry], folder: str | None, privacy: Privacy) -> None:
        """Begin with the entries and the folder of another session. Only for an empty session."""
        if folder is not None:
            self.work_in(folder)
        self._log.privacy.withholding.inherit(privacy.withholding)
        self._log.inherit(branch)

    def _files(self) -> Files | None:
        outside = self._parts.outside
        return None if outside is None or self._folder is None else outside.folder(self._folder)

    def _log_switch(self, on: bool) -> None:  # noqa: FBT001 -- a callback
        if self._window.recalls is not None:
            self._window.recalls.log_switch(on=on)

    def _now(self) -> float | None:
        return None if self._parts.outside is None else self._parts.outside.now()
