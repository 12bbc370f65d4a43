"""Ingest: store files without showing them in the window.

Rules of this file
------------------
1. The tree yields only files of its folder, and says for each whether its content may be stored; other content is not
   even read (law 9).
2. A file with unchanged content is not stored again; a changed file is stored under a new id.
3. Objects and the entries that name them are stored in one transaction, a batch of files at a time. So an ingest that
   is cancelled, or dies, has ingested whole files, and the journal has an entry for each.
"""

import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from typing import Final, Protocol, TypeAlias

from pagein.engine.log.evicted_texts import bytes_of
from pagein.engine.log.holdings import FILE, HeldObject, Holdings
from pagein.engine.log.trajectory import Operation
from pagein.errors import BadInput, BadSetting, CallerError, StoreError
from pagein.model.journal_notes import IngestNote, Note
from pagein.model.names import ContentHash
from pagein.model.objects import ObjectId, Origin, StoredObject
from pagein.model.shared_collections import SharedMap
from pagein.model.trees import TreeFile, TreeMatches
from pagein.policy.privacy.exclusions import keys_in
from pagein.policy.stubs.descriptions import of_file
from pagein.ports import BlobStore, Signal, TokenCounter

MAX_FILES: Final = 1000
"""Most files of one ingest."""
MAX_BYTES: Final = 100_000_000
"""Most bytes of one ingest."""
CONFIRM_ABOVE: Final = 10
"""Number of files above which `confirm` is called."""
_BATCH_FILES: Final = 64
_BATCH_BYTES: Final = 8_000_000
_ATTEMPTS: Final = 4

Tell: TypeAlias = Callable[[int, int, str], None]
"""Callback for progress: files done, files in total, path of the last file."""


class IngestTree(Protocol):
    """The files below a folder, for ingest. Nothing outside of the folder is ever matched or read."""

    def match(self, patterns: Sequence[str], signal: Signal | None = None, /) -> TreeMatches:
        """Return the files that match paths and globs. Raises BadInput for a malformed pattern, and AbortedOperation."""
        ...

    def text(self, file: TreeFile, signal: Signal | None = None, /) -> str:
        """Read a file's text. Raises BadInput with a short reason for an unreadable or binary file, and AbortedOperation."""
        ...


class Owner(Protocol):
    """The session that receives the files."""

    @property
    def session(self) -> str:
        """The session's name."""
        ...

    @property
    def holdings(self) -> Holdings:
        """The objects of its branch."""
        ...

    def turn(self) -> AbstractContextManager[None]:
        """Lock the session (see `Session.turn`). Raises StoreError."""
        ...

    def note(self, note: Note) -> None:
        """Journal a fact."""
        ...

    def log(self, operation: Operation, objects: Sequence[str], details: dict[str, object], took: float) -> None:
        """Log an operation.

        took: duration in seconds.
        """
        ...

    def clock(self) -> float:
        """Return seconds of a monotonic clock."""
        ...


@dataclass(frozen=True, slots=True)
class IngestLimits:
    """Limits of one ingest. Raises BadSetting for a limit below 1.

    files: number of files.
    bytes: total size.
    """

    files: int = MAX_FILES
    bytes: int = MAX_BYTES

    def __post_init__(self) -> None:
        if min(self.files, self.bytes) < 1:
            raise BadSetting(f"an ingest takes 1 file and 1 byte or more, not {self.files} and {self.bytes}")


WIDE: Final = IngestLimits()


@dataclass(frozen=True, slots=True)
class Done:
    """An ingested file.

    object_id: id of its object.
    path: its path.
    tokens: estimated tokens.
    before: object with its earlier content; None if absent.
    known: True if the store had this content already.
    """

    object_id: str
    path: str
    tokens: int
    before: str | None = None
    known: bool = False


@dataclass(frozen=True, slots=True)
class IngestReport:
    """The result of an ingest.

    done: ingested files.
    skipped: skipped paths with reasons.
    refused: reason of a refused ingest; None otherwise.
    ignored: see `TreeMatches`.
    failure: reason of a failed store; None otherwise.
    """

    done: tuple[Done, ...] = ()
    skipped: tuple[tuple[str, str], ...] = ()
    refused: str | None = None
    ignored: int = 0
    failure: str | None = None


@dataclass(slots=True)
class _Batch:
    files: list[tuple[TreeFile, str]] = field(default_factory=list)
    size: int = 0

    def full(self) -> bool:
        return len(self.files) >= _BATCH_FILES or self.size >= _BATCH_BYTES


@dataclass(slots=True)
class _IngestRun:
    """An ingest in progress."""

    known: SharedMap[HeldObject]
    total: int
    tell: Tell | None
    done: list[Done] = field(default_factory=list)
    skipped: list[tuple[str, str]] = field(default_factory=list)
    size: int = 0
    passed: int = 0

    def skip(self, path: str, why: str) -> None:
        self.skipped.append((path, why))
        self._report(path)

    def take(self, done: Done) -> None:
        self.done.append(done)
        if done.known:
            self.skipped.append((done.path, "already ingested"))
        self._report(done.path)

    def _report(self, path: str) -> None:
        self.passed += 1
        if self.tell is not None:
            self.tell(self.passed, self.total, path)


