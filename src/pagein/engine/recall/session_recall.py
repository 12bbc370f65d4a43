"""Recall through a session: parts of what was paged out, matches in it, figures about it.

Rules of this file
------------------
1. What is recalled is exactly what was stored; the store proves it (law 1).
2. A recall is journaled, so that what it brought back stays warm on this branch (law 6). Where that fails the answer is given
   all the same, and the failure told (law 7).
3. What counts as the session's own is folded from its branch: what left its window, and what it ingested.
"""

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from typing import Final, Protocol

from pagein.engine.log import read_notes
from pagein.engine.log.folds import Entries, Fold
from pagein.engine.log.holdings import Holdings, step
from pagein.engine.log.pageout import Pager
from pagein.engine.log.trajectory import Operation, Trajectory
from pagein.engine.recall.ingest import WIDE, Ingester, IngestStore, IngestTree, Limits
from pagein.errors import Aborted, BadSetting, NotRecallable, PageinError, StoreError
from pagein.model.entries import EntryId, EpochEntry, PagedOut, TurnsLeft
from pagein.model.messages import ToolCall
from pagein.model.recall_entries import RECALL, ObjectMatch, RecallNote, recall_note, recall_of
from pagein.policy.eviction import overflow
from pagein.policy.reads import echo_guard
from pagein.policy.reads.baseline import DEFAULT_CAPS, ReadCaps
from pagein.policy.recall import pattern_search, text_slices
from pagein.ports import Signal


@dataclass(frozen=True, slots=True)
class Bounds:
    """Bounds of recall. caps: how much one answer shows. matches: how many a search is answered with; per_object: how many of one object.

    seconds: after which a search looks into no further object. Raises BadSetting for a bound below 1.
    """

    caps: ReadCaps = DEFAULT_CAPS
    matches: int = 50
    per_object: int = 100
    seconds: float = 5.0

    def __post_init__(self) -> None:
        if min(self.caps.lines, self.caps.bytes, self.matches, self.per_object) < 1 or not self.seconds > 0:
            raise BadSetting("bounds of recall and search must be 1 or more, and the seconds of a search above 0")


USUAL: Final = Bounds()


class RecallBranch(Protocol):
    """What recall needs of a session: its name, where it stands, and a way to add to it."""

    @property
    def name(self) -> str:
        """The session's name."""
        ...

    @property
    def journal(self) -> Entries:
        """Entries by name."""
        ...

    @property
    def leaf(self) -> EntryId | None:
        """Where the session stands."""
        ...

    def note(self, kind: str, data: str) -> EntryId:
        """Journal a fact."""
        ...

    def turn(self) -> AbstractContextManager[None]:
        """A time in which nobody else adds to the session (see `Session.turn`). Raises StoreError."""
        ...


class TextArchive(Protocol):
    """Everything stored beside what sessions paged out: versions of files, notes, chats, under ids of their own. Called from any thread."""

    def matches(
        self, pattern: str, limit: int, /, *, regex: bool, per_object: int, within: float
    ) -> Sequence[ObjectMatch]:
        """Matches in the newest contents, newest first: `limit` in all at most, as far as they are found `within` seconds.

        pattern: a literal text, or an expression of RE2 by lines. Raises BadInput for one that cannot be used, StoreError.
        """
        ...

    def text(self, name: str, /) -> str | None:
        """The newest content of the object with this id or nickname; None where there is none. Raises StoreError."""
        ...


@dataclass(frozen=True, slots=True)
class RecallResources:
    """What recall and ingest need of the world besides the store of paged-out content.

    tree: the files below a folder; None for sessions that ingest none. archive: everything else that is stored, None where it
    cannot be asked. trajectory: where operations are logged, None for nowhere. bounds: of recall; limits: of one ingest.
    """

    tree: Callable[[str], IngestTree] | None = None
    archive: TextArchive | None = None
    trajectory: Trajectory | None = None
    bounds: Bounds = USUAL
    limits: Limits = WIDE


@dataclass(frozen=True, slots=True)
class RecallPart:
    """A part of an object's text. failure: why the recall is not in the journal, None where it is."""

    slice: text_slices.Slice
    failure: str | None = None


@dataclass(frozen=True, slots=True)
class Lookup:
    """What to look for. scope: ids of objects, None for all of the session's. skip: matches that were shown before.

    everything: look also into all else that is stored.
    """

    pattern: str
    scope: tuple[str, ...] | None = None
    skip: int = 0
    everything: bool = False


