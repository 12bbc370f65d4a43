"""Answer file reads in a session: with the client's own answer, or with a provably equivalent shorter answer.

Rules of this file
------------------
1. A file is read once per call; the same bytes are hashed, shown, stored and decided on.
2. Content is stored before an answer that depends on it is journaled, and the answer is journaled before it is given. A
   crash in between leaves an extra blob, or an answer that no model saw: never a marker without its base.
3. After any failure in pagein the caller gets the client's own answer without metadata, and the reason (law 7).
4. Content of excluded files, and of files with keys, is shown like any other, but neither stored nor journaled (law 9).
5. Files are read in parallel; decisions and journal entries happen one at a time, each on the current branch, so that
   parallel calls of one turn see each other's answers.
"""

import base64
import contextlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from pagein.engine.log.journal import Fold
from pagein.engine.log.read_notes import trace_of
from pagein.engine.log.session_log import SessionLog
from pagein.engine.reads import testimony
from pagein.engine.reads.evidence import Evidence
from pagein.engine.reads.evidence import step as with_evidence
from pagein.engine.reads.large_document import LargeDocument
from pagein.engine.reads.line_request import line_range, refresh_range
from pagein.engine.reads.read_figures import ReadingStatus, StoreFigures, status_of
from pagein.engine.reads.read_resources import Outside
from pagein.errors import AbortedOperation, CallerError, StoreError
from pagein.model import read_records
from pagein.model.documents import Document, LocatedFile
from pagein.model.entries import Entry, MessageEntry
from pagein.model.journal_notes import ReadNote
from pagein.model.messages import Image, Message, ToolResult
from pagein.model.names import ContentHash
from pagein.model.read_caps import ReadCaps
from pagein.model.read_events import FileRead, FileRefresh, FileWrite
from pagein.model.spans import NO_LINES, Spans
from pagein.policy.clients.window_files import FileStatement
from pagein.policy.reads import own_writes
from pagein.policy.reads.baseline import baseline, byte_length
from pagein.policy.reads.knowledge import Knowledge
from pagein.policy.reads.read_answers import decide, decide_lines
from pagein.policy.reads.read_request import DoneRead, RangeRead, ReadDecision, ReadRequest, Rehearse
from pagein.policy.reads.text_edit import TextEdit
from pagein.policy.reads.trust import rule_of
from pagein.ports import Files, Signal

_SHOWS_TEXT = ("full", "baseline_fallback", "partly_known")


@dataclass(frozen=True, slots=True)
class ReadResult:
    """The answer to a read call, in the form of the client's own read.

    text: for the model.
    details: `truncation` and `readcache`, if they apply.
    is_error: True for an error of the caller.
    images: images beside the text.
    failure: why pagein gave the client's own answer; None without a failure in pagein.
    """

    text: str
    details: Mapping[str, object] = field(default_factory=dict)
    is_error: bool = False
    images: tuple[Image, ...] = ()
    failure: str | None = None


@dataclass(frozen=True, slots=True)
class OwnWrite:
    """Knowledge from the model's own write or edit.

    lines: known lines of the new file.
    failure: as in ReadResult.
    event: the write as it was journaled; None if nothing was learned.
    """

    lines: Spans = NO_LINES
    failure: str | None = None
    event: FileWrite | None = None


