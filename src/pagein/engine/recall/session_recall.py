"""Recall in a session: read parts of evicted content and search it, within bounds, and report figures.

Rules of this file
------------------
1. A recall returns exactly the stored text; the store verifies it (law 1).
2. A recall is journaled, so that the recalled text counts as recently recalled on this branch (law 6). If that fails,
   the answer is given anyway, and the failure is reported (law 7).
3. The session's own objects are folded from its branch: evicted results and ingested files.
"""

import contextlib
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace

from pagein.engine.log.holdings import Holdings, step
from pagein.engine.log.journal import Fold
from pagein.engine.log.pageout import Pager
from pagein.engine.log.session_log import SessionLog
from pagein.engine.log.trajectory import Operation
from pagein.engine.recall.child_results import ChildResults
from pagein.engine.recall.delegated_questions import Delegate
from pagein.engine.recall.ingest import Ingester, IngestStore
from pagein.engine.recall.object_search import HitPage, Hits, Lookup, is_search_for
from pagein.engine.recall.recall_resources import Bounds, RecallResources
from pagein.engine.recall.stored_objects import StoredObjects
from pagein.errors import AbortedOperation, BadInput, BadName, HostError, NotRecallable, PageinError, StoreError
from pagein.model.code_search import CodeQuery, CodeResults
from pagein.model.entries import EpochEntry, NoteEntry, PagedOut, TurnsLeft
from pagein.model.journal_notes import Note, ReadNote, RecallNote
from pagein.model.messages import ToolCall
from pagein.model.objects import ObjectId
from pagein.model.read_caps import ReadCaps
from pagein.model.search_query import CONTENT, ObjectMatch, Search
from pagein.policy.eviction import overflow
from pagein.policy.reads import echo_guard
from pagein.policy.reads.echo_forms import may_echo
from pagein.policy.recall import pattern_search, text_slices
from pagein.ports import Signal


@dataclass(frozen=True, slots=True)
class RecallPart:
    """A part of an object's text.

    slice: the part.
    failure: why the recall is not journaled; None if it is.
    """

    slice: text_slices.Slice
    failure: str | None = None


@dataclass(frozen=True, slots=True)
class RecallFigures:
    """Figures on a session's recall.

    held: objects of the branch.
    store_bytes: size of the whole store; None if unavailable.
    trajectory: last failure of the log; None if absent.
    """

    held: Holdings
    store_bytes: int | None
    trajectory: str | None = None


