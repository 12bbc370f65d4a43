"""Reading through a session: the host's answer, or less where the branch proves that less says the same.

Rules of this file
------------------
1. A file is read once per call; what is hashed, shown, stored and decided on are the same bytes.
2. Content is stored before the answer that rests on it is journaled, and the answer is journaled before it is given. A
   death in between leaves a blob too many, or an answer that nobody saw: never a marker without its base.
3. Whatever fails on our side, the caller gets the host's answer, without metadata, and is told why (law 7).
4. Content of excluded files, and of files with keys in them, is shown like any other, and neither stored nor journaled (law 9).
5. Files are read in parallel; deciding and journaling happen one at a time, each on the branch as it is by then, so
   that parallel calls of one turn see each other's answers.
"""

import base64
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field, replace
from typing import Protocol

from pagein.engine.log import read_notes
from pagein.engine.log.read_notes import ReadNote
from pagein.engine.reads import testimony
from pagein.engine.reads.evidence import Evidence
from pagein.engine.reads.evidence import step as with_evidence
from pagein.engine.reads.line_request import line_range, refresh_range
from pagein.engine.reads.read_figures import ReadingStatus, StoreFigures, status_of
from pagein.errors import Aborted, CallerError, StoreError
from pagein.model.documents import Document, LocatedFile
from pagein.model.entries import Entry, EntryId, MessageEntry
from pagein.model.messages import Image, Message, ToolResult
from pagein.model.names import ContentHash
from pagein.model.read_events import FileRead, FileRefresh, FileWrite
from pagein.model.spans import NO_LINES, Spans
from pagein.policy.reads import own_writes, read_records
from pagein.policy.reads.baseline import Baseline, ReadCaps, baseline, byte_length
from pagein.policy.reads.knowledge import Knowledge, PathKnown
from pagein.policy.reads.own_writes import TextEdit
from pagein.policy.reads.read_answers import decide
from pagein.policy.reads.read_request import DEFAULTS, ReadDecision, ReadingSettings, ReadRequest
from pagein.policy.reads.trust import rule_of
from pagein.ports import BlobStore, Files, Signal

_SHOWS_TEXT = ("full", "baseline_fallback", "partly_known")


class ReadBranch(Protocol):
    """What reading needs of a session: where it stands, and a way to add to it."""

    @property
    def evidence(self) -> Evidence:
        """What of the reads stands in the window where the session stands."""
        ...

    def window(self) -> Sequence[Message]:
        """The request as it would leave now."""
        ...

    def withhold(self, text: str) -> None:
        """An excluded file was read, and showed this text: a result that holds it is not stored."""
        ...

    def is_private(self, text: str) -> bool:
        """Whether a text holds what must not be stored, whatever it was read from."""
        ...

    def note(self, kind: str, data: str) -> EntryId:
        """Journal a fact."""
        ...

    def turn(self) -> AbstractContextManager[None]:
        """A time in which nobody else adds to the session; what is noted within is kept at its end, or taken back. Raises StoreError."""
        ...


@dataclass(frozen=True, slots=True)
class Outside:
    """What reading needs of the world.

    folder: the files as seen from a working folder. home: the folder of sessions that name none. now: seconds since 1970.
    witness: whether each answer is put to the witness before it is given.
    """

    blobs: BlobStore
    folder: Callable[[str], Files]
    home: str
    now: Callable[[], float]
    settings: ReadingSettings = DEFAULTS
    witness: bool = False

    @property
    def witness_source(self) -> Callable[[ContentHash], bytes | None] | None:
        """Where the witness finds versions, None where it is not asked."""
        return self._version if self.witness else None

    def _version(self, name: ContentHash) -> bytes | None:
        try:
            return self.blobs.get(name)
        except StoreError:
            return None


@dataclass(frozen=True, slots=True)
class ReadResult:
    """What a read call is answered with, in the shape of the host's own read.

    text: for the model. details: `truncation` and `readcache`, each only where it applies. images: beside the text.
    failure: why pagein answered as if it were not there; None where all went well, and where an error is the caller's.
    """

    text: str
    details: Mapping[str, object] = field(default_factory=dict)
    is_error: bool = False
    images: tuple[Image, ...] = ()
    failure: str | None = None


