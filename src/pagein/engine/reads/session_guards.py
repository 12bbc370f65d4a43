"""Guard the reads of a session: judge each read before its answer, and count reads and searches.

Rules of this file
------------------
1. What the guards know is folded from the journal, so forks, retries and restarts need no rule of their own (law 6).
   No session shares a count with another one. Where no branch holds a conversation, a tally does (`GuardTally`).
2. A file is known by its path key. Nothing of an excluded file is noted but numbers (law 9).
3. A failing store costs no read: then the counts hold in this process, and are stored with the next entry.
"""

from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from threading import Lock, local
from typing import Literal

from pagein.engine.log.journal import Fold
from pagein.engine.log.session_log import SessionLog
from pagein.errors import CallerError, StoreError
from pagein.model.entries import NoteEntry
from pagein.model.guard_notes import ReadMeasureNote, ReadMode, SearchMeasureNote
from pagein.model.note_forms import encode_note
from pagein.model.spans import Run
from pagein.policy.guards import guard_state
from pagein.policy.guards.aggregation import item_id
from pagein.policy.guards.budgets import TOP_PATHS
from pagein.policy.guards.guard_state import GuardState
from pagein.policy.guards.judgement import (
    Action,
    Cut,
    NextCall,
    ReadAsk,
    ReadVerdict,
    after_search,
    budget_state,
    complete,
    judge,
)
from pagein.policy.guards.limits import GuardSettings
from pagein.policy.guards.metrics import NO_METRICS, ReadMetrics
from pagein.policy.guards.relevance import shown_path
from pagein.ports import Files


@dataclass(frozen=True, slots=True)
class ServedRead:
    """A read as it was answered.

    path: the file, in any spelling; "" for an answer without a file.
    first, last: first and last line that the answer stands for; 0 without lines.
    lines, chars: lines of the file and characters of the answer, as sent.
    new: lines sent that the window did not show before; None if all of them are new.
    content: the text that the answer stands for, as it would be without markers.
    cut: what of the answer a budget shortened.
    gaps: runs of lines between first and last that the answer does not stand for.
    """

    mode: ReadMode
    path: str = ""
    first: int = 0
    last: int = 0
    lines: int = 0
    chars: int = 0
    new: int | None = None
    content: str = ""
    cut: Collection[Cut] = ()
    gaps: tuple[Run, ...] = ()


@dataclass(frozen=True, slots=True)
class ServedSearch:
    """A search as it was answered.

    query: the pattern, as written.
    paths: files with hits, in any spelling, the best first.
    hits: number of hits.
    where: what was searched: what is stored, or the files of the workspace.
    scope: the path or the ids to which the search was restricted; "" for none.
    degraded: whether hits or their texts were left out.
    next_calls: calls of tools that the model may make next.
    """

    query: str
    paths: Sequence[str] = ()
    hits: int = 0
    where: Literal["stored", "code"] = "stored"
    scope: str = ""
    degraded: bool = False
    next_calls: tuple[NextCall, ...] = ()


class GuardTally:
    """The guards' state of a conversation without a branch in the journal. Thread-safe.

    Over MCP each read begins at the journal's root, because nobody sees the window, so that no branch adds up.
    """

    def __init__(self) -> None:
        self.state: GuardState = guard_state.START
        self._lock = Lock()

    def add(self, note: ReadMeasureNote | SearchMeasureNote) -> None:
        """Count a read or a search."""
        with self._lock:
            self.state = guard_state.step(self.state, NoteEntry(*encode_note(note)))


