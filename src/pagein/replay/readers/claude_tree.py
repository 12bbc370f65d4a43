"""The lines of a Claude Code transcript that form one conversation: lanes of sub-agents, rewinds, repeated lines.

A transcript is a tree by `parentUuid`, but a loose one: results of parallel calls hang beside the path, hooks and
progress lines stand in between, compaction starts a new root, and later versions write whole stretches a second time.
So the order of the file is the conversation, except where a prompt goes back to an earlier message: then everything
after that message is abandoned, unless a line follows it later. The host would continue from the path to the last line.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from pagein.replay.readers.line_index import IndexedLine

_CONVERSATION: Final = frozenset(("prompt", "assistant", "result", "summary-of-compaction"))
_FOLLOWING: Final = _CONVERSATION | {"compact_boundary"}
_TURNS: Final = _FOLLOWING | {
    "meta",
    "system",
    "attachment",
    "progress",
    "microcompact_boundary",
}


@dataclass(slots=True)
class Lane:
    """The lines of a conversation, in file order. agent: name of the sub-agent; None for the main conversation."""

    session: str | None
    agent: str | None
    marks: list[IndexedLine] = field(default_factory=list)


@dataclass(slots=True)
class Thread:
    """The valid lines of a lane. last: the last line of each model call, by the call's id."""

    marks: list[IndexedLine]
    last: dict[str, int]
    branches: int = 0
    abandoned_calls: int = 0
    repeated_lines: int = 0


def lanes(marks: Sequence[IndexedLine]) -> list[Lane]:
    """Return the conversations of a file: the main one (several, if files were joined), then its sub-agents."""
    mains: list[Lane] = []
    sides: dict[str, Lane] = {}
    lane_of: dict[str, Lane] = {}
    current: Lane | None = None
    for mark in marks:
        if not mark.format:
            lane = current or (mains[-1] if mains else None)
        elif mark.kind not in _TURNS:
            continue
        elif mark.side:
            lane = _side(mark, sides, lane_of)
        else:
            lane = _main(mark, mains)
        if lane is None:
            lane = Lane(None, None)
            mains.append(lane)
        lane.marks.append(mark)
        current = lane
        if mark.id is not None:
            lane_of.setdefault(mark.id, lane)
    return [lane for lane in (*mains, *sides.values()) if any(mark.kind in _CONVERSATION for mark in lane.marks)]


def _side(mark: IndexedLine, sides: dict[str, Lane], lane_of: Mapping[str, Lane]) -> Lane:
    name = mark.lane
    if name is None:
        above = lane_of.get(mark.parent) if mark.parent is not None else None
        name = above.agent if above is not None and above.agent else f"{(mark.id or str(mark.line))[:8]}"
    return sides.setdefault(name, Lane(mark.session, name))


def _main(mark: IndexedLine, mains: list[Lane]) -> Lane:
    begins = mark.id is not None and mark.parent is None and mark.kind in ("prompt", "system", "progress", "attachment")
    known = {lane.session for lane in mains}
    if not mains or (begins and mark.session is not None and None not in known and mark.session not in known):
        if mains and mains[-1].session is None:
            mains[-1].session = mark.session
        else:
            mains.append(Lane(mark.session, None))
    elif mains[-1].session is None:
        mains[-1].session = mark.session
    return mains[-1]


def thread(lane: Lane) -> Thread:
    """Follow the rewinds of a lane, and drop lines and calls repeated in the file."""
    marks, repeated = _first_lines(lane.marks)
    path = _RewindPath(marks)
    for place in range(len(marks)):
        path.append(place)
    kept: list[IndexedLine] = []
    last: dict[str, int] = {}
    open_call: str | None = None
    for place in path.places:
        mark = marks[place]
        if mark.kind == "assistant" and mark.call is not None:
            if mark.call in last and mark.call != open_call:
                repeated += 1
                continue
            open_call = mark.call
            last[mark.call] = mark.line
        kept.append(mark)
    return Thread(kept, last, path.branches, len(path.calls_abandoned - set(last)), repeated)


def _first_lines(marks: Sequence[IndexedLine]) -> tuple[list[IndexedLine], int]:
    seen: set[str] = set()
    kept: list[IndexedLine] = []
    for mark in marks:
        if mark.id is not None:
            if mark.id in seen:
                continue
            seen.add(mark.id)
        kept.append(mark)
    return kept, len(marks) - len(kept)


@dataclass(frozen=True, slots=True)
class _Tail:
    """Places removed from the path. after: the place before them, -1 for the beginning."""

    after: int
    places: list[int]


