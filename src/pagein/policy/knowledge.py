"""What the model knows of each file: a fold over the events of a branch.

Rules of this file
------------------
1. An answer proves the lines it emitted, and nothing else. Markers and diffs carry knowledge only from lines that are
   known when they come, so a chain of them can never begin by itself.
2. Two things are kept per path. *Versions*: which lines of which version stand somewhere in the window. *View*: for
   each line number, the version whose text was shown last under that number. A marker that names lines means the view,
   because that is how a reader resolves it; a diff names its base, and rests on the version.
3. Forgetting is always allowed, and always under-claims. That is why both are bounded.
4. Nothing before a compaction matters after it, and no record, however strange, stops the fold.
"""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import reduce
from typing import Final

from pagein.model.names import ContentHash
from pagein.model.reading import Compacted, FileAuthored, Invalidated, Malformed, ReadEvent, ReadServed
from pagein.model.sharing import SharedMap
from pagein.model.spans import NO_LINES, Spans
from pagein.policy.trust import carried, rule_of

_MAX_VERSIONS: Final = 16
_MAX_PIECES: Final = 128


@dataclass(frozen=True, slots=True)
class VersionKnown:
    """What stands in the window of one version. total: lines the version has. seq: the event that last touched it."""

    spans: Spans
    total: int
    seq: int

    @property
    def complete(self) -> bool:
        """Whether every line is known."""
        return self.spans.runs == ((1, self.total),)


@dataclass(frozen=True, slots=True)
class Piece:
    """A run of the view: lines `first` to `last` were last shown as those lines of `version`."""

    first: int
    last: int
    version: ContentHash


@dataclass(frozen=True, slots=True)
class PathKnown:
    """Everything known of one path.

    versions: by hash, the latest touched last. view: pieces in ascending order, without overlap.
    stale: lines that somebody asked to see anew, until an answer shows them. blocked: the same lines, until an answer
    to a *range* request shows them; a full read does not settle a refreshed range (prior art 2.5, item 2).
    authored: the event in which the model itself last wrote to the file, 0 for never.
    """

    versions: tuple[tuple[ContentHash, VersionKnown], ...] = ()
    view: tuple[Piece, ...] = ()
    stale: Spans = NO_LINES
    blocked: Spans = NO_LINES
    authored: int = 0

    def known(self, version: ContentHash) -> VersionKnown | None:
        """What is known of one version."""
        for name, known in reversed(self.versions):
            if name == version:
                return known
        return None

    def last_complete(self) -> tuple[ContentHash, VersionKnown] | None:
        """The version touched last among those that are known whole: the base of a diff."""
        for name, known in reversed(self.versions):
            if known.complete:
                return name, known
        return None

    def fresh(self, version: ContentHash) -> Spans:
        """The line numbers whose last shown text is that of this version."""
        return Spans.of(*((p.first, p.last) for p in self.view if p.version == version))


UNKNOWN: Final = PathKnown()


@dataclass(frozen=True, slots=True)
class Knowledge:
    """State at one point of a branch. seq: valid reads and writes so far since the last compaction."""

    paths: SharedMap[PathKnown]
    seq: int = 0

    def of(self, path: str) -> PathKnown:
        """What is known of a path; nothing, where it was never shown."""
        return self.paths.get(path, UNKNOWN)


NOTHING: Final = Knowledge(SharedMap())


def fold(events: Iterable[ReadEvent], start: Knowledge = NOTHING) -> Knowledge:
    """The state after these events. Folding in parts gives what folding the whole gives."""
    for event in events:
        start = step(start, event)
    return start


def step(state: Knowledge, event: ReadEvent) -> Knowledge:
    """The state after one more event. Cost: that of the event's path, however long the branch."""
    match event:
        case ReadServed():
            return _served(state, event)
        case FileAuthored():
            return _authored(state, event)
        case Invalidated():
            return _invalidated(state, event)
        case Compacted():
            return NOTHING
        case Malformed():
            return state


def proven(state: Knowledge, event: ReadServed) -> bool:
    """Whether all that an answer stands for is known in the state before it, under the numbers that it names.

    False for a marker or diff whose base was hidden since (paged out, compacted): render it in full, or hide it too.
    """
    if rule_of(event).anchors:
        return True
    path = state.of(event.path)
    if event.mode == "unchanged" and path.view and path.view[-1].last > event.total:
        return False
    if event.mode not in ("diff", "range_diff"):  # a diff names its version; a marker means what was shown last
        rests_on = (path.fresh(copy.base).holds(copy.first, copy.first + copy.count - 1) for copy in event.copies)
        if not all(rests_on):
            return False
    stands_for = Spans.of((event.first, event.last))
    if event.mode == "partly_known":  # cut where the baseline is cut
        copied = (Spans.of((copy.at, copy.at + copy.count - 1)) for copy in event.copies)
        stands_for = reduce(Spans.unite, copied, event.emitted or NO_LINES)
    return claimed(path, event).contains(stands_for)


