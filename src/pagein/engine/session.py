"""A session: the caller appends messages, and `advance` returns the request for each model call.

The session has no rules of its own. It journals events, asks the policy, stores evicted content, and renders the state
at its current entry.
"""

import contextlib
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from os import PathLike, fspath
from typing import Any

from pagein.engine.cache.cache_breakpoints import BreakpointSettings
from pagein.engine.conversation import Reply, in_thread
from pagein.engine.decision_gate import at_prices, gated_residency
from pagein.engine.intake.request_fields import Request
from pagein.engine.log.folds import Fold
from pagein.engine.log.journal import Journal
from pagein.engine.log.message_weight import weigh_message
from pagein.engine.log.persistence import JournalPersistence
from pagein.engine.log.privacy import Privacy
from pagein.engine.log.rendering import Cell, length, pieces_since, shared_length
from pagein.engine.log.repair import Repairs
from pagein.engine.log.snapshots import OfSession
from pagein.engine.log.state import START, Rules, State, step
from pagein.engine.prepared_request import OPEN_GATE, Gate, Observation, PreparedRequest, WindowRequest
from pagein.engine.provider_traffic import Traffic
from pagein.engine.reads import evidence, testimony
from pagein.engine.reads.evidence import Evidence
from pagein.engine.reads.read_figures import ReadingStatus
from pagein.engine.reads.reread_notes import ClientRereads
from pagein.engine.reads.session_reads import OwnWrite, ReadResult, SessionReads
from pagein.engine.recall.session_recall import SessionRecall
from pagein.engine.session_parts import SessionParts
from pagein.engine.window.decision_inputs import preview_candidates, toll
from pagein.engine.window.eviction import EvictionOutcome, Scene, evict, window_of
from pagein.engine.window.inserts import ManifestSource, insertions
from pagein.engine.window.pin_actions import Touch
from pagein.errors import HostError, StoreError
from pagein.model.entries import (
    Body,
    CompactionEntry,
    Entry,
    EntryId,
    NoteEntry,
    PagedOut,
    PreviewEntry,
    RecallEntry,
    RequestSent,
)
from pagein.model.journal_notes import Note
from pagein.model.messages import Message
from pagein.model.note_forms import encode_note
from pagein.policy.clients.profile import Profile
from pagein.policy.clients.window_files import WindowFiles
from pagein.policy.economics.rewrite_cost import economics_at_entrance
from pagein.policy.eviction.residency import EMPTY, ResidentSet
from pagein.policy.stubs.manifest import BUDGET
from pagein.policy.stubs.previews import Previews
from pagein.policy.stubs.recall_ways import TOOLS
from pagein.ports import Signal
from pagein.providers.validity import Api