class SessionRecall:
    """Recall for a session. Thread-safe.

    clock: monotonic clock in seconds, for durations.
    """

    def __init__(
        self,
        log: SessionLog,
        pager: Pager,
        keeper: IngestStore,
        reach: RecallResources,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._entries = log
        self._pager = pager
        self._keeper = keeper
        self._reach = reach
        self._clock = clock
        self._fold: Fold[Holdings] = Fold(log.journal, Holdings(), step, "recalls")

    @property
    def bounds(self) -> Bounds:
        """Limits of an answer and of a search."""
        return self._reach.bounds

    @property
    def objects(self) -> StoredObjects:
        """The stored objects of every session. Raises HostError for a session without them."""
        if self._reach.objects is None:
            raise HostError("this session's store has no objects with versions")
        return self._reach.objects

    @property
    def children(self) -> ChildResults:
        """Targets of delegated questions, and the stored answers to them."""
        return ChildResults(self, self._keeper, self._reach.objects, self._reach.trajectory)

    @property
    def delegate(self) -> Delegate | None:
        """The port to child models; None for a session without children."""
        return self._reach.delegate

    @property
    def holdings(self) -> Holdings:
        """Evicted and ingested objects of the branch, with counts of recalls."""
        return self._fold[self._entries.leaf]

    def peek(
        self,
        object_id: str,
        cut: Callable[[str, str, ReadCaps], text_slices.Slice],
        *,
        call_id: str = "",
        tool: str = "peek",
        turns: tuple[int, int] | None = None,
    ) -> RecallPart:
        """Return a part of an object's text. Raises NotRecallable, StoreError.

        cut: makes the part from id, text and caps.
        turns: the first and the last turn of a chat, from 1; None for the whole text.
        """
        began = self._clock()
        name = object_id.strip()
        part = cut(name, self._text(name, turns), self.bounds.caps)
        failure = self._journal(RecallNote(tool, (name,), call_id, part.hints))
        self._log("peek", (name,), {"offset": part.start, "length": part.end - part.start}, began)
        return RecallPart(part, failure)

    def search(self, lookup: Lookup, *, call_id: str = "", tool: str = "search", signal: Signal | None = None) -> Hits:
        """Search the session's objects, newest first, and the archive, if asked.

        Raises BadInput for a malformed pattern or filter, and AbortedOperation.
        """
        began = self._clock()
        pattern = pattern_search.parse_pattern(lookup.pattern)
        names = self._names() if lookup.own else ()
        if lookup.scope is not None:
            names = tuple(dict.fromkeys(one.strip() for one in lookup.scope))
        page = HitPage(max(0, lookup.skip), self.bounds.matches)
        for name in names:
            if page.full() or self._clock() - began > self.bounds.seconds:
                break
            if signal is not None and signal.is_set():
                raise AbortedOperation("Operation aborted")
            page.looked_into += 1
            self._look_into(name, pattern, page)
        if lookup.stored is not None and lookup.scope is None and not page.full():
            self._look_beyond(pattern, lookup, lookup.stored, page)
        shown = tuple(page.hits[: page.most])
        found = tuple(dict.fromkeys(hit.object_id for hit in shown))
        failure = self._journal(RecallNote(tool, found, call_id)) if found else None
        self._log("search", found, {"pattern": lookup.pattern, "matchCount": len(shown)}, began)
        return Hits(shown, tuple(page.unsearched), page.full(), page.looked_into, len(names), pattern.notice, failure)

    def log_evictions(self, opened: EpochEntry | None, previewed: Sequence[PagedOut]) -> None:
        """Log the evictions of a request: its epoch, and its previews on first send."""
        if previewed:
            self._log_externalized(previewed, {"previews": True})
        if opened is not None:
            forced = opened.reason in (overflow.ORDERED, overflow.FULL)
            details: dict[str, object] = {"epoch": opened.number, "frontier": opened.frontier}
            self._log_externalized((*opened.paged, *opened.turns), details, forced=forced)

    def ingest_below(self, folder: str) -> Ingester | None:
        """Return the ingest of files below this folder; None for a session without ingest."""
        if self._reach.tree is None:
            return None
        return Ingester(self, self._keeper, self._reach.tree(folder), self._reach.limits)

    def search_code(self, folder: str, query: CodeQuery, signal: Signal | None = None) -> CodeResults:
        """Search the files below a folder. Raises BadInput, AbortedOperation, and HostError for a session without such a search."""
        if self._reach.code is None:
            raise HostError("this session has no search of the workspace")
        began = self._clock()
        found = self._reach.code(folder).search(query, signal)
        self._log("search", (), {"pattern": query.pattern, "matchCount": found.total, "engine": found.engine}, began)
        return found

    def figures(self) -> RecallFigures:
        """Return figures on the session's objects, its recalls and the store."""
        began = self._clock()
        try:
            size: int | None = self._keeper.blobs.figures()[1]
        except StoreError:
            size = None
        held = self.holdings
        self._log("stats", (), {"objectCount": held.count, "totalTokens": held.tokens}, began)
        trajectory = self._reach.trajectory
        return RecallFigures(held, size, None if trajectory is None else trajectory.failure)

    def echoes(self, call: ToolCall, before: str = "") -> tuple[echo_guard.Echo, ...]:
        """Return pagein's texts that a write or edit would put into a file (see `policy.reads.echo_guard`).

        Raises StoreError if the store's key is unavailable.
        """
        if not may_echo(call.arguments):
            return ()
        secret = self._keeper.blobs.secret()
        return echo_guard.echoes(
            call, echo_guard.OwnTexts(lambda name: name.is_made_with(secret), self._served_markers()), before
        )

    # --- for ingest, which journals through the same branch ---

    @property
    def session(self) -> str:
        """The session's name."""
        return self._entries.name

    def turn(self) -> AbstractContextManager[None]:
        """As `SessionLog.turn`."""
        return self._entries.turn()

    def note(self, note: Note) -> None:
        """As `SessionLog.note`."""
        self._entries.note(note)

    def log(self, operation: Operation, objects: Sequence[str], details: dict[str, object], took: float) -> None:
        """Log an operation, if there is a log."""
        if self._reach.trajectory is not None:
            self._reach.trajectory.operation(
                operation, session=self._entries.name, objects=objects, details=details, took=took
            )

    def clock(self) -> float:
        """Return seconds of the monotonic clock."""
        return self._clock()

    def text(self, name: str) -> str:
        """Return the whole text of an object, without a journal entry. Raises NotRecallable and StoreError."""
        return self._text(name)

    # ---

    def _text(self, name: str, turns: tuple[int, int] | None = None) -> str:
        """Return evicted content; without any, the archive's text under this id or nickname."""
        try:
            if turns is None:
                return self._pager.recall(name)
        except NotRecallable:
            if self._reach.archive is None:
                raise
            found = self._reach.archive.text(name)
            if found is None:
                raise
            return found
        found = None if self._reach.archive is None else self._reach.archive.text(name, turns)
        if found is None:
            raise NotRecallable(f"no stored chat has this id: {name[:80]!r}")
        return found

    def _names(self) -> tuple[str, ...]:
        return tuple(one.object_id for one in self.holdings.newest_first())

    def _look_into(self, name: str, pattern: pattern_search.Pattern, page: HitPage) -> None:
        try:
            text = self._text(name)
        except PageinError as problem:
            page.unsearched.append((name, str(problem)))
            return
        source = self._source(name, None)
        for count, found in enumerate(pattern.matches(text), start=1):
            page.repeats(source, found.offset, name)
            page.take(ObjectMatch(name, found.offset, found.matched, found.context))
            if count >= self.bounds.per_object or page.full():
                return

    def _source(self, name: str, session: str | None) -> tuple[str | None, str]:
        """Return the session and the call of an evicted result; for other objects, the object itself."""
        with contextlib.suppress(BadName, StoreError):
            stored = self._keeper.blobs.find(ObjectId.parse(name))
            if stored is not None:
                return stored.origin.session, stored.origin.call_id
        return session, name

    def _look_beyond(self, pattern: pattern_search.Pattern, lookup: Lookup, beyond: Search, page: HitPage) -> None:
        archive = self._reach.archive
        if archive is None:
            page.unsearched.append(("everything else", "what else is stored cannot be searched from here"))
            return
        asked = replace(
            beyond,
            pattern=pattern.expression or pattern.literal,
            regex=pattern.expression is not None,
            limit=page.most,
            per_version=self.bounds.per_object,
            within=self.bounds.seconds,
        )
        try:
            while not page.full():
                found = archive.search(asked)
                for hit in found.hits:
                    if is_search_for(hit, lookup.pattern):
                        continue
                    source = self._source(hit.where.id, hit.where.session)
                    if hit.field == CONTENT and page.repeats(source, hit.match.offset, hit.where.id):
                        continue
                    name = f"{hit.where.id}@{hit.where.version}"
                    page.take(ObjectMatch(name, hit.match.offset, hit.match.matched, hit.match.text, hit))
                page.unsearched += [(f"{one.id}@{one.version}", one.why) for one in found.unsearched]
                if found.timed_out:
                    page.unsearched.append(
                        ("everything else", "the time was up; narrow the search by session or since")
                    )
                if found.next is None or found.timed_out:
                    return
                asked = replace(asked, after=found.next)
        except BadInput:
            raise
        except PageinError as problem:
            page.unsearched.append(("everything else", str(problem)))

    def _journal(self, recall: RecallNote) -> str | None:
        try:
            with self._entries.turn():
                self._entries.note(recall)
        except StoreError as problem:
            self._entries.note(recall)  # holds in memory at once; the next `keep` stores it
            return f"{type(problem).__name__}: {problem}"
        return None

    def log_switch(self, *, on: bool) -> None:
        """Log that the user switched pagein off or on for the session."""
        self.log("toggle_on" if on else "toggle_off", (), {}, 0.0)

    def _log_externalized(
        self, paged: Sequence[PagedOut | TurnsLeft], details: dict[str, object], *, forced: bool = False
    ) -> None:
        tokens = sum(one.tokens for one in paged)
        operation: Operation = "force_externalize" if forced else "externalize"
        self.log(operation, [one.object_id for one in paged], {**details, "tokens": tokens}, 0.0)

    def _log(self, operation: Operation, objects: Sequence[str], details: dict[str, object], began: float) -> None:
        self.log(operation, objects, details, self._clock() - began)

    def _served_markers(self) -> frozenset[echo_guard.Facts]:
        return frozenset(self._served_facts())

    def _served_facts(self) -> Iterator[echo_guard.Facts]:
        leaf = self._entries.leaf
        while leaf is not None:
            entry = self._entries.journal.entry(leaf)
            match entry.body:
                case NoteEntry(note=ReadNote(event=event)):
                    yield from echo_guard.facts_of_read(event)
                case NoteEntry(note=RecallNote() as recall):
                    yield from echo_guard.facts_of_recall(recall)
            leaf = entry.parent
