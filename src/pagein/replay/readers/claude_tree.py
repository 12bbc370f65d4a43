"""Which lines of a Claude Code transcript are one conversation: lanes of sub-agents, rewinds, repeated lines.

A transcript is a tree by `parentUuid`, but a loose one: results of parallel calls hang beside the path, hooks and progress lines stand
in between, compaction starts a new root, and later versions write whole stretches a second time. So the order of the file is
the conversation, except where a prompt goes back to an earlier message: then what came after that message was left behind.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from pagein.replay.readers.marks import Mark

_CONVERSATION: Final = frozenset(("prompt", "assistant", "result", "summary-of-compaction"))
_TURNS: Final = _CONVERSATION | {
    "meta",
    "system",
    "attachment",
    "progress",
    "compact_boundary",
    "microcompact_boundary",
}


@dataclass(slots=True)
class Lane:
    """The lines of one conversation, in file order. `agent`: the sub-agent's name, None for the main conversation."""

    session: str | None
    agent: str | None
    marks: list[Mark] = field(default_factory=list)


@dataclass(slots=True)
class Thread:
    """What of a lane was really said. `last`: the last line of each model call, by the call's id."""

    marks: list[Mark]
    last: dict[str, int]
    branches: int = 0
    abandoned_calls: int = 0
    repeated_lines: int = 0


def lanes(marks: Sequence[Mark]) -> list[Lane]:
    """The conversations of a file: the main one (several, if files were joined), then its sub-agents."""
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


def _side(mark: Mark, sides: dict[str, Lane], lane_of: Mapping[str, Lane]) -> Lane:
    name = mark.lane
    if name is None:
        above = lane_of.get(mark.parent) if mark.parent is not None else None
        name = above.agent if above is not None and above.agent else f"{(mark.id or str(mark.line))[:8]}"
    return sides.setdefault(name, Lane(mark.session, name))


def _main(mark: Mark, mains: list[Lane]) -> Lane:
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
    """Follow the rewinds of a lane, and drop lines and calls that stand in the file twice."""
    marks, repeated = _first_lines(lane.marks)
    path = _Path(marks)
    for place in range(len(marks)):
        path.append(place)
    kept: list[Mark] = []
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
    return Thread(kept, last, path.branches, len(path.abandoned - set(last)), repeated)


def _first_lines(marks: Sequence[Mark]) -> tuple[list[Mark], int]:
    seen: set[str] = set()
    kept: list[Mark] = []
    for mark in marks:
        if mark.id is not None:
            if mark.id in seen:
                continue
            seen.add(mark.id)
        kept.append(mark)
    return kept, len(marks) - len(kept)


class _Path:
    """The places that are on the path so far, and what rewinds took off it."""

    def __init__(self, marks: Sequence[Mark]) -> None:
        self._marks = marks
        self._known: dict[str, int] = {}
        self._followed: set[str | None] = set()  # a line that comes after its own children is a late copy, no rewind
        self.places: list[int] = []
        self.branches = 0
        self.abandoned: set[str] = set()

    def append(self, place: int) -> None:
        """Put the next line on the path; a prompt that goes back takes what it goes back over off."""
        mark = self._marks[place]
        if mark.kind == "prompt" and self.places and mark.id not in self._followed:
            self._go_back(place)
        self.places.append(place)
        if mark.id is not None:
            self._known[mark.id] = place
        if mark.parent is not None:
            self._followed.add(mark.parent)

    def _go_back(self, place: int) -> None:
        found = self._said_before(place)
        if found is None:
            return
        before, chain = found
        cut = len(self.places)
        while cut and self.places[cut - 1] > before:
            cut -= 1
        behind = self.places[cut:]
        if self._is_rewind(before, [late for late in behind if late not in chain]):
            self.branches += 1
            dropped = [self._marks[late] for late in behind if late not in chain]
            self.abandoned.update(mark.call or str(mark.line) for mark in dropped if mark.kind == "assistant")
            self.places[cut:] = [late for late in behind if late in chain or not self._marks[late].format]

    def _said_before(self, place: int) -> tuple[int, set[int]] | None:
        """The message that a prompt follows (-1: none, it begins anew) and the lines in between; None: not known."""
        chain: set[int] = set()
        parent = self._marks[place].parent
        while parent is not None:
            above = self._known.get(parent)
            if above is None:
                return None
            if self._marks[above].kind in _CONVERSATION or self._marks[above].kind == "compact_boundary":
                return above, chain
            chain.add(above)
            parent = self._marks[above].parent
        return -1, chain

    def _is_rewind(self, before: int, behind: Sequence[int]) -> bool:
        """Whether going back to `before` leaves a prompt or another model call behind.

        Results of parallel calls beside the path are no branch. Nor is a compaction behind which nothing has been said yet:
        the messages that it keeps are the parents of the next prompt.
        """
        call = next((self._marks[at].call for at in range(before, -1, -1) if self._marks[at].kind == "assistant"), None)
        boundary = max((at for at in behind if self._marks[at].kind == "compact_boundary"), default=None)
        said = [at for at in behind if self._marks[at].kind in ("prompt", "assistant")]
        if boundary is not None:
            return any(at > boundary for at in said)
        return any(self._marks[at].kind == "prompt" or self._marks[at].call != call for at in said)


def to_decode(marks: Sequence[Mark]) -> Iterator[Mark]:
    """The lines that hold something that was said, ascending."""
    return (mark for mark in marks if mark.kind != "progress")
