"""The model's knowledge of each file: a fold over the events of a branch.

Rules of this file
------------------
1. An answer proves the lines it emitted, and nothing else. Markers and diffs carry knowledge only from lines that are
   known when they come, so a chain of them can never begin by itself.
2. Three things are kept per path. *Versions*: which lines of which version are somewhere in the window. *View*: the
   file as the model now believes it to be, and the line numbers under which it was shown (`file_view`). *Total*: the
   length of the file that the model was told last. A marker may name only numbers that the window shows; a diff may be
   based only on the view.
3. Forgetting is always allowed, and always under-claims. That is why it is bounded.
4. Nothing before a compaction matters after it, and no record, however strange, stops the fold.
"""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import reduce
from typing import Final

from pagein.model.names import ContentHash
from pagein.model.read_events import (
    CompactionEvent,
    FileRead,
    FileRefresh,
    FileWrite,
    LineCopy,
    MalformedRecord,
    ReadEvent,
)
from pagein.model.shared_collections import SharedMap
from pagein.model.spans import NO_LINES, Spans
from pagein.policy.reads import file_view as views
from pagein.policy.reads.file_view import View, ViewPiece
from pagein.policy.reads.trust import rule_of, trusted_lines

_MAX_VERSIONS: Final = 16


@dataclass(frozen=True, slots=True)
class VersionKnown:
    """The known lines of one version.

    spans: lines in the window. total: lines of the version.
    """

    spans: Spans
    total: int

    @property
    def complete(self) -> bool:
        """Whether every line is known."""
        return self.spans.runs == ((1, self.total),)


@dataclass(frozen=True, slots=True)
class PathKnown:
    """The model's knowledge of one path.

    versions: by hash, the latest touched last.
    view: the file as the model believes it to be.
    total: its number of lines as the model was told last; None if uncertain.
    stale: lines that a refresh asked for, until an answer shows them.
    blocked: the same lines, until an answer to a *range* request shows them; a full read does not settle a refreshed
        range.
    """

    versions: tuple[tuple[ContentHash, VersionKnown], ...] = ()
    view: View = ()
    total: int | None = None
    stale: Spans = NO_LINES
    blocked: Spans = NO_LINES

    def lines_known(self, version: ContentHash) -> VersionKnown | None:
        """Return the knowledge of a version; None for an unknown version."""
        for name, known in reversed(self.versions):
            if name == version:
                return known
        return None

    def last_complete(self) -> tuple[ContentHash, VersionKnown] | None:
        """Return the latest touched version that is known whole."""
        for name, known in reversed(self.versions):
            if known.complete:
                return name, known
        return None

    def fresh(self, version: ContentHash) -> Spans:
        """Return the lines of this version whose last shown text is in the window under their own numbers."""
        return views.lines_where(self.view, lambda piece: piece.in_place and piece.is_of(version))

    def lines_taken_for(self, version: ContentHash) -> Spans:
        """Return the lines of this version in the model's view, shown under any number."""
        return views.lines_where(self.view, lambda piece: piece.is_of(version))

    def is_taken_for(self, version: ContentHash) -> bool:
        """Return whether the model believes the whole file equal to this version."""
        known = self.lines_known(version)
        return known is not None and self.total == known.total and self.lines_taken_for(version).holds(1, known.total)

    def names(self, copy: LineCopy) -> bool:
        """Return whether the numbers of a copy name its text in the window."""
        numbers = (
            (piece.start, piece.start + piece.count - 1)
            for piece in self.view
            if piece.shown and piece.source == copy.base
        )
        return Spans.of(*numbers).holds(copy.first, copy.first + copy.count - 1)

    def takes(self, copy: LineCopy) -> bool:
        """Return whether the model believes the text of a copy to be at its new place already."""
        by = copy.at - copy.first
        lines = views.lines_where(
            self.view, lambda piece: piece.source == copy.base and piece.first - piece.start == by
        )
        return lines.holds(copy.at, copy.at + copy.count - 1)


UNKNOWN: Final = PathKnown()


@dataclass(frozen=True, slots=True)
class Knowledge:
    """Knowledge of every path at one point of a branch.

    seq: valid reads and writes so far since the last compaction.
    """

    paths: SharedMap[PathKnown]
    seq: int = 0

    def of(self, path: str) -> PathKnown:
        """Return the knowledge of a path; empty if the path was never shown."""
        return self.paths.get(path, UNKNOWN)


NOTHING: Final = Knowledge(SharedMap())