class _RewindPath:
    """The places from the first line to the last one read, and the tails abandoned by rewinds.

    A tail may continue: another process, or the user, may return to an earlier way. Then this way is the path.
    """

    def __init__(self, marks: Sequence[IndexedLine]) -> None:
        self._marks = marks
        self._known: dict[str, int] = {}
        self._followed: set[str | None] = set()  # a line that comes after its own children is a late copy, no rewind
        self._tails: list[_Tail] = []
        self.places: list[int] = []

    @property
    def branches(self) -> int:
        """The number of abandoned tails."""
        return len(self._tails)

    @property
    def calls_abandoned(self) -> set[str]:
        """The model calls of the abandoned tails, by id or line."""
        left = (self._marks[place] for tail in self._tails for place in tail.places)
        return {mark.call or str(mark.line) for mark in left if mark.kind == "assistant"}

    def append(self, place: int) -> None:
        """Put the next line on the path, after its predecessor."""
        mark = self._marks[place]
        if mark.kind in _FOLLOWING and self.places and mark.id not in self._followed:
            self._follow(place)
        self.places.append(place)
        if mark.id is not None:
            self._known[mark.id] = place
        if mark.parent is not None:
            self._followed.add(mark.parent)

    def _follow(self, place: int) -> None:
        """Go back to the predecessor of a line if this is not the end of the path."""
        found = self._message_before(place)
        if found is None:
            return
        before, chain = found
        is_prompt = self._marks[place].kind == "prompt"
        on_path = before < 0 or _holds(self.places, before)
        if on_path and not is_prompt:
            return
        way = self.places if on_path else self._taken_up(before)
        path = way
        if is_prompt:
            cut = bisect_right(way, before)
            if self._is_rewind(way[:cut], [late for late in way[cut:] if late not in chain]):
                path = [*way[:cut], *(late for late in way[cut:] if late in chain or not self._marks[late].format)]
        if path is not self.places:
            path = sorted({*path, *chain})
            self._leave(way, path)
            if not on_path:
                self._leave(self.places, path)
            self.places = path

    def _leave(self, way: Sequence[int], path: Sequence[int]) -> None:
        """Keep as a tail the places of a way missing from the new path."""
        on_path = set(path)
        left = [place for place in way if place not in on_path]
        if any(self._marks[place].kind in _CONVERSATION for place in left):
            before = bisect_left(way, left[0])
            self._tails.append(_Tail(way[before - 1] if before else -1, left))

    def _taken_up(self, place: int) -> list[int]:
        """Return the way to a place off the path, to the end of its tail, and remove the tail."""
        ways: list[list[int]] = []
        while place >= 0 and not _holds(self.places, place):
            n = next((n for n, tail in enumerate(self._tails) if _holds(tail.places, place)), None)
            if n is None:  # a line beside the conversation; no tail holds it
                break
            tail = self._tails[n]
            cut = bisect_right(tail.places, place) if ways else len(tail.places)
            rest = tail.places[cut:]
            self._tails[n : n + 1] = [_Tail(tail.places[cut - 1], rest)] if rest else []
            ways.append(tail.places[:cut])
            place = tail.after
        ways.append(self.places[: bisect_right(self.places, place)])
        return [one for way in reversed(ways) for one in way]

    def _message_before(self, place: int) -> tuple[int, set[int]] | None:
        """Return the message before a line (-1: a new beginning) and the lines in between; None if unknown."""
        chain: set[int] = set()
        parent = self._marks[place].parent
        while parent is not None:
            above = self._known.get(parent)
            if above is None:
                return None
            if self._marks[above].kind in _FOLLOWING:
                return above, chain
            chain.add(above)
            parent = self._marks[above].parent
        return -1, chain

    def _is_rewind(self, before: Sequence[int], behind: Sequence[int]) -> bool:
        """Return whether going back to the end of `before` abandons a prompt or another model call.

        Results of parallel calls beside the path are no branch. Neither is a compaction without later messages: the
        messages it keeps are the parents of the next prompt.
        """
        call = next((self._marks[at].call for at in reversed(before) if self._marks[at].kind == "assistant"), None)
        boundary = max((at for at in behind if self._marks[at].kind == "compact_boundary"), default=None)
        said = [at for at in behind if self._marks[at].kind in ("prompt", "assistant")]
        if boundary is not None:
            return any(at > boundary for at in said)
        return any(self._marks[at].kind == "prompt" or self._marks[at].call != call for at in said)


def _holds(places: Sequence[int], place: int) -> bool:
    """Return whether an ascending list holds a place."""
    at = bisect_left(places, place)
    return at < len(places) and places[at] == place


def to_decode(marks: Sequence[IndexedLine]) -> Iterator[IndexedLine]:
    """Yield the lines with content of the conversation, ascending."""
    return (mark for mark in marks if mark.kind != "progress")