@dataclass(frozen=True, slots=True)
class _RangeRead:
    """A read of lines `first` to `last` of a text file, ready to be decided."""

    located: LocatedFile
    document: Document
    shown: Baseline
    first: int
    last: int
    bypass: bool


@dataclass(frozen=True, slots=True)
class OwnWrite:
    """What a write or edit of the model's own made known. lines: of the file as it is now. failure: as in ReadResult."""

    lines: Spans = NO_LINES
    failure: str | None = None


class SessionReads:
    """Reads of one session. Any number of threads may call it at once."""

    def __init__(self, branch: ReadBranch, outside: Outside, files: Files) -> None:
        self._branch = branch
        self._blobs = outside.blobs
        self._now = outside.now
        self._settings = outside.settings
        self._watched = outside.witness
        self._files = files

    @property
    def knowledge(self) -> Knowledge:
        """What the model knows of each file where the session stands."""
        return self._branch.evidence.known

    def read(
        self,
        path: str,
        *,
        offset: float | None = None,
        limit: float | None = None,
        bypass: bool = False,
        signal: Signal | None = None,
    ) -> ReadResult:
        """Answer a read call. Never raises for a file or a store that cannot be used."""
        try:
            located = self._files.locate(path, offset=offset, limit=limit)
            document = self._files.read(located, signal)
            if document.media_type is not None:
                return _picture(document)
            caps = ReadCaps(self._settings.cap_lines, self._settings.cap_bytes)
            shown = baseline(document.text, located.given, offset=located.offset, limit=located.limit, caps=caps)
        except CallerError as error:
            return ReadResult(str(error), is_error=True)
        plain = ReadResult(shown.text, shown.details)
        lines = line_range(located, shown.total)
        if located.excluded:
            self._branch.withhold(plain.text)
        if located.excluded or not document.is_text or lines is None or self._branch.is_private(document.text):
            return plain
        try:
            return self._shorten(_RangeRead(located, document, shown, *lines, bypass), signal)
        except Aborted as error:
            return ReadResult(str(error), is_error=True)
        except Exception as problem:  # noqa: BLE001  rule 3: even a bug of ours costs a saving, never a read
            return ReadResult(plain.text, plain.details, failure=_reason(problem))

    def refresh(self, path: str, *, offset: float | None = None, limit: float | None = None) -> ReadResult:
        """Have the next read of this file, or of these lines of it, show the text whatever is known (spec 17).

        Where the store fails it holds in this process at least, and `failure` says so.
        """
        try:
            located = self._files.locate(path, offset=offset, limit=limit)
            lines = refresh_range(located, self._files)
        except CallerError as error:
            return ReadResult(str(error), is_error=True)
        failure = None
        try:
            with self._branch.turn():
                self._forget(located, lines)
        except StoreError as problem:
            failure = _reason(problem)
            self._forget(located, lines)
        what = "full scope" if lines is None else f"lines {lines[0]}-{lines[1]}"
        return ReadResult(f"[readcache-refresh] invalidated {what} for {located.given}", failure=failure)

    def note_write(self, path: str, text: str) -> OwnWrite:
        """The model wrote this whole text to a file, and the tool reported success: it knows all of it."""

        def event(key: str, _: LocatedFile) -> tuple[FileWrite, bytes]:
            return own_writes.written(key, text), text.encode()

        return self._learn(path, text, event)

    def note_edit(self, path: str, old: str, new: str) -> OwnWrite:
        """The model's edit, which put `new` in place of `old`, succeeded: it knows what it wrote, and what it knew around it.

        May be told before or after the file has changed; a file that fits neither teaches nothing.
        """
        return self._learn(path, new, lambda key, located: self._edit(key, located, old, new))

    def status(self, branch: Iterable[Entry]) -> ReadingStatus:
        """What was read and saved on this branch, which ends where the session stands."""
        try:
            blobs, size = self._blobs.figures()
            figures: StoreFigures | None = StoreFigures(blobs, size)
        except StoreError:
            figures = None
        return status_of(branch, self.knowledge, figures)

    def upheld(self, message: Message) -> Message:
        """What is about to be said, with those answers in full that the window would not bear out (law 2).

        Results may be said in another order than they were read in, or without the one that an answer rests on.
        """
        while self._branch.evidence.pending_events():
            before = self._branch.evidence
            after = with_evidence(before, MessageEntry(message))
            wrong = after.unproven - before.unproven
            block = next((one for one in message.blocks if isinstance(one, ToolResult) and one.call_id in wrong), None)
            placed = None if block is None else after.of_call(block.call_id)
            text = None if block is None or placed is None else self._in_full(placed.told, block.text)
            if block is None or text is None:
                return message
            blocks = (replace(one, text=text) if one is block else one for one in message.blocks)
            message = replace(message, blocks=tuple(blocks))
        return message

    def _in_full(self, told: ReadNote, answer: str) -> str | None:
        """The text that an answer stood for, as the host would have shown it, now journaled in its stead. None where it cannot be had."""
        event = told.event
        if not isinstance(event, FileRead):
            return None
        offset = None if event.first == 1 else event.first
        limit = None if event.last == event.total else event.last - event.first + 1
        content = self._fetch(event.version)
        if content is None:
            now = self.read(told.given, offset=offset, limit=limit, bypass=True)
            return None if now.is_error or now.failure else now.text
        caps = ReadCaps(self._settings.cap_lines, self._settings.cap_bytes)
        shown = baseline(content.decode(errors="replace"), told.given, offset=offset, limit=limit, caps=caps)
        emitted = Spans.of((shown.first, shown.last)) if shown.shown > 0 else NO_LINES
        again = replace(event, mode="baseline_fallback", emitted=emitted, copies=(), v=1)
        # what the answer spared is taken back
        sizes = read_notes.Sizes(0, max(0, byte_length(shown.text) - byte_length(answer)))
        self._branch.note(read_notes.KIND, read_notes.encode_read(again, sizes, shown.text, told.given))
        return shown.text

    # --- deciding ---

    def _shorten(self, asked: _RangeRead, signal: Signal | None) -> ReadResult:
        document, shown, given = asked.document, asked.shown, asked.located.given
        with self._branch.turn():
            decision, objection = self._witness(asked, signal)
            event, text = decision.event, decision.text
            self._store(document.content, document.hash)
            if event.mode in testimony.KEPT:  # for the witness; other answers can be worked out
                answer = text.encode("utf-8", "surrogatepass")
                self._store(answer, ContentHash.of(answer))
            sizes = read_notes.Sizes(byte_length(shown.text), byte_length(text))
            self._branch.note(read_notes.KIND, read_notes.encode_read(event, sizes, text, given))
        details = {"readcache": read_records.encode(event)}
        if shown.truncation is not None and event.mode in _SHOWS_TEXT:
            cut = shown.truncation.details
            if text != shown.text:
                cut = {**cut, "content": text.removesuffix(shown.notice)}
            return ReadResult(text, {"truncation": cut, **details}, failure=objection)
        return ReadResult(text, details, failure=objection)

    def _witness(self, asked: _RangeRead, signal: Signal | None) -> tuple[ReadDecision, str | None]:
        """The decision; where the witness is asked and objects, the host's answer, and the objection."""
        decision = self._decide(asked, signal)
        if not self._watched or rule_of(decision.event).anchors:
            return decision, None

        def stored(version: ContentHash) -> bytes | None:
            return asked.document.content if version == asked.document.hash else self._fetch(version, signal)

        path = decision.event.path
        told = testimony.make_testimony(self._branch.evidence, self._branch.window(), stored, path=path)
        told.add(testimony.CANDIDATE, decision.event, decision.text)
        against = next((one for one in told.objections(stored) if one.call_id == testimony.CANDIDATE), None)
        if against is None:
            return decision, None
        line = "" if against.line is None else f" (line {against.line})"
        return self._decide(replace(asked, bypass=True), signal), f"the witness objected: {against.why}{line}"

    def _decide(self, asked: _RangeRead, signal: Signal | None) -> ReadDecision:
        key = self._key(asked.located)
        document = replace(asked.document, key=key)
        request = ReadRequest(document, asked.located.given, asked.first, asked.last, asked.shown, asked.bypass)
        decision = decide(request, self.knowledge.of(key), lambda name: self._fetch(name, signal), self._settings)
        _check(signal)
        return decision

    def _fetch(self, name: ContentHash, signal: Signal | None = None) -> bytes | None:
        _check(signal)
        try:
            return self._blobs.get(name)
        except StoreError:
            return None

    def _store(self, content: bytes, name: ContentHash) -> None:
        # asked first: storing again what is there would unpack and prove it
        if not self._blobs.has(name):
            self._blobs.put(content)

    def _key(self, located: LocatedFile) -> str:
        """The key under which the branch knows this file: its own, or that of a hard link to it."""
        known = self.knowledge.paths
        return located.key if located.key in known else self._files.same_file(located, known) or located.key

    def _forget(self, located: LocatedFile, lines: tuple[int, int] | None) -> None:
        event = FileRefresh(self._key(located), lines)
        self._branch.note(read_notes.KIND, read_notes.encode_refresh(event, self._now()))

    # --- the model's own writes ---

    def _learn(
        self, path: str, text: str, event: Callable[[str, LocatedFile], tuple[FileWrite, bytes] | None]
    ) -> OwnWrite:
        try:
            located = self._files.locate(path, offset=1)  # a path in a write has no line suffix
            if located.excluded:
                return OwnWrite()
            with self._branch.turn():
                found = event(self._key(located), located)
                if found is None:
                    return OwnWrite()
                learned, content = found
                if self._branch.is_private(content.decode("utf-8", "surrogatepass")):
                    return OwnWrite()
                self._store(content, learned.version)
                self._branch.note(read_notes.KIND, read_notes.encode_write(learned, text, located.given))
        except Exception as problem:  # noqa: BLE001  rule 3: what we do not learn costs a saving, never a write
            return OwnWrite(failure=_reason(problem))
        return OwnWrite(learned.authored)

    def _edit(self, key: str, located: LocatedFile, old: str, new: str) -> tuple[FileWrite, bytes] | None:
        document = self._files.read(located)
        if not document.is_text:
            return None
        known = self.knowledge.of(key)
        min_run = self._settings.min_run
        for everywhere in (False, True):
            event = own_writes.edit_event(key, document.text, TextEdit(old, new, everywhere), known, min_run=min_run)
            if event is not None and event.copies:
                before = self._fetch(event.copies[0].base)
                if before is not None:
                    event = own_writes.follow_edit(event, before.decode(errors="replace"), known, self._fetch)
                return event, document.content
        # the file is still to change; or others have changed it since, and the edit fits the file as the model takes it to be
        for version in self._before(known, document):
            content = document.content if version == document.hash else self._fetch(version)
            before_edit = None if content is None else content.decode(errors="replace")
            if before_edit is not None and old and before_edit.count(old) == 1:
                after = before_edit.replace(old, new)
                event = own_writes.edit_event(
                    key, after, TextEdit(old, new), known, before=before_edit, min_run=min_run
                )
                if event is not None:
                    return own_writes.follow_edit(event, before_edit, known, self._fetch), after.encode()
        event = own_writes.edit_event(key, document.text, TextEdit(old, new), known, min_run=min_run)
        if event is None and known.view:
            event = own_writes.unplaced_edit(key, document.text)
        return None if event is None else (event, document.content)

    @staticmethod
    def _before(known: PathKnown, document: Document) -> Iterator[ContentHash]:
        """Versions that an edit may have been made to, the likeliest first."""
        if known.lines_known(document.hash) is not None:
            yield document.hash
        yield from (version for version, _ in reversed(known.versions) if known.is_taken_for(version))


def _check(signal: Signal | None) -> None:
    if signal is not None and signal.is_set():
        raise Aborted("Operation aborted")


def _picture(document: Document) -> ReadResult:
    data = base64.b64encode(document.content).decode("ascii")
    media_type = document.media_type or ""
    return ReadResult(f"Read image file [{media_type}]", images=(Image(media_type, len(data), data),))


def _reason(problem: Exception) -> str:
    return f"{type(problem).__name__}: {problem}"