def fold(events: Iterable[ReadEvent], start: Knowledge = NOTHING) -> Knowledge:
    """Return the state after these events. Folding in parts gives the same as folding the whole."""
    for event in events:
        start = step(start, event)
    return start


def step(state: Knowledge, event: ReadEvent) -> Knowledge:
    """Return the state after another event. Cost: linear in the event's path, however long the branch."""
    match event:
        case FileRead():
            return _apply_read(state, event)
        case FileWrite():
            return _apply_write(state, event)
        case FileRefresh():
            return _apply_refresh(state, event)
        case CompactionEvent():
            return NOTHING
        case MalformedRecord():
            return state


def refold_path(state: Knowledge, path: str, events: Iterable[ReadEvent]) -> Knowledge:
    """Return the state with the knowledge of a path folded anew, from the events of the path."""
    folded = fold(events)
    known = folded.paths.get(path)
    paths = state.paths.without(path) if known is None else state.paths.put(path, known)
    return Knowledge(paths, max(state.seq, folded.seq))


def proven(state: Knowledge, event: FileRead) -> bool:
    """Return whether the state before an answer proves every line of the answer, under the right numbers.

    False for a marker or diff whose base was hidden since (evicted, compacted): render it in full, or hide it too.
    """
    if rule_of(event).anchors:
        return True
    path = state.of(event.path)
    stands_for = Spans.of((event.first, event.last))
    match event.mode:
        case "unchanged":
            if path.total != event.total or not all(path.takes(copy) for copy in event.copies):
                return False
        case "range_diff":
            # the diff itself shows the lines between the copies
            first = min((copy.first for copy in event.copies), default=1)
            last = max((copy.first + copy.count - 1 for copy in event.copies), default=0)
            if event.base is None or not path.lines_taken_for(event.base).holds(first, last):
                return False
        case "moved" | "partly_known" | "unchanged_range":
            if not all(path.names(copy) and (copy.first != copy.at or path.takes(copy)) for copy in event.copies):
                return False
            if event.mode == "partly_known":  # cut where the baseline is cut
                there = (Spans.of((copy.at, copy.at + copy.count - 1)) for copy in event.copies)
                stands_for = reduce(Spans.unite, there, event.emitted or NO_LINES)
        case _:
            pass
    return lines_made_known(path, event).contains(stands_for)


def lines_made_known(path: PathKnown, event: FileRead) -> Spans:
    """Return the lines of the served version made known by an answer, given the earlier knowledge of the path."""
    known: dict[ContentHash, Spans] = {}
    lines, whole = NO_LINES, False
    match rule_of(event).proof:
        case "copies":
            held = ((copy.base, path.lines_known(copy.base)) for copy in event.copies)
            known = {base: version.spans for base, version in held if version is not None}
        case "base in place" if event.base is not None:
            lines = path.fresh(event.base)
        case "base lines" if event.base is not None:
            lines = path.lines_taken_for(event.base)
        case "base whole" if event.base is not None:
            whole = path.is_taken_for(event.base)
        case _:
            pass
    return trusted_lines(event, known, lines, whole=whole)


def _apply_read(state: Knowledge, event: FileRead) -> Knowledge:
    seq = state.seq + 1
    path = state.of(event.path)
    spans = lines_made_known(path, event)
    if not spans:
        return replace(state, seq=seq)
    emitted = event.emitted or NO_LINES
    before = path.total
    path = _with_version(path, event.version, VersionKnown(spans, event.total))
    path = replace(
        path,
        view=_view_after(path.view, event, spans),
        stale=path.stale.subtract(emitted),
        blocked=path.blocked if event.whole else path.blocked.subtract(emitted),
    )
    drop = _behind(path.view, event.total)
    if not _accounts_for_length(before, event):
        # so that the next read of the last line shows where the file ends
        drop = drop.unite(Spans.of((event.total, event.total)))
    path = replace(path, view=views.cut(path.view, drop=drop))
    # the marker of a file that changed elsewhere gives the new length only with some hosts
    tells = event.mode != "unchanged_range" or event.base in (None, event.version) or path.total == event.total
    path = replace(path, total=event.total if tells else None)
    return Knowledge(state.paths.put(event.path, path), seq)