class Session:
    """A session of an agent.

    Messages are appended and requests prepared by one thread; reads and other turns may come from any.
    """

    def __init__(self, name: str, parts: "SessionParts[Session]", *, resumes: bool = False) -> None:
        self.name = name
        self.model: str | None = None
        self._parts = parts
        self._rules = Rules(parts.residency, parts.excluded)
        self._journal: Journal[State] = Journal(START, lambda state, body: step(state, body, self._rules))
        self._privacy = Privacy(parts.pager, parts.excluded)
        self._keeping = JournalPersistence(name, self._journal, parts.journals, self._privacy.check)
        self._lock = self._keeping.lock
        self._snapshots = OfSession(name, parts.snapshots, self._rules)
        if resumes:
            self._snapshots.restore(self._keeping)
        self._sent: Cell | None = None
        self._residents: tuple[ResidentSet, frozenset[str]] = (EMPTY, frozenset())
        self._folder: str | None = None
        self._reading: SessionReads | None = None
        self._evidence: Fold[Evidence] = Fold(self._journal, evidence.START, evidence.step, "evidence")
        self._rereads = ClientRereads(
            self._journal, self._rules, parts.pager, lambda text: parts.counter.count(text, "user")
        )
        self._recalling: SessionRecall | None = None
        self._traffic: Traffic | None = None
        self._successor: Session | None = None

    @classmethod
    def resume(cls, name: str, parts: "SessionParts[Session]") -> "Session":
        """Return the session as its journal was stored. Skips unreadable entries and their descendants.

        If the store is unavailable, the session begins as new, and catches up at its first turn (law 7).
        """
        session = cls(name, parts, resumes=True)
        with contextlib.suppress(StoreError):
            session.catch_up()
        return session

    def snapshot(self, sent: EntryId, more: Callable[[], Mapping[str, Any] | None]) -> Callable[[], None] | None:
        """Return a function to take a snapshot after a request, or None (see `snapshots`)."""
        with self._lock:
            return self._snapshots.prepare_snapshot(self._journal, self._keeping, sent, more, self._privacy.check)

    @property
    def leaf(self) -> EntryId | None:
        """The session's current entry; None before the first."""
        return self._keeping.leaf

    @property
    def journal(self) -> Journal[State]:
        """The journal with every branch. Read it only; the session adds entries."""
        return self._journal

    @property
    def evidence(self) -> Evidence:
        """The read answers that the window proves at the current entry."""
        return evidence.START if self._parts.outside is None else self._evidence.at(self.leaf)

    @property
    def client(self) -> Profile | None:
        """The client profile at the current entry; None if unknown."""
        return self._rereads.at(self.leaf).profile

    @property
    def window_files(self) -> WindowFiles:
        """What the window shows of files, once a request holds the messages up to the current entry."""
        return WindowFiles(self.evidence.files, self._rereads.state_at_request(self.leaf).files)

    def window(self) -> list[Message]:
        """Return the messages of the next request."""
        return [self._privacy.shows(one) for one in testimony.window(self._state())]

    @property
    def repairs(self) -> Repairs:
        """Counts of repairs on this branch so far."""
        return self._state().draft.repairs

    def append(self, message: Message, *, name: EntryId | None = None) -> EntryId:
        """Append a message.

        name: the client's own name for it, unique in the session; None to compute a name.

        A read answer that the window would not prove at this place is shown in full (see `SessionReads.upheld`).
        """
        if self._parts.outside is not None and self._folder is not None and name not in self._journal:
            message = self.reads.upheld(message)
        message = self._rereads.annotate(self.leaf, message)
        said = weigh_message(message, self._parts.counter)
        kept = self._privacy.redact_message(self._state(), message)
        return self._add(said if kept is message else replace(said, message=kept), at=message.at, name=name)

    def note_compaction(self, kept: int = 0) -> EntryId:
        """Record a compaction: the window keeps only leading system messages and the last `kept` messages."""
        if kept < 0:
            raise HostError(f"the host kept {kept} messages in a compaction; it must be 0 or more")
        return self._add(CompactionEntry(kept))

    def note(self, note: Note) -> EntryId:
        """Journal a fact beside the messages, redacted. For facts of your own take an `OtherNote`.

        Raises ValueError for text that JSON cannot hold.
        """
        kind, data = encode_note(note)
        return self._add(NoteEntry(kind, self._privacy.redact_note(data)))

    def is_private(self, text: str) -> bool:
        """Return whether a text holds spans that must not be stored, by their shape."""
        return self._privacy.is_private(text)

    def withhold(self, text: str) -> None:
        """Record a text read from an excluded file: results with this text stay in the window and are not stored."""
        note = self._privacy.note_excluded_read(self._state(), text)
        if note is not None:
            self._add(note)

    def move(self, leaf: EntryId | None) -> None:
        """Go to another entry: the next message makes a branch there. Raises HostError for an unknown entry."""
        self._keeping.move(leaf)

    def advance(self, at: float | None = None, gate: Gate = OPEN_GATE) -> WindowRequest:
        """Return the request for the next model call.

        at: time in seconds since 1970; None for the time of the last message.
        """
        self._caught_up()
        at = self._state().now if at is None else at
        previewed, paid, missed = self._enter_previews(at, gate) if gate.previews else ((), None, None)
        done = self._evict(at, previewed, gate, paid)
        opened, account, failure = done.opened, done.account, done.failure or missed
        if opened is not None:
            self._add(opened)
        if gate.begins is not None and (paid is not None or (opened is not None and (opened.paged or opened.turns))):
            self.note(gate.begins.note)
        if gate.previews:
            self._insert_texts()
        state = self._state()
        ready = state.draft.ready()
        spent = (account.bill, account.saved, account.absent, account.anew, account.found)
        self._add(RequestSent(state.epoch, length(ready.tip), at, *spent))
        # A decision must be stored before it is sent, or another process would decide again, and differently (law 6).
        failure = self._persist() or failure
        tip = self._state().sent
        keep = shared_length(self._sent, tip)
        self._sent = tip
        tail = tuple(self._privacy.shows(piece.message) for piece in pieces_since(tip, keep))
        if self._parts.recalling is not None:
            self.recalls.log_evictions(opened, previewed)
        return WindowRequest(keep, tail, state.epoch, opened, failure, previewed, done.crowded)

    def last_request(self) -> list[Message]:
        """Return the messages of the last prepared request; empty before the first."""
        return [self._privacy.shows(piece.message) for piece in pieces_since(self._sent, 0)]

    def forget(self) -> None:
        """Drop everything before the current entry. A stored session drops nothing."""
        self._keeping.forget()

    def keep(self) -> None:
        """Store the unsaved entries; `advance` does the same. Raises StoreError; then the caller may try again."""
        self._keeping.keep()

    def catch_up(self) -> None:
        """Read the entries of other processes (see `JournalPersistence.catch_up`). Raises StoreError."""
        self._keeping.catch_up()

    def _caught_up(self) -> None:
        """Read the entries of other processes, if the store is available. A failure is reported at the next write."""
        with contextlib.suppress(StoreError):
            self.catch_up()

    def turn(self) -> contextlib.AbstractContextManager[None]:
        """Lock the session against other threads and processes (see `JournalPersistence.turn`). Raises StoreError."""
        return self._keeping.turn()

    def recall(self, object_id: str) -> str:
        """Return the exact text that was evicted under this id. Raises NotRecallable with the reason, or StoreError."""
        text = self._parts.pager.recall(object_id)
        self._add(RecallEntry(object_id))
        return text

    def may_leave(self, call_id: str) -> bool:
        """Return whether the result of this call is in the window and may be evicted, now or later."""
        standing = self._state().standing
        if self._residents[0] is not standing:
            self._residents = (standing, frozenset(one.call_id for one in standing.all()))
        return call_id in self._residents[1]

    def work_in(self, folder: str) -> None:
        """Set the folder for relative paths of reads."""
        with self._lock:
            if folder != self._folder:
                self._folder, self._reading = folder, None

    @property
    def reads(self) -> SessionReads:
        """The session's reads, and the model's knowledge from them. Raises HostError without a working folder."""
        with self._lock:
            outside = self._parts.outside
            if self._reading is None:
                if outside is None or self._folder is None:
                    raise HostError(f"session {self.name!r} was opened without a workspace, so it cannot read files")
                self._reading = SessionReads(self, outside, outside.folder(self._folder))
            return self._reading

    @property
    def recalls(self) -> SessionRecall:
        """The session's recall and ingest. Raises HostError for a session without an engine."""
        with self._lock:
            if self._recalling is None:
                if self._parts.recalling is None:
                    raise HostError(f"session {self.name!r} stands alone and cannot recall; open it from an engine")
                self._recalling = self._parts.recalling(self)
            return self._recalling

    @property
    def size(self) -> int:
        """Approximate bytes of the session's messages: those of the largest request, 0 before the first."""
        return 0 if self._traffic is None else self._traffic.largest

    @property
    def is_kept(self) -> bool:
        """True if the store has everything."""
        return self._keeping.is_kept and (self._traffic is None or not self._traffic.owes)

    @property
    def traffic(self) -> Traffic:
        """The provider requests of this session."""
        if self._traffic is not None:  # a thread at work here holds the lock
            return self._traffic
        with self._lock:
            if self._traffic is None:
                marks = BreakpointSettings(self._parts.marks, self._parts.residency.arguments is not None)
                self._traffic = Traffic(self, marks=marks, shared=self._parts.shared)
            return self._traffic

    def prepare(self, request: Request, *, at: float | None = None, api: Api | None = None) -> PreparedRequest:
        """Return the provider's request to send for this one, given as fields (with an SDK's objects) or bytes.

        at: seconds since 1970; None for now.
        api: wire format; None to detect it.

        Raises BadInput for a body that no provider would read.
        """
        if self._parts.again is not None and self._privacy.is_outdated:
            self._successor = self._parts.again(self.name)
        return (self._successor or self).traffic.prepare_fields(request, api, self._now() if at is None else at)

    async def aprepare(self, request: Request, *, at: float | None = None, api: Api | None = None) -> PreparedRequest:
        """Run `prepare` in a thread, for coroutines."""
        return await in_thread(lambda: self.prepare(request, at=at, api=api))

    def observe(self, reply: Reply, prepared: PreparedRequest | None = None) -> Observation:
        """Record the provider's reply to a prepared request (see `Traffic.observe`). Raises HostError without a
        request.

        prepared: the answered request, needed with several concurrent calls; None for the last one.
        """
        return (self._successor or self).traffic.observe_reply(reply, prepared)

    async def aobserve(self, reply: Reply, prepared: PreparedRequest | None = None) -> Observation:
        """Run `observe` in a thread, for coroutines."""
        return await in_thread(lambda: self.observe(reply, prepared))

    @property
    def hand(self) -> Touch:
        """Pin actions: pin, drop, restore and veto results, order an epoch, pin a text, switch off."""
        return Touch(self, self._parts.pager, self._rules)

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
        """Read a file as the agent's own read tool would, or return a shorter answer with the same content (see
        `SessionReads.read`).
        """
        return self.reads.read(fspath(path), offset=offset, limit=limit, bypass=bypass_cache, signal=signal)

    def refresh(self, path: str | PathLike[str], offset: float | None = None, limit: float | None = None) -> ReadResult:
        """Make the next read of this file, or of these lines, show the full text (see `SessionReads.refresh`)."""
        return self.reads.refresh(fspath(path), offset=offset, limit=limit)

    def compact(self) -> None:
        """Record a compaction of everything so far: no earlier read is known any more."""
        try:
            with self.turn():
                self.note_compaction()
        except StoreError:
            self.note_compaction()  # holds in memory at once; the next `keep` stores it

    def note_write(self, path: str | PathLike[str], text: str) -> OwnWrite:
        """Record a write of a whole file by the model (see `SessionReads.note_write`)."""
        return self.reads.note_write(fspath(path), text)

    def note_edit(self, path: str | PathLike[str], old: str, new: str) -> OwnWrite:
        """Record an edit by the model: `new` in place of `old` (see `SessionReads.note_edit`)."""
        return self.reads.note_edit(fspath(path), old, new)

    def status(self) -> ReadingStatus:
        """Return the figures on reads on this branch, by any process."""
        self._caught_up()
        return self.reads.status(self._journal.branch(self.leaf))

    def fork(self, name: str) -> "Session":
        """Return a new session with the same branch so far, independent from here on. Raises BadInput for a name in
        use.

        Includes entries that other processes added before the fork.
        """
        if self._parts.begin is None:
            raise HostError(f"session {self.name!r} stands alone and cannot be forked; open it from an engine")
        forked = self._parts.begin(name)
        with self._lock:
            self._caught_up()
            forked.inherit(self._journal.branch(self.leaf), self._folder, self._privacy)
        return forked

    def inherit(self, branch: Iterable[Entry], folder: str | None, privacy: Privacy) -> None:
        """Begin with the entries and the folder of another session. Only for an empty session."""
        self._folder = folder
        self._privacy.withholding.inherit(privacy.withholding)
        self._keeping.inherit(branch)

    def _enter_previews(self, at: float | None, gate: Gate) -> tuple[tuple[PagedOut, ...], float | None, str | None]:
        """Store large outputs and replace them by previews before the first send.

        Returns the previews, the cost beyond their savings or None, and the reason of a failure or None.
        """
        parts, state = self._parts, self._state()
        if state.hand.off:
            return (), None, None
        settings = parts.residency.previews if gate.way is not None else None
        again = self._rereads.stand_ins(self.leaf) if parts.rereads else []
        # a read through this session stays whole, whatever the tool that made it is called
        read, taken = self.evidence.files.path_of, {one.entering.result.call_id for one in again}
        entering = [] if settings is None else preview_candidates(state, self._rules, settings)
        entering = [one for one in entering if one.result.call_id not in read and one.result.call_id not in taken]
        if not entering and not again:
            return (), None, None
        way = gate.way or TOOLS
        try:
            big = parts.pager.preview(self.name, entering, settings or Previews(), way)
            paid = toll(state, at, at_prices(parts.residency, gate.economics), big, gate.begins) if big else None
            big = big if paid is not None else ()
            previewed = (*big, *parts.pager.stand_in(self.name, again, way))
        except StoreError as problem:
            return (), None, f"big outputs enter whole: {type(problem).__name__}: {problem}"
        if previewed:
            self._add(PreviewEntry(previewed))
        return previewed, paid, None

    def _evict(
        self, at: float | None, previewed: tuple[PagedOut, ...], gate: Gate, paid: float | None
    ) -> EvictionOutcome:
        """Decide the evictions and restored texts of a call (see `window.eviction`).

        paid: cost of the previews; None without previews.
        """
        parts = self._parts
        residency = at_prices(gated_residency(parts.residency, gate), gate.economics)
        begins = gate.begins if paid is None else None
        if begins is not None and residency.economics is not None:
            residency = replace(residency, economics=economics_at_entrance(residency.economics, begins.tokens))
        # the size of the prompt prefix, which would be written again, is known after the first reported usage
        is_shut = gate.way is None or (begins is not None and self._state().floor is None)
        scene = Scene(
            session=self.name,
            state=self._state(),
            residency=residency,
            valve=parts.valve,
            at=at,
            previewed=previewed,
            stored=None if parts.outside is None else parts.outside.witness_source,
            window=window_of(parts.valve, self.model),
            opens=_never if is_shut else gate.opens,
            paid=paid or 0.0,
            files=self.window_files,
            excluded=parts.excluded,
            way=gate.way or TOOLS,
        )
        return evict(scene, parts.pager)

    def note_switch(self, *, on: bool) -> None:
        """Log that the user switched pagein off or on for this session."""
        if self._parts.recalling is not None:
            self.recalls.log_switch(on=on)

    def _insert_texts(self) -> None:
        """Insert pinned texts, manifest pages and notices after the newest message."""
        budget = self._parts.manifest if self._parts.recalling is not None else None
        told = ManifestSource(
            self.recalls.holdings if budget is not None else None, self._parts.counter.count, budget or BUDGET
        )
        for one in insertions(self._state(), told):
            self._add(one)
        with contextlib.suppress(StoreError):  # without the store's key no echo can be recognised
            for notice in () if self._state().hand.off else list(self._rereads.notices(self.leaf, self._privacy.shows)):
                self._add(notice)

    def _now(self) -> float | None:
        return None if self._parts.outside is None else self._parts.outside.now()

    def _persist(self) -> str | None:
        try:
            self.keep()
        except StoreError as problem:
            return f"the journal was not kept: {type(problem).__name__}: {problem}"
        return None

    def _add(self, body: Body, *, at: float | None = None, name: EntryId | None = None) -> EntryId:
        return self._keeping.add(body, at=at, name=name)

    def _state(self) -> State:
        return self._journal.state_at(self.leaf)


def _never(_: int) -> bool:
    return False