class SessionReads:
    """Reads of a session. Thread-safe.

    proofs: the read answers that the window proves, at each entry.
    symbols: finds definitions by name; None without symbols.
    """

    def __init__(self, log: SessionLog, proofs: Fold[Evidence], outside: Outside, files: Files) -> None:
        self._log = log
        self._proofs = proofs
        self._blobs = outside.blobs
        self._version = outside.version
        self._now = outside.now
        self._settings = outside.settings
        self._watched = outside.witness
        self._files = files
        self._large = LargeDocument(log.privacy.begin_search)
        self.symbols = outside.symbols

    @property
    def files(self) -> Files:
        """The files, as seen from the session's folder."""
        return self._files

    @property
    def knowledge(self) -> Knowledge:
        """The model's knowledge of each file at the current entry."""
        return self._evidence().known

    def read(
        self,
        path: str,
        *,
        offset: float | None = None,
        limit: float | None = None,
        bypass: bool = False,
        signal: Signal | None = None,
        done: DoneRead | None = None,
    ) -> ReadResult:
        """Answer a read call. Raises nothing for an unreadable file or an unusable store.

        done: the answer of the client's own tool, where it has answered already.
        """
        try:
            located = self._files.locate(path, offset=offset, limit=limit)
            document = self.load(located, signal)
            if document.media_type is not None:
                return picture(document)
            caps = ReadCaps(self._settings.cap_lines, self._settings.cap_bytes)
            shown = baseline(document.lines, located.given, offset=located.offset, limit=located.limit, caps=caps)
        except CallerError as error:
            return ReadResult(str(error), is_error=True)
        plain = ReadResult(shown.text, shown.details)
        lines = line_range(located, shown.total)
        if located.excluded:
            self._log.withhold(plain.text)
        # the file may have changed since another tool answered, or that tool reads in another way
        differs = done is not None and done.text != plain.text
        if lines is None or differs or not self.may_journal(located, document):
            return plain
        try:
            rehearse = None if done is None else done.rehearse
            return self.shorten(RangeRead(located, document, shown, *lines, bypass), signal, rehearse)
        except AbortedOperation as error:
            return ReadResult(str(error), is_error=True)
        except Exception as problem:  # noqa: BLE001  rule 3: even a bug in pagein costs a saving, never a read
            return ReadResult(plain.text, plain.details, failure=_reason(problem))

    def load(self, located: LocatedFile, signal: Signal | None = None) -> Document:
        """Read a file once, and begin to look for keys in it. Raises BadInput in the host's words, and AbortedOperation."""
        document = self._files.read(located, signal)
        return document if located.excluded else self._large.remember(document)

    def refresh(self, path: str, *, offset: float | None = None, limit: float | None = None) -> ReadResult:
        """Make the next read of this file, or of these lines, show the full text.

        If the store fails, the refresh holds at least in this process, and `failure` has the reason.
        """
        try:
            event, told = self.planned_refresh(path, offset=offset, limit=limit)
        except CallerError as error:
            return ReadResult(str(error), is_error=True)
        failure = None
        try:
            with self._log.turn():
                self.note_refresh(event)
        except StoreError as problem:
            failure = _reason(problem)
            self.note_refresh(event)
        return ReadResult(told, failure=failure)

    def planned_refresh(
        self, path: str, *, offset: float | None = None, limit: float | None = None
    ) -> tuple[FileRefresh, str]:
        """Return the event of a refresh, not journaled yet, and the reply. Raises CallerError."""
        located = self._files.locate(path, offset=offset, limit=limit)
        lines = refresh_range(located, self._files)
        what = "full scope" if lines is None else f"lines {lines[0]}-{lines[1]}"
        told = f"[readcache-refresh] invalidated {what} for {located.given}"
        return FileRefresh(self.key_of(located), lines), told

    def note_refresh(self, event: FileRefresh) -> None:
        """Journal a refresh."""
        self._log.note(ReadNote(event, at=max(1, round(self._now() * 1000))), at=self._now())

    def note_write(self, path: str, text: str) -> OwnWrite:
        """Record a successful write of a whole file by the model, which then knows the whole text."""
        return self._learn(path, text, lambda key, _: (own_writes.write_event(key, text), text))

    def note_edit(self, path: str, changes: Sequence[tuple[str, str]]) -> OwnWrite:
        """Record a successful edit by the model, which then knows the new text and known text around the edit.

        May be called before or after the file has changed; a file that fits neither adds no knowledge.

        changes: old and new text of each replacement of the call.
        """
        edits = [TextEdit(old, new) for old, new in changes]

        def event(key: str, located: LocatedFile) -> tuple[FileWrite, str] | None:
            document = self._files.read(located)
            if not document.is_text:
                return None
            known, min_run = self.knowledge.of(key), self._settings.min_run
            return own_writes.reported_edits_event(key, document.text, edits, known, self._fetch, min_run=min_run)

        return self._learn(path, own_writes.trace_text(edits), event)

    def status(self, branch: Iterable[Entry]) -> ReadingStatus:
        """Return the figures on this branch, which ends at the current entry."""
        try:
            blobs, size = self._blobs.figures()
            figures: StoreFigures | None = StoreFigures(blobs, size)
        except StoreError:
            figures = None
        return status_of(branch, self.knowledge, figures)

    def upheld(self, message: Message) -> Message:
        """Show answers in full where the window would not prove them (law 2), in a message about to be appended.

        A client may send results in another order than it read them, or without the one on which an answer depends.
        """
        while self._evidence().pending_events():
            before = self._evidence()
            after = with_evidence(before, MessageEntry(message))
            wrong = after.files.unproven - before.files.unproven
            block = next((one for one in message.blocks if isinstance(one, ToolResult) and one.call_id in wrong), None)
            placed = None if block is None else after.files.statement_of(block.call_id)
            text = None if block is None or placed is None else self._in_full(placed, block.text)
            if block is None or text is None:
                return message
            blocks = (replace(one, text=text) if one is block else one for one in message.blocks)
            message = replace(message, blocks=tuple(blocks))
        return message

    def _in_full(self, placed: FileStatement, answer: str) -> str | None:
        """Return the full text behind an answer, and journal the text in place of the answer.

        None if the text is unavailable.
        """
        event = placed.event
        if not isinstance(event, FileRead):
            return None
        offset = None if event.first == 1 else event.first
        limit = None if event.last == event.total else event.last - event.first + 1
        content = self._fetch(event.version)
        if content is None:
            now = self.read(placed.given, offset=offset, limit=limit, bypass=True)
            return None if now.is_error or now.failure else answer[: placed.before] + now.text
        caps = ReadCaps(self._settings.cap_lines, self._settings.cap_bytes)
        shown = baseline(content.decode(errors="replace"), placed.given, offset=offset, limit=limit, caps=caps)
        emitted = Spans.of((shown.first, shown.last)) if shown.shown > 0 else NO_LINES
        again = replace(event, mode="baseline_fallback", emitted=emitted, copies=(), v=1)
        text = answer[: placed.before] + shown.text
        # undo the saving of the answer
        more = max(0, byte_length(text) - byte_length(answer))
        self._log.note(ReadNote(again, trace_of(text), placed.given, sent=more, before=placed.before), at=self._now())
        return text

    def _evidence(self) -> Evidence:
        """Return the read answers that the window proves at the current entry."""
        return self._proofs[self._log.leaf]

    def _window(self) -> list[Message]:
        """Return the messages of the next request."""
        return [self._log.privacy.shows(one) for one in testimony.window(self._log.state())]

    # --- decisions ---

    def may_journal(self, located: LocatedFile, document: Document) -> bool:
        """Return whether a read of this file may be journaled, and its text stored."""
        if located.excluded or not document.is_text:
            return False
        privacy = self._log.privacy
        if privacy.is_searching(document):  # packed while the search goes on
            with contextlib.suppress(StoreError):  # the read itself meets it again
                if not self._blobs.has(document.hash):
                    self._blobs.prepare(document.content, document.hash)
        return not privacy.is_private_file(document)

    def shorten(self, asked: RangeRead, signal: Signal | None = None, rehearse: Rehearse | None = None) -> ReadResult:
        """Return the answer to a read of a storable text file, and journal the read.

        rehearse: told of the answer instead, which is then the client's own; None to answer.

        Raises StoreError, AbortedOperation.
        """
        document, shown, given = asked.document, asked.shown, asked.located.given
        with self._log.turn():
            decision, objection = self._witness(asked, signal, always=rehearse is not None)
            if rehearse is not None:
                rehearse(decision, objection)
                decision, objection = self._decide(replace(asked, bypass=True), signal), None
            event, text = decision.event, asked.head + decision.text
            self._store(document.content, document.hash)
            # for the witness; other answers can be recomputed
            if event.mode in testimony.KEPT or (asked.head and not rule_of(event).anchors):
                answer = text.encode("utf-8", "surrogatepass")
                self._store(answer, ContentHash.of(answer))
            sizes = byte_length(asked.head + shown.text), byte_length(text)
            self._log.note(ReadNote(event, trace_of(text), given, *sizes, before=len(asked.head)), at=self._now())
        details = {"readcache": read_records.encode(event)}
        if shown.truncation is not None and event.mode in _SHOWS_TEXT:
            cut = shown.truncation.details
            if decision.text != shown.text:
                cut = {**cut, "content": decision.text.removesuffix(shown.notice)}
            return ReadResult(text, {"truncation": cut, **details}, failure=objection)
        return ReadResult(text, details, failure=objection)

    def _witness(
        self, asked: RangeRead, signal: Signal | None, *, always: bool = False
    ) -> tuple[ReadDecision, str | None]:
        """Return the decision and None; after an objection of the witness, the client's own answer and the objection."""
        decision = self._decide(asked, signal)
        if not (self._watched or always) or rule_of(decision.event).anchors:
            return decision, None

        def stored(version: ContentHash) -> bytes | None:
            return asked.document.content if version == asked.document.hash else self._fetch(version, signal)

        path = decision.event.path
        told = testimony.make_testimony(self._evidence(), self._window(), stored, path=path)
        told.add(testimony.CANDIDATE, decision.event, decision.text)
        against = next((one for one in told.objections(stored) if one.call_id == testimony.CANDIDATE), None)
        if against is None:
            return decision, None
        line = "" if against.line is None else f" (line {against.line})"
        return self._decide(replace(asked, bypass=True), signal), f"the witness objected: {against.why}{line}"

    def _decide(self, asked: RangeRead, signal: Signal | None) -> ReadDecision:
        key = self.key_of(asked.located)
        document = asked.document if key == asked.document.key else replace(asked.document, key=key)
        request = ReadRequest(document, asked.located.given, asked.first, asked.last, asked.shown, asked.bypass)
        known, wanted = self.knowledge.of(key), asked.wanted

        def fetch(name: ContentHash) -> bytes | None:
            return self._fetch(name, signal)

        if wanted is None:
            decision = decide(request, known, fetch, self._settings)
        else:
            decision = decide_lines(request, wanted, known, fetch, self._settings)
        _check(signal)
        if asked.room is not None and len(decision.text) > asked.room and not asked.bypass:
            return self._decide(replace(asked, bypass=True), signal)
        return decision

    def _fetch(self, name: ContentHash, signal: Signal | None = None) -> bytes | None:
        _check(signal)
        return self._version(name)

    def _store(self, content: bytes, name: ContentHash) -> None:
        # checked first: storing existing content again would decompress and verify it
        if not self._blobs.has(name):
            self._blobs.put(content, name)

    def key_of(self, located: LocatedFile) -> str:
        """Return the branch's key of a file: the file's own, or the key of a hard link."""
        known = self.knowledge.paths
        return located.key if located.key in known else self._files.same_file(located, known) or located.key

    # --- the model's own writes ---

    def _learn(
        self, path: str, text: str, event: Callable[[str, LocatedFile], tuple[FileWrite, str] | None]
    ) -> OwnWrite:
        try:
            located = self._files.locate(path, offset=1)  # the path of a write has no line suffix
            if located.excluded:
                return OwnWrite()
            with self._log.turn():
                found = event(self.key_of(located), located)
                if found is None:
                    return OwnWrite()
                learned, after = found
                if self._log.privacy.is_private(after):
                    return OwnWrite()
                self._store(after.encode(), learned.version)
                self._log.note(ReadNote(learned, trace_of(text), located.given), at=self._now())
        except Exception as problem:  # noqa: BLE001  rule 3: a failure here costs a saving, never a write
            return OwnWrite(failure=_reason(problem))
        return OwnWrite(learned.authored, event=learned)


def _check(signal: Signal | None) -> None:
    if signal is not None and signal.is_set():
        raise AbortedOperation("Operation aborted")


def picture(document: Document) -> ReadResult:
    """Return the answer to a read of an image."""
    data = base64.b64encode(document.content).decode("ascii")
    media_type = document.media_type or ""
    return ReadResult(f"Read image file [{media_type}]", images=(Image(media_type, len(data), data),))


def _reason(problem: Exception) -> str:
    return f"{type(problem).__name__}: {problem}"