@dataclass(frozen=True, slots=True)
class Hits:
    """What a search found, in objects from the newest to the oldest.

    unsearched: objects that could not be looked into, each with the reason. more: there are matches beyond those shown.
    looked_into, of: how many objects were searched, of how many. notice: how the pattern was taken, where that needs saying.
    """

    hits: tuple[ObjectMatch, ...]
    unsearched: tuple[tuple[str, str], ...] = ()
    more: bool = False
    looked_into: int = 0
    of: int = 0
    notice: str | None = None
    failure: str | None = None


@dataclass(frozen=True, slots=True)
class RecallFigures:
    """What a session's recall comes to. held: objects of the branch. store_bytes: all of the store, None where it cannot be asked."""

    held: Holdings
    store_bytes: int | None
    trajectory: str | None = None


@dataclass(slots=True)
class _HitPage:
    """A search's answer as it comes about. most: matches that are shown; one more is looked for, so that more is known of."""

    skip: int
    most: int
    hits: list[ObjectMatch] = field(default_factory=list)
    unsearched: list[tuple[str, str]] = field(default_factory=list)
    looked_into: int = 0

    def full(self) -> bool:
        return len(self.hits) > self.most

    def take(self, hit: ObjectMatch) -> None:
        if self.skip > 0:
            self.skip -= 1
        else:
            self.hits.append(hit)


