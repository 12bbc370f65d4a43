"""Which requests of a log are one session.

Rules of this file
------------------
1. A request goes on with the one that it extends, block by block: a client puts what its user says after an interruption into
   the same message. At the beginning, where no answer is shared yet, instructions or tools must be the same, too.
2. One that extends the request before the last is the same session, if nothing goes on from the last: that was asked aside, or its
   answer thrown away. It is left out and counted, as in the recordings of agents.
3. Any other that shares a beginning with a session, or none, goes on with it in a window begun anew if that has ended by then and
   has the same instructions or tools. It shows so by what it holds of the session beyond its first request: more than that
   from the beginning, messages that were kept, or the words of an answer given since, as a summary is. Where the client
   names the session, it need not show that with all in front the same, unless another conversation of that session waits meanwhile:
   then it is the next sub-agent.
4. All else begins a session: parallel ways, sub-agents, titles, and a beginning that is said again.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from hashlib import blake2b
from typing import Final

# A message shorter than this may be said twice by chance, and so may a line.
_TELLING: Final = 100
_LINE: Final = 40
_LINES: Final = 20
_MOST_OF: Final = 0.5
# How far back answers are looked for in a new window, and how much of it is looked at, in characters.
_RECENT: Final = 8
_LOOKED_AT: Final = 200_000


@dataclass(frozen=True, slots=True)
class Name:
    """What tells a session and its agent on the wire. is_session: a session's own name, and no user's or cache's."""

    text: str | None = None
    is_session: bool = False


@dataclass(frozen=True, slots=True)
class Front:
    """Digests of what stands in front of a conversation; b"" for nothing."""

    system: bytes
    tools: bytes

    def resembles(self, other: "Front") -> bool:
        """Whether instructions or tools are the same."""
        return self == other or (self.system == other.system != b"") or (self.tools == other.tools != b"")


@dataclass(frozen=True, slots=True)
class LoggedRequest:
    """A request as far as it tells where it belongs. blocks: names of its blocks by content, and their weights in characters.

    follows: id of the answer that it says it goes on with. words: gives all text that it holds.
    """

    name: Name
    front: Front
    blocks: Sequence[tuple[bytes, int]]
    follows: str | None
    words: Callable[[], str]


@dataclass(frozen=True, slots=True)
class KnownAnswer:
    """What is known of the answer to a request."""

    id: str | None = None
    words: str = ""


@dataclass(frozen=True, slots=True)
class LogLine:
    """One line of a session. known: how many blocks stood in the request before it; -1: the window was begun anew; None: no request."""

    line: int
    known: int | None


@dataclass(slots=True)
class Line:
    """Requests that grow out of one another, and what was joined to them since.

    begins, ends: the blocks of its first and of its last request. said: telling lines of its last answer. quoted: lines whose last answers
    its first request repeats. forked: whether it begins within a conversation that was known. aside: the request that it extends, where
    only one other did before. left: requests that were left out.
    """

    name: Name
    front: Front
    begins: tuple[bytes, ...] = ()
    ends: tuple[bytes, ...] = ()
    steps: list[LogLine] = field(default_factory=list)
    said: tuple[str, ...] = ()
    quoted: "tuple[Line, ...]" = ()
    forked: bool = False
    aside: "_End | None" = None
    left: int = 0
    tail: "Line | None" = None

    @property
    def first(self) -> int:
        """Its first line in the log."""
        return self.steps[0].line

    @property
    def last(self) -> int:
        """Its last line in the log."""
        return self.steps[-1].line


@dataclass(frozen=True, slots=True)
class _End:
    """Where a request ended: its line in the log, and how many blocks it had."""

    of: Line
    at: int
    blocks: int

    @property
    def is_tip(self) -> bool:
        return self.of.last == self.at