def _accounts_for_length(before: int | None, event: FileRead) -> bool:
    """Return whether an answer leaves nothing open about the end of the file.

    before: the length that the model was told last.
    A marker or diff of a range names the new length in passing. Where that is not the old one and what the answer
    itself adds or takes away, lines were removed or added without any report to the model.
    """
    if event.last >= event.total or event.mode not in ("unchanged_range", "range_diff"):
        return True
    grown = 0
    if event.mode == "range_diff":
        # lines that the diff removes after the last kept line are not in the event; counting zero of them sends a line too many at worst
        grown = event.last - max((copy.first + copy.count - 1 for copy in event.copies), default=event.last)
    return before is not None and before + grown == event.total


def _view_after(view: View, event: FileRead, spans: Spans) -> View:
    """Return the model's view after an answer with newly known lines."""
    rule = rule_of(event)
    if rule.proof in ("base in place", "base lines"):
        return views.retold(view, spans, event.version)
    emitted = (event.emitted or NO_LINES).intersect(spans)
    shown = views.view_of_text(event.version, emitted)
    if rule.anchors:
        return views.with_pieces(views.hidden(views.cut(view, drop=emitted), emitted, event.version), shown)
    told = [piece for copy in event.copies for piece in views.copy_pieces(view, copy, event.version)]
    if event.mode == "range_diff":  # a reader moves the lines behind the diff, too
        view = _shift_behind(view, event)
    known = views.with_pieces(views.view_of_text(event.version, spans, numbered=False), told)
    rest = views.with_pieces(view, known)
    return views.with_pieces(views.hidden(views.cut(rest, drop=emitted), emitted, event.version), shown)


def _shift_behind(view: View, event: FileRead) -> View:
    kept = max(event.copies, key=lambda copy: copy.at, default=None)
    if (
        kept is None or kept.at + kept.count - 1 != event.last
    ):  # it ends with a change: the old lines are not in the event
        return views.shifted(view, event.last, None)
    return views.shifted(view, kept.first + kept.count - 1, event.last)


def _apply_write(state: Knowledge, event: FileWrite) -> Knowledge:
    path = state.of(event.path)
    spans = event.authored
    for copy in event.copies:
        held = path.lines_known(copy.base)
        if held is not None:
            there = Spans.of((copy.at, copy.at + copy.count - 1))
            spans = spans.unite(held.spans.shift(copy.at - copy.first).intersect(there))
    # the model knows that its own text is in the file now; of the rest, only lines that it can follow from their old place
    edited = event.copies[0].base if event.copies else None
    left = [
        piece
        for copy in event.copies
        for piece in (
            views.move_pieces(path.view, copy, event.version)
            if copy.base == edited
            else views.copy_pieces(path.view, copy, event.version)
        )
    ]
    own = views.view_of_text(event.version, event.authored, numbered=event.whole)
    path = replace(path, view=views.with_pieces(own, left), total=_total_after(path, event))
    if spans:
        path = _with_version(path, event.version, VersionKnown(spans, event.total))
    return Knowledge(state.paths.put(event.path, path), state.seq + 1)


def _total_after(path: PathKnown, event: FileWrite) -> int | None:
    """Return the file's length as computed by its writer: the last told length, plus added and minus removed lines."""
    if event.whole:
        return event.total
    before = path.lines_known(event.copies[0].base) if event.copies else None
    return event.total if before is not None and before.total == path.total else None


def _with_version(path: PathKnown, version: ContentHash, more: VersionKnown) -> PathKnown:
    before = path.lines_known(version)
    now = more if before is None else replace(more, spans=before.spans.unite(more.spans))
    versions = (*(kept for kept in path.versions if kept[0] != version), (version, now))
    if len(versions) <= _MAX_VERSIONS:
        return replace(path, versions=versions)
    return replace(path, versions=versions[1:], view=views.forget_version(path.view, versions[0][0]))


def _behind(view: Iterable[ViewPiece], total: int) -> Spans:
    """Return the lines of a view behind the end of the file."""
    return Spans.of((total + 1, max((piece.last for piece in view), default=0)))


def _apply_refresh(state: Knowledge, event: FileRefresh) -> Knowledge:
    if event.lines is None:
        return replace(state, paths=state.paths.without(event.path))
    path = state.of(event.path)
    lines = Spans.of(event.lines)
    versions = tuple((name, replace(known, spans=known.spans.subtract(lines))) for name, known in path.versions)
    path = replace(
        path,
        versions=tuple((name, known) for name, known in versions if known.spans),
        view=views.cut(path.view, drop=lines),
        stale=path.stale.unite(lines),
        blocked=path.blocked.unite(lines),
    )
    return replace(state, paths=state.paths.put(event.path, path))