class SessionRecall:
    """Recalls of one session. Any number of threads may call it at once.

    clock: seconds from no particular beginning, for how long things took.
    """

    def __init__(
        self,
        branch: RecallBranch,
        pager: Pager,
        keeper: IngestStore,
        reach: RecallResources,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._branch = branch
        self._pager = pager
        self._keeper = keeper
        self._reach = reach
        self._clock = clock
        self._fold: Fold[Holdings] = Fold(branch.journal, Holdings(), step, "recalls")

    @property
    def bounds(self) -> Bounds:
        """How much one answer may hold, and how long a search may take."""
        return self._reach.bounds

    @property
    def holdings(self) -> Holdings:
        """What was paged out and ingested on the branch, and how often it was recalled."""
        return self._fold.at(self._branch.leaf)

    def peek(
        self,
        object_id: str,
        cut: Callable[[str, str, ReadCaps], text_slices.Slice],
        *,
        call_id: str = "",
        tool: str = "peek",
    ) -> RecallPart:
        """A part of an object's text, as `cut` makes it of id, text and caps. Raises NotRecallable, StoreError."""
        began = self._clock()
        name = object_id.strip()
        part = cut(name, self._text(name), self.bounds.caps)
        failure = self._journal(RecallNote(tool, (name,), call_id, part.hints))
        self._log("peek", (name,), {"offset": part.start, "length": part.end - part.start}, began)
        return RecallPart(part, failure)

    def search(self, lookup: Lookup, *, call_id: str = "", tool: str = "search", signal: Signal | None = None) -> Hits:
        """Matches in the session's objects, the newest object first. Raises BadInput for a pattern that is none, and Aborted."""
        began = self._clock()
        pattern = pattern_search.understood(lookup.pattern)
        names = self._names() if lookup.scope is None else tuple(dict.fromkeys(one.strip() for one in lookup.scope))
        page = _HitPage(max(0, lookup.skip), self.bounds.matches)
        for name in names:
            if page.full() or self._clock() - began > self.bounds.seconds:
                break
            if signal is not None and signal.is_set():
                raise Aborted("Operation aborted")
            page.looked_into += 1
            self._look_into(name, pattern, page)
        if lookup.everything and lookup.scope is None and not page.full():
            self._look_beyond(pattern, page)
        shown = tuple(page.hits[: page.most])
        found = tuple(dict.fromkeys(hit.object_id for hit in shown))
        failure = self._journal(RecallNote(tool, found, call_id)) if found else None
        self._log("search", found, {"pattern": lookup.pattern, "matchCount": len(shown)}, began)
        return Hits(shown, tuple(page.unsearched), page.full(), page.looked_into, len(names), pattern.notice, failure)

    def log_evictions(self, opened: EpochEntry | None, previewed: Sequence[PagedOut]) -> None:
        """Log what left the window with a request: in an epoch that was opened for it, and as previews at their birth."""
        if previewed:
            self._log_externalized(previewed, {"previews": True})
        if opened is not None:
            forced = opened.reason in (overflow.ORDERED, overflow.FULL)
            details: dict[str, object] = {"epoch": opened.number, "frontier": opened.frontier}
            self._log_externalized((*opened.paged, *opened.turns), details, forced=forced)

    def ingest_below(self, folder: str) -> Ingester | None:
        """Ingest of files below this folder; None where this session ingests none."""
        if self._reach.tree is None:
            return None
        return Ingester(self, self._keeper, self._reach.tree(folder), self._reach.limits)

    def figures(self) -> RecallFigures:
        """Figures about the session's objects, its recalls and the store."""
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
        """What of ours a write or edit would put into its file (see `policy.reads.echo_guard`). Raises StoreError where the tag cannot be asked for."""
        if not echo_guard.may_echo(call.arguments):
            return ()
        secret = self._keeper.blobs.secret()
        return echo_guard.echoes(
            call, echo_guard.OwnTexts(lambda name: name.is_made_with(secret), self._served()), before
        )

    # --- for ingest, which journals through the same branch ---

    @property
    def session(self) -> str:
        """The name of the session."""
        return self._branch.name

    def turn(self) -> AbstractContextManager[None]:
        """As `Branch.turn`."""
        return self._branch.turn()

    def note(self, kind: str, data: str) -> None:
        """As `Branch.note`."""
        self._branch.note(kind, data)

    def log(self, operation: Operation, objects: Sequence[str], details: dict[str, object], took: float) -> None:
        """Log an operation, where operations are logged."""
        if self._reach.trajectory is not None:
            self._reach.trajectory.operation(
                operation, session=self._branch.name, objects=objects, details=details, took=took
            )

    def clock(self) -> float:
        """Seconds from no particular beginning."""
        return self._clock()

    # ---

    def _text(self, name: str) -> str:
        """Paged-out content first; else what the archive has under this id or nickname."""
        try:
            return self._pager.recall(name)
        except NotRecallable:
            found = None if self._reach.archive is None else self._reach.archive.text(name)
            if found is None:
                raise
            return found

    def _names(self) -> tuple[str, ...]:
        return tuple(one.object_id for one in self.holdings.newest_first())

    def _look_into(self, name: str, pattern: pattern_search.Pattern, page: _HitPage) -> None:
        try:
            text = self._text(name)
        except PageinError as problem:
            page.unsearched.append((name, str(problem)))
            return
        for count, found in enumerate(pattern.matches(text), start=1):
            page.take(ObjectMatch(name, found.offset, found.matched, found.context))
            if count >= self.bounds.per_object or page.full():
                return

    def _look_beyond(self, pattern: pattern_search.Pattern, page: _HitPage) -> None:
        archive = self._reach.archive
        if archive is None:
            page.unsearched.append(("everything else", "what else is stored cannot be searched from here"))
            return
        limit = page.most + 1 + page.skip - len(page.hits)
        try:
            found = archive.matches(
                pattern.expression or pattern.literal,
                limit,
                regex=pattern.expression is not None,
                per_object=self.bounds.per_object,
                within=self.bounds.seconds,
            )
        except PageinError as problem:
            page.unsearched.append(("everything else", str(problem)))
            return
        for match in found:
            page.take(match)

    def _journal(self, recall: RecallNote) -> str | None:
        try:
            with self._branch.turn():
                self._branch.note(RECALL, recall_note(recall))
        except StoreError as problem:
            self._branch.note(RECALL, recall_note(recall))  # it holds here at once, and is kept with what is kept next
            return f"{type(problem).__name__}: {problem}"
        return None

    def log_switch(self, *, on: bool) -> None:
        """Log that the user's hand switched pagein off for the session, or on again."""
        self.log("toggle_on" if on else "toggle_off", (), {}, 0.0)

    def _log_externalized(
        self, paged: Sequence[PagedOut | TurnsLeft], details: dict[str, object], *, forced: bool = False
    ) -> None:
        tokens = sum(one.tokens for one in paged)
        operation: Operation = "force_externalize" if forced else "externalize"
        self.log(operation, [one.object_id for one in paged], {**details, "tokens": tokens}, 0.0)

    def _log(self, operation: Operation, objects: Sequence[str], details: dict[str, object], began: float) -> None:
        self.log(operation, objects, details, self._clock() - began)

    def _served(self) -> frozenset[echo_guard.Facts]:
        return frozenset(self._served_facts())

    def _served_facts(self) -> Iterator[echo_guard.Facts]:
        leaf = self._branch.leaf
        while leaf is not None:
            entry = self._branch.journal.entry(leaf)
            event, recall = read_notes.event_of(entry.body), recall_of(entry.body)
            if event is not None:
                yield from echo_guard.facts_of_read(event)
            if recall is not None:
                yield from echo_guard.facts_of_recall(recall)
            leaf = entry.parent