def claimed(path: PathKnown, event: ReadServed) -> Spans:
    """The lines of the served version that become known by an answer, given what was known of its path before."""
    proof = rule_of(event).proof
    known: dict[ContentHash, Spans] = {}
    fresh, whole = NO_LINES, None
    if proof == "copies":
        held = ((copy.base, path.known(copy.base)) for copy in event.copies)
        known = {base: version.spans for base, version in held if version is not None}
    elif proof == "base lines" and event.base is not None:
        fresh = path.fresh(event.base)
    elif proof == "base whole" and (last := path.last_complete()) is not None:
        whole = last[0]
    return carried(event, known, fresh, whole)


def _served(state: Knowledge, event: ReadServed) -> Knowledge:
    seq = state.seq + 1
    path = state.of(event.path)
    spans = claimed(path, event)
    if not spans:
        return replace(state, seq=seq)
    emitted = event.emitted or NO_LINES
    path = _shown(path, event.version, VersionKnown(spans, event.total, seq))
    path = replace(
        path,
        stale=path.stale.subtract(emitted),
        blocked=path.blocked if event.whole else path.blocked.subtract(emitted),
    )
    return Knowledge(state.paths.put(event.path, path), seq)


def _authored(state: Knowledge, event: FileAuthored) -> Knowledge:
    seq = state.seq + 1
    path = state.of(event.path)
    spans, untouched = event.authored, NO_LINES
    for copy in event.copies:
        there = Spans.of((copy.at, copy.at + copy.count - 1))
        untouched = untouched.unite(there)
        held = path.known(copy.base)
        if held is not None:
            spans = spans.unite(held.spans.shift(copy.at - copy.first).intersect(there))
    if event.copies or event.whole:
        # the model knows that these numbers hold something else now, also where we do not claim to know what
        path = replace(path, view=_cut(path.view, untouched))
    if spans:
        path = _shown(path, event.version, VersionKnown(spans, event.total, seq))
    return Knowledge(state.paths.put(event.path, replace(path, authored=seq)), seq)


def _shown(path: PathKnown, version: ContentHash, more: VersionKnown) -> PathKnown:
    before = path.known(version)
    now = more if before is None else replace(more, spans=before.spans.unite(more.spans))
    versions = (*(kept for kept in path.versions if kept[0] != version), (version, now))
    view = path.view
    if len(versions) > _MAX_VERSIONS:
        forgotten = versions[0][0]
        versions = versions[1:]
        view = tuple(piece for piece in view if piece.version != forgotten)
    view = _cut(view, Spans.of((1, now.total)) if now.complete else None, more.spans)
    pieces = [*view, *(Piece(first, last, version) for first, last in more.spans)]
    return replace(path, versions=versions, view=_bounded(_merged(sorted(pieces, key=lambda piece: piece.first))))


def _cut(view: tuple[Piece, ...], keep: Spans | None, drop: Spans = NO_LINES) -> tuple[Piece, ...]:
    """The view within `keep` (None: everywhere) and outside `drop`."""
    out: list[Piece] = []
    for piece in view:
        first, last = piece.first, piece.last
        # most pieces are not concerned; telling so by two numbers keeps a step cheap on files read in many parts
        apart = not drop.runs or last < drop.runs[0][0] or first > drop.runs[-1][1]
        if apart and (keep is None or any(a <= first and last <= b for a, b in keep.runs)):
            out.append(piece)
            continue
        lines = Spans(((first, last),))
        lines = (lines if keep is None else lines.intersect(keep)).subtract(drop)
        out.extend(Piece(a, b, piece.version) for a, b in lines)
    return tuple(out)


def _merged(pieces: Iterable[Piece]) -> list[Piece]:
    out: list[Piece] = []
    for piece in pieces:
        if out and out[-1].version == piece.version and out[-1].last + 1 == piece.first:
            out[-1] = Piece(out[-1].first, piece.last, piece.version)
        else:
            out.append(piece)
    return out


def _bounded(pieces: list[Piece]) -> tuple[Piece, ...]:
    if len(pieces) <= _MAX_PIECES:
        return tuple(pieces)
    longest = sorted(pieces, key=lambda piece: (piece.first - piece.last, piece.first))[:_MAX_PIECES]
    return tuple(sorted(longest, key=lambda piece: piece.first))


def _invalidated(state: Knowledge, event: Invalidated) -> Knowledge:
    if event.lines is None:
        return replace(state, paths=state.paths.without(event.path))
    path = state.of(event.path)
    lines = Spans.of(event.lines)
    versions = tuple((name, replace(known, spans=known.spans.subtract(lines))) for name, known in path.versions)
    path = replace(
        path,
        versions=tuple((name, known) for name, known in versions if known.spans),
        view=_cut(path.view, None, lines),
        stale=path.stale.unite(lines),
        blocked=path.blocked.unite(lines),
    )
    return replace(state, paths=state.paths.put(event.path, path))