class SessionGuards:
    """The guards of a session's reads. Thread-safe.

    settings: limits and policies.
    files: returns the files as seen from the session's folder; None for a session without one.
    """

    def __init__(self, log: SessionLog, settings: GuardSettings, files: Callable[[], Files | None]) -> None:
        self.settings = settings
        self._log = log
        self._files = files
        self._fold: Fold[GuardState] = Fold(
            log.journal, guard_state.START, guard_state.step, "guards", takes=guard_state.TAKES
        )
        self._here = local()
        self._folder: tuple[Files, str] | None = None

    @contextmanager
    def counted_in(self, tally: GuardTally) -> Iterator[None]:
        """Count the reads and searches of this thread in a tally, and judge by the tally instead of by the branch."""
        self._here.tally = tally
        try:
            yield
        finally:
            self._here.tally = None

    @property
    def state(self) -> GuardState:
        """What the guards know at the current entry, or in the tally of this thread."""
        tally = self._tally
        return self._fold[self._log.leaf] if tally is None else tally.state

    @property
    def _tally(self) -> GuardTally | None:
        return getattr(self._here, "tally", None)

    @property
    def metrics(self) -> dict[str, int | float]:
        """The metrics of the branch, by their public names."""
        return self.state.metrics.snapshot()

    def figures(self) -> dict[str, object]:
        """Return the budget, the metrics, the last search and the bundle, as plain values.

        The metrics cover the branch, and all branches together, because over MCP each read has a branch of its own. Equal reads
        with equal answers at the same place share a journal entry, so all branches count them once.
        """
        state, limits = self.state, self.settings.limits
        return {
            "profile": self.settings.profile,
            "budget_state": budget_state(state, limits),
            "reads": state.spent.reads,
            "reads_limit": limits.reads,
            "lines": state.spent.lines,
            "lines_limit": limits.total_lines,
            "metrics": state.metrics.snapshot(),
            "metrics_of_all_branches": self._all_metrics().snapshot(),
            "search": None
            if state.search is None
            else {"query": state.search.query, "hits": state.search.hits, "files": len(state.search.paths)},
            "context_bundle_id": state.bundle.id or None,
            "bundle_items": len(state.bundle.items),
            "bundle_lines": state.bundle.distinct,
        }

    def _all_metrics(self) -> ReadMetrics:
        metrics = NO_METRICS
        for name in self._log.journal.entries:
            body = self._log.journal.entry(name).body
            match body:
                case NoteEntry(note=ReadMeasureNote() as read):
                    metrics = metrics.with_read(read)
                case NoteEntry(note=SearchMeasureNote() as search):
                    metrics = metrics.with_search(search)
                case _:
                    pass
        return metrics

    def judge(self, ask: ReadAsk) -> ReadVerdict:
        """Return the judgement of a read. Its path may have any spelling. Changes nothing."""
        return judge(self.state, replace(ask, path=self.key_of(ask.path)), self.settings, self._root())

    def note_read(self, verdict: ReadVerdict, served: ServedRead) -> ReadVerdict:
        """Count an answered read. Returns its judgement with warnings about shortened answers."""
        key, is_excluded = self._place(served.path)
        is_named = bool(key) and not is_excluded
        shown = shown_path(key, self._root())
        note = ReadMeasureNote(
            served.mode,
            key if is_named else "",
            served.first,
            served.last,
            served.lines,
            served.chars,
            served.lines if served.new is None else served.new,
            item_id(served.mode, shown, served.content) if is_named else "",
            degraded=bool(served.cut),
            unrelated=verdict.is_unrelated,
            gaps=served.gaps,
        )
        self._note(note)
        return complete(verdict, served.cut)

    def note_search(self, served: ServedSearch) -> ReadVerdict:
        """Count an answered search and record the found files. Return the judgement for the next step."""
        note = SearchMeasureNote(
            served.query, self._first_keys(served.paths), served.hits, served.where, served.scope, served.degraded
        )
        self._note(note)
        return after_search(self.state, served.query, self.settings, served.next_calls, found=served.hits > 0)

    def stabilization(self, verdict: ReadVerdict) -> dict[str, object]:
        """Return `meta.stabilization` of an answer: the judgement, and the metrics of the branch as they are now."""
        state = self.state
        return {
            "budget_state": verdict.state,
            "suggested_next_action": verdict.action,
            "warnings": list(verdict.warnings),
            "reasons": list(verdict.reasons),
            "alternatives": list(verdict.alternatives),
            "next_calls": [dict(call) for call in verdict.next_calls],
            "metrics_snapshot": state.metrics.snapshot(),
            "context_bundle_id": state.bundle.id or None,
            "bundle_items": len(state.bundle.items),
            "bundle_lines": state.bundle.distinct,
        }

    def standing(self, next_calls: tuple[NextCall, ...] = ()) -> dict[str, object]:
        """Return `meta.stabilization` of an answer without a judgement, such as an error in the arguments."""
        action: Action = "search" if any(call.get("tool") == "search" for call in next_calls) else "read"
        state = budget_state(self.state, self.settings.limits)
        return self.stabilization(ReadVerdict(ReadAsk("file"), state, action=action, next_calls=next_calls))

    def key_of(self, path: str) -> str:
        """Return the path key of a file; the path itself for a path without a nameable file."""
        return self._place(path)[0]

    def _place(self, path: str) -> tuple[str, bool]:
        """Return the path key of a file, and whether its content must not be stored."""
        files = self._files()
        if files is None or not path:
            return path, False
        try:
            located = files.locate(path, offset=1)  # an offset, so that no line suffix is looked for
        except CallerError:
            return path, True
        return located.key, located.excluded

    def _first_keys(self, paths: Sequence[str]) -> tuple[str, ...]:
        """Return the path keys of the first files without the excluded ones. Stops as soon as there are enough."""
        keys: dict[str, None] = {}
        for path in paths:
            if len(keys) == TOP_PATHS:
                break
            key, is_excluded = self._place(path)
            if not is_excluded:
                keys[key] = None
        return (*keys,)

    def _root(self) -> str:
        """Return the path key of the session's folder; "" without one. Looked up once: each read asks for it twice."""
        files = self._files()
        if files is None:
            return ""
        known = self._folder
        if known is None or known[0] != files:
            known = self._folder = files, self.key_of(".")
        return known[1]

    def _note(self, note: ReadMeasureNote | SearchMeasureNote) -> None:
        try:
            with self._log.turn():
                self._log.note(note)
        except StoreError:
            self._log.note(note)
        finally:
            if self._tally is not None:
                self._tally.add(note)