@dataclass(frozen=True, slots=True)
class IngestStore:
    """Store files for one workspace."""

    blobs: BlobStore
    workspace: str
    counter: TokenCounter

    def keep(self, session: str, file: TreeFile, text: str) -> StoredObject:
        """Store a file's text. The same text of the same file in the same session gets the same id. Raises StoreError."""
        return self.keep_text(Origin(session, f"file:{file.key}"), FILE, of_file(file.path), text)

    def keep_text(self, origin: Origin, kind: str, description: str, text: str) -> StoredObject:
        """Store any text. The same text of the same origin gets the same id. Raises StoreError."""
        content = bytes_of(text)
        name = ContentHash.of(content)
        secret, tokens = self.blobs.secret(), math.ceil(self.counter.count(text))
        for attempt in range(_ATTEMPTS):
            made = ObjectId.of(name, origin, secret, attempt)
            stored = StoredObject(made, name, kind, self.workspace, origin, description, tokens, len(text))
            if not self.blobs.put_objects([(stored, content)]):
                return stored
        raise StoreError(
            f"object ids of session {origin.session!r} are taken by other content, {_ATTEMPTS} times in a row"
        )


class Ingester:
    """Ingest files below a folder for a session."""

    def __init__(self, owner: Owner, keeper: IngestStore, tree: IngestTree, limits: IngestLimits) -> None:
        self._owner = owner
        self._keeper = keeper
        self._tree = tree
        self._limits = limits

    def ingest(
        self,
        patterns: Sequence[str],
        *,
        limits: IngestLimits | None = None,
        confirm: Callable[[int], bool] | None = None,
        tell: Tell | None = None,
        signal: Signal | None = None,
    ) -> IngestReport:
        """Store the files that match these paths and globs. Raises BadInput for a malformed pattern.

        patterns: paths and globs.
        limits: limits of this ingest; None for the session's.
        confirm: called with the number of files if there are many; returns whether to go on.
        tell: called with the progress.
        signal: aborts the ingest.
        """
        began = self._owner.clock()
        bounds = limits if limits is not None else self._limits
        matched = self._tree.match(patterns, signal)
        report = self._refusal(matched, bounds, confirm)
        if report is None:
            report = self._run(matched, bounds, tell, signal)
        details: dict[str, object] = {
            "paths": list(patterns),
            "fileCount": len(report.done),
            "skipped": len(report.skipped),
        }
        self._owner.log("ingest", [one.object_id for one in report.done], details, self._owner.clock() - began)
        return report

    def _refusal(
        self, matched: TreeMatches, bounds: IngestLimits, confirm: Callable[[int], bool] | None
    ) -> IngestReport | None:
        count = len(matched.files)
        why = None
        if not count:
            why = "No files matched the provided paths."
        elif count > bounds.files:
            why = f"Too many files: {count} matched, limit is {bounds.files}. Use more specific patterns."
        elif confirm is not None and count > CONFIRM_ABOVE and not confirm(count):
            why = "Cancelled by user"
        return None if why is None else IngestReport(skipped=matched.left, refused=why, ignored=matched.ignored)

    def _run(
        self, matched: TreeMatches, bounds: IngestLimits, tell: Tell | None, signal: Signal | None
    ) -> IngestReport:
        run = _IngestRun(self._owner.holdings.files, len(matched.files), tell)
        failure = None
        for batch in self._batches(matched.files, run, bounds, signal):
            try:
                self._store(batch, run)
            except StoreError as problem:
                failure = f"{type(problem).__name__}: {problem}"
                for file, _ in batch.files:
                    run.skip(file.path, "the store failed")
        skipped = (*matched.left, *run.skipped)
        return IngestReport(tuple(run.done), skipped, ignored=matched.ignored, failure=failure)

    def _batches(
        self, files: Sequence[TreeFile], run: _IngestRun, bounds: IngestLimits, signal: Signal | None
    ) -> Iterator[_Batch]:
        batch = _Batch()
        for file in files:
            if signal is not None and signal.is_set():
                run.skip(file.path, "aborted")
            elif file.excluded:
                run.skip(file.path, "excluded")
            elif run.size + file.size > bounds.bytes:
                run.skip(file.path, "maxIngestBytes exceeded")
            else:
                self._read(file, batch, run, signal)
            if batch.full():
                yield batch
                batch = _Batch()
        if batch.files:
            yield batch

    def _read(self, file: TreeFile, batch: _Batch, run: _IngestRun, signal: Signal | None) -> None:
        try:
            text = self._tree.text(file, signal)
        except BadInput as problem:
            run.skip(file.path, str(problem))
            return
        except CallerError:
            run.skip(file.path, "aborted")
            return
        if keys_in(text):
            run.skip(file.path, "holds a key")
            return
        run.size += file.size
        batch.size += file.size
        batch.files.append((file, text))

    def _store(self, batch: _Batch, run: _IngestRun) -> None:
        """Store the new files of a batch. Raises StoreError; then nothing of the batch is stored."""
        done: list[Done] = []
        with self._owner.turn():
            for file, text in batch.files:
                stored = self._keeper.keep(self._owner.session, file, text)
                made, held = str(stored.id), run.known.get(file.key)
                known = held is not None and held.object_id == made
                before = None if held is None or known else held.object_id
                done.append(Done(made, file.path, stored.tokens, before, known))
                if not known:
                    one = IngestNote(made, file.key, stored.content, stored.tokens, stored.chars, stored.description)
                    self._owner.note(one)
        run.known = self._owner.holdings.files
        for one_done in done:
            run.take(one_done)
