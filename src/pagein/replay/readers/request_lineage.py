"""Assign the requests of a log to sessions.

Rules of this file
------------------
1. A request continues the request it extends, block by block: a client puts its user's words after an interruption into
   the same message. At the beginning, before any shared answer, instructions or tools must be the same, too.
2. A request that extends the last but one belongs to the same session, if nothing continues the last: the last was
   asked aside, or its answer was discarded. The last is then omitted and counted, as in the recordings of agents.
3. Any other request continues a session in a new window if the session has ended by then and has the same instructions
   or tools. It proves this by content of the session beyond the first request: more than this request from the
   beginning, kept messages, or the words of a later answer, as in a summary. If the client names the session, an equal
   prompt prefix is proof enough, unless another conversation of this session waits meanwhile: then the request is the
   next sub-agent.
4. All other requests begin a session: parallel ways, sub-agents, titles, and a repeated beginning.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from hashlib import blake2b
from typing import Final

# A message or a line shorter than this may recur by chance.
_TELLING: Final = 100
_LINE: Final = 40
_LINES: Final = 20
_MOST_OF: Final = 0.5
# The number of recent lines whose answers are searched for in a new window, and the searched length, in characters.
_RECENT: Final = 8
_LOOKED_AT: Final = 200_000


@dataclass(frozen=True, slots=True)
class Name:
    """The name of a session and its agent on the wire. is_session: a session's own name, not a user's or a cache's."""

    text: str | None = None
    is_session: bool = False


@dataclass(frozen=True, slots=True)
class Front:
    """Digests of the prompt prefix of a conversation; b"" for an empty part."""

    system: bytes
    tools: bytes

    def resembles(self, other: "Front") -> bool:
        """Return whether instructions or tools are the same."""
        return self == other or (self.system == other.system != b"") or (self.tools == other.tools != b"")


@dataclass(frozen=True, slots=True)
class LoggedRequest:
    """The facts of a request that show its session.

    blocks: names of its blocks by content, with their sizes in characters.
    follows: id of the answer that the request claims to continue.
    words: returns all its text.
    """

    name: Name
    front: Front
    blocks: Sequence[tuple[bytes, int]]
    follows: str | None
    words: Callable[[], str]


@dataclass(frozen=True, slots=True)
class KnownAnswer:
    """The known facts of the answer to a request."""

    id: str | None = None
    words: str = ""


@dataclass(frozen=True, slots=True)
class LogLine:
    """One line of a session.

    known: number of blocks in the request before; -1: a new window; None: no request.
    """

    line: int
    known: int | None


@dataclass(slots=True)
class Line:
    """A conversation in the log: each request extends an earlier request, or was joined later.

    begins, ends: blocks of the first and of the last request.
    said: distinctive lines of the last answer.
    quoted: lines whose last answers are repeated by the first request.
    forked: whether the line begins within a known conversation.
    aside: the extended request, if only one other request had extended it before.
    left: number of omitted requests.
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
        """The number of its first line in the log."""
        return self.steps[0].line

    @property
    def last(self) -> int:
        """The number of its last line in the log."""
        return self.steps[-1].line


@dataclass(frozen=True, slots=True)
class _End:
    """The end of a request: its line in the log, and the number of its blocks."""

    of: Line
    at: int
    blocks: int

    @property
    def is_tip(self) -> bool:
        return self.of.last == self.at


class Lineage:
    """Reads the requests of a log one by one, then returns the sessions."""

    def __init__(self) -> None:
        self._lines: list[Line] = []
        self._ends: dict[bytes, _End] = {}
        self._answers: dict[str, Line] = {}
        self._names: dict[bytes, bytes] = {}  # names of blocks, each once in memory
        self._telling: set[bytes] = set()
        self._lost: list[int] = []

    def add_lost_line(self, line: int) -> None:
        """Record a line without a request."""
        self._lost.append(line)

    def add_request(self, line: int, asked: LoggedRequest, answered: KnownAnswer) -> Line:
        """Add a request and its answer. Return its line."""
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
        """Return the sessions in the order of their beginnings. Call once, after the last request."""
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
        """Return the line of a request, and the number of blocks known there."""
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
        """Return the session continued by this line, or None for a new session; and the number of known blocks."""
        if line.aside is not None:
            session = owners[id(line.aside.of)]
            if [step.line for step in session.steps[-2:-1]] == [line.aside.at] and session.last < line.first:
                session.steps.pop()
                session.left += 1
                return session, line.aside.blocks
        return self._in_new_window(line, found), -1

    def _in_new_window(self, line: Line, found: Sequence[Line]) -> Line | None:
        """Return the session continued by this line with a new window."""
        ended = [one for one in found if one.name == line.name and one.last < line.first]
        goes_on = [one for one in ended if one.front.resembles(line.front) and self._holds(line, one)]
        if not goes_on and line.name.is_session:
            same = [one for one in ended if one.front == line.front]
            goes_on = [one for one in same if not any(_waits(other, one, line) for other in self._lines)]
        return max(goes_on, key=lambda one: (_shared_blocks(one.ends, line.begins), one.last), default=None)

    def _holds(self, line: Line, session: Line) -> bool:
        """Return whether a line begins with content of a session from after its first request."""
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
    """Return a name for each beginning of a request, within its named session."""
    found: list[bytes] = []
    last = repr(asked.name).encode("utf-8", "surrogatepass")
    for name, _ in asked.blocks:
        last = blake2b(last + name, digest_size=16).digest()
        found.append(last)
    return found


def _goes_on(end: _End, asked: LoggedRequest) -> bool:
    """Return whether an extending request belongs to the conversation: more than the beginning is shared, or the prompt
    prefix is.
    """
    return end.blocks > len(end.of.begins) or end.of.front.resembles(asked.front)


def _leaves_one_aside(end: _End, blocks: Sequence[bytes]) -> bool:
    """Return whether exactly one request came after the extended request, and shares no new block with this request."""
    before = end.of.steps[-2].line if end.of.steps[1:] else None
    if before != end.at or end.blocks == len(blocks) == len(end.of.begins):
        return False
    shared = _shared_blocks(end.of.ends, blocks)
    said_again = set(end.of.ends[shared:]).intersection(blocks[shared:])
    return not said_again and (shared > end.blocks or end.blocks == len(blocks))


def _waits(other: Line, one: Line, line: Line) -> bool:
    """Return whether another conversation of a session waits during this one and the next: both then work as
    sub-agents.
    """
    return other is not one and other.name == one.name and other.first < one.first and other.last > line.first


def _shared_blocks(first: Sequence[bytes], second: Sequence[bytes]) -> int:
    """Return the number of equal blocks at the beginning of two requests."""
    both = zip(first, second, strict=False)
    return next((place for place, (one, other) in enumerate(both) if one != other), min(len(first), len(second)))


def _telling_lines(answer: str) -> tuple[str, ...]:
    lines = (line.strip() for line in answer.splitlines())
    return tuple(line for line in lines if len(line) >= _LINE)[:_LINES]


def _repeats(words: str, said: Sequence[str]) -> bool:
    """Return whether a text repeats most of the given lines."""
    return sum(line in words for line in said) >= _MOST_OF * len(said)