class Lineage:
    """Takes the requests of a log one by one, and tells the sessions when all are known."""

    def __init__(self) -> None:
        self._lines: list[Line] = []
        self._ends: dict[bytes, _End] = {}
        self._answers: dict[str, Line] = {}
        self._names: dict[bytes, bytes] = {}  # of each block, once in memory
        self._telling: set[bytes] = set()
        self._lost: list[int] = []

    def lost(self, line: int) -> None:
        """A line without a request."""
        self._lost.append(line)

    def add_request(self, line: int, asked: LoggedRequest, answered: KnownAnswer) -> Line:
        """A request, and its answer. Returns the line that it stands in."""
        blocks = tuple(self._names.setdefault(name, name) for name, _ in asked.blocks)
        self._telling.update(name for name, weight in asked.blocks if weight >= _TELLING)
        chain = _beginning_names(asked)
        at, known = self._place(asked, chain, blocks)
        at.steps.append(LogLine(line, known))
        at.front, at.ends, at.said = asked.front, blocks, _telling_lines(answered.words)
        if chain:
            self._ends[chain[-1]] = _End(at, line, len(chain))
        if answered.id is not None:
            self._answers[answered.id] = at
        return at

    def sessions(self) -> list[Line]:
        """The sessions, in the order in which they begin. To be asked once, when all is told."""
        found: list[Line] = []
        owners: dict[int, Line] = {}
        for line in self._lines:
            session, known = self._before(line, found, owners)
            owners[id(line)] = session or line
            if session is None:
                if line.forked:
                    line.steps[0] = LogLine(line.first, -1)
                found.append(line)
                continue
            session.steps += [LogLine(line.first, known), *line.steps[1:]]
            session.front, session.ends, session.said, session.tail = line.front, line.ends, line.said, line
        return self._with_lost(found)

    def _place(self, asked: LoggedRequest, chain: Sequence[bytes], blocks: tuple[bytes, ...]) -> tuple[Line, int]:
        """Where a request belongs, and how many of its blocks are known there."""
        linked = self._answers.get(asked.follows) if asked.follows is not None else None
        if linked is not None and linked.name == asked.name:
            return linked, 0
        ended = [one for name in reversed(chain) if (one := self._ends.get(name)) is not None and _goes_on(one, asked)]
        tip = next((one for one in ended if one.is_tip), None)
        other = next((one for one in ended if not one.is_tip), None)
        if tip is not None and (other is None or tip.blocks >= other.blocks or tip.at > other.of.last):
            return tip.of, tip.blocks
        begun = Line(asked.name, asked.front, blocks)
        begun.forked = other is not None and other.blocks > len(other.of.begins)
        if other is not None and _leaves_one_aside(other, blocks):
            begun.aside = other
        else:
            recent = [one for one in self._lines[-_RECENT:] if one.name == asked.name and one.said]
            words = asked.words()[:_LOOKED_AT] if recent else ""
            begun.quoted = tuple(one for one in recent if _repeats(words, one.said))
        self._lines.append(begun)
        return begun, 0

    def _before(self, line: Line, found: Sequence[Line], owners: dict[int, Line]) -> tuple[Line | None, int]:
        """The session that goes on in this line, None where it is one of its own; and how much of it is known there."""
        if line.aside is not None:
            session = owners[id(line.aside.of)]
            if [step.line for step in session.steps[-2:-1]] == [line.aside.at] and session.last < line.first:
                session.steps.pop()
                session.left += 1
                return session, line.aside.blocks
        return self._in_new_window(line, found), -1

    def _in_new_window(self, line: Line, found: Sequence[Line]) -> Line | None:
        """The session that goes on in this line with a window begun anew."""
        ended = [one for one in found if one.name == line.name and one.last < line.first]
        goes_on = [one for one in ended if one.front.resembles(line.front) and self._holds(line, one)]
        if not goes_on and line.name.is_session:
            same = [one for one in ended if one.front == line.front]
            goes_on = [one for one in same if not any(_waits(other, one, line) for other in self._lines)]
        return max(goes_on, key=lambda one: (_shared_blocks(one.ends, line.begins), one.last), default=None)

    def _holds(self, line: Line, session: Line) -> bool:
        """Whether a line begins with something of a session that stood not in its first request already."""
        known = len(session.begins)
        if known < len(line.begins) and _shared_blocks(session.begins, line.begins) == known:
            return True
        kept = self._telling.intersection(session.ends).difference(session.begins)
        tail = session.tail or session
        return not kept.isdisjoint(line.begins) or any(
            one is tail or (session.last < one.first and one.last < line.first) for one in line.quoted
        )

    def _with_lost(self, found: list[Line]) -> list[Line]:
        if self._lost and not found:
            return [Line(Name(), Front(b"", b""), steps=[LogLine(line, None) for line in self._lost])]
        for lost in self._lost:
            began = [one for one in found if one.first < lost]
            (began[-1] if began else found[0]).steps.append(LogLine(lost, None))
        for one in found if self._lost else ():
            one.steps.sort(key=lambda step: step.line)
        return found


def _beginning_names(asked: LoggedRequest) -> list[bytes]:
    """A name for each beginning of a request, within the session that it names."""
    found: list[bytes] = []
    last = repr(asked.name).encode("utf-8", "surrogatepass")
    for name, _ in asked.blocks:
        last = blake2b(last + name, digest_size=16).digest()
        found.append(last)
    return found


def _goes_on(end: _End, asked: LoggedRequest) -> bool:
    """Whether what extends a request is of its conversation: more than its beginning is shared, or what stands in front is."""
    return end.blocks > len(end.of.begins) or end.of.front.resembles(asked.front)


def _leaves_one_aside(end: _End, blocks: Sequence[bytes]) -> bool:
    """Whether all that came behind an earlier request so far is one that has nothing of its own in common with this one."""
    before = end.of.steps[-2].line if end.of.steps[1:] else None
    if before != end.at or end.blocks == len(blocks) == len(end.of.begins):
        return False
    shared = _shared_blocks(end.of.ends, blocks)
    said_again = set(end.of.ends[shared:]).intersection(blocks[shared:])
    return not said_again and (shared > end.blocks or end.blocks == len(blocks))


def _waits(other: Line, one: Line, line: Line) -> bool:
    """Whether another conversation of a session waits while this one and the next come and go: they do the work of sub-agents."""
    return other is not one and other.name == one.name and other.first < one.first and other.last > line.first


def _shared_blocks(first: Sequence[bytes], second: Sequence[bytes]) -> int:
    """How many blocks two requests begin with alike."""
    both = zip(first, second, strict=False)
    return next((place for place, (one, other) in enumerate(both) if one != other), min(len(first), len(second)))


def _telling_lines(answer: str) -> tuple[str, ...]:
    lines = (line.strip() for line in answer.splitlines())
    return tuple(line for line in lines if len(line) >= _LINE)[:_LINES]


def _repeats(words: str, said: Sequence[str]) -> bool:
    """Whether a text holds most of what was said."""
    return sum(line in words for line in said) >= _MOST_OF * len(said)
