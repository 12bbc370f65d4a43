"""A search over everything stored, and what it finds."""

from dataclasses import dataclass
from typing import Final, Literal, TypeAlias

CONTENT: Final = "content"
METADATA: Final = "metadata"

Which: TypeAlias = Literal["newest", "current", "all"]
"""Which versions answer: of each object the newest one with a match, only the one that is current, or all."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Search:
    """What is looked for, and where. What is left out does not matter.

    pattern: a literal text, or with `regex` a regular expression of RE2; `^` and `$` are those of lines.
    types: of objects. path: a file, a folder or a glob, see `policy/recall/path_filter.py`. session: the one that wrote the version.
    since, until: bounds of the transaction time, seconds since 1970, inclusive. ids: objects, by id or nickname.
    fields: `content`, `metadata`, or names of additional fields. deleted: whether objects that are gone by now answer.
    limit: hits in one page. per_version: hits that one field of one version may give. context: lines around each hit.
    after: the `next` of the page before. within: seconds after which the search ends with what it has.
    """

    pattern: str
    regex: bool = False
    ignore_case: bool = False
    types: frozenset[str] = frozenset()
    path: str | None = None
    session: str | None = None
    since: float | None = None
    until: float | None = None
    ids: frozenset[str] = frozenset()
    fields: frozenset[str] = frozenset()
    versions: Which = "newest"
    deleted: bool = True
    limit: int = 50
    per_version: int | None = None
    context: int = 0
    after: str | None = None
    within: float | None = None


@dataclass(frozen=True, slots=True)
class Match:
    """A line of a text in which a match begins.

    line, column: from 1, in characters; lines end at line feeds alone. offset: of the match in the text, in characters.
    matched: the text of the match. text: its line. before, after: lines around it. Of what is long only the part near the
    match is kept, with an ellipsis where something was left out.
    """

    line: int
    column: int
    offset: int
    matched: str
    text: str
    before: tuple[str, ...] = ()
    after: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Where:
    """A version in which something was found.

    version: its number. current: whether it is the object's newest. session: that wrote it. at: its transaction time.
    """

    id: str
    version: int
    sequence: int
    current: bool
    type: str
    nickname: str | None
    path: str | None
    session: str | None
    at: float


@dataclass(frozen=True, slots=True)
class Hit:
    """A match, and the version in whose field it stands."""

    where: Where
    field: str
    match: Match


@dataclass(frozen=True, slots=True)
class UnsearchedVersion:
    """A version that could not be looked into, and why. It may hold matches."""

    id: str
    version: int
    why: str


@dataclass(frozen=True, slots=True)
class Results:
    """One page of hits: newest version first, then by field, then by line.

    next: what to ask for the following page with, None after the last. timed_out: the time was up; `next` goes on from there.
    looked_into: how many versions' texts were read. unsearched: what the store could not give.
    """

    hits: tuple[Hit, ...]
    next: str | None = None
    timed_out: bool = False
    looked_into: int = 0
    unsearched: tuple[UnsearchedVersion, ...] = ()
