"""A search over everything stored, and the results."""

from dataclasses import dataclass
from typing import Final, Literal, TypeAlias

CONTENT: Final = "content"
METADATA: Final = "metadata"

Which: TypeAlias = Literal["newest", "current", "all"]
"""The versions to search: of each object the newest version with a match, only the current version, or every version.
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Search:
    """A search request. Omitted fields do not restrict the search.

    pattern: a literal text, or with `regex` a regular expression of RE2; `^` and `$` match at lines.
    types: types of objects.
    path: a file, a folder or a glob, see `policy/recall/path_filter.py`.
    session: the session that wrote the version, by its name or the beginning of it.
    agent: the harness of the session that wrote the version, such as `claude-code`.
    chat: a thread of a session, by the id of its chat: the chat, and what its calls said, read and wrote.
    since, until: bounds of the transaction time, seconds since 1970, inclusive.
    ids: objects, by id or nickname.
    fields: `content`, `metadata`, or names of additional fields; `turns` and `turns.3` mean all pages of a chat or turn.
    deleted: whether to search objects that are deleted by now.
    limit: maximum number of hits per page.
    per_version: maximum number of hits per field of a version.
    context: number of lines around each hit.
    after: the `next` value of the previous page.
    within: seconds after which the search stops and returns the hits so far.
    """

    pattern: str
    regex: bool = False
    ignore_case: bool = False
    types: frozenset[str] = frozenset()
    path: str | None = None
    session: str | None = None
    agent: str | None = None
    chat: str | None = None
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

    line, column: from 1, in characters; lines end at line feeds only.
    offset: place of the match in the text, in characters.
    matched: the text of the match.
    text: the line of the match.
    before, after: lines around it.

    Of a long line or match only the part near the match is returned, with an ellipsis for each omission.
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
    """A version with a match.

    version: number of the version.
    current: whether the version is the newest of its object; for a page of a chat, whether the newest version has it.
    session: the session that wrote it.
    at: transaction time.
    chat: id of the chat that it belongs to.
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
    chat: str | None = None


@dataclass(frozen=True, slots=True)
class ChatPlace:
    """A place in a chat.

    turn: from 1.
    step: index of the step in the turn, from 0; None for what began the turn, and for what belongs to the whole turn.
    speaker: who says the text: `user`, `assistant`, `system`, `thinking` or `toolcall`; None outside of the chat itself.
    """

    turn: int
    step: int | None = None
    speaker: str | None = None


@dataclass(frozen=True, slots=True)
class Hit:
    """A match, with the version and field of the text.

    place: the place in the chat, for a text of a chat and for what its calls said, read and wrote.
    """

    where: Where
    field: str
    match: Match
    place: ChatPlace | None = None


@dataclass(frozen=True, slots=True)
class ObjectMatch:
    """A match in the text of an object.

    offset: place of the match in the text, in characters.
    context: the match with the text around it.
    hit: the stored version with the match; None for a match in the session's own objects.
    """

    object_id: str
    offset: int
    matched: str
    context: str
    hit: Hit | None = None


@dataclass(frozen=True, slots=True)
class UnsearchedVersion:
    """A version without search results because of an error. The version may contain matches."""

    id: str
    version: int
    why: str


@dataclass(frozen=True, slots=True)
class Results:
    """A page of hits, in the order of `policy/recall/hit_order.py`. An earlier page has newer versions.

    next: the `after` value for the next page; None after the last page.
    timed_out: the time was up; `next` continues the search.
    looked_into: number of versions whose texts were read.
    unsearched: versions that the store could not read.
    """

    hits: tuple[Hit, ...]
    next: str | None = None
    timed_out: bool = False
    looked_into: int = 0
    unsearched: tuple[UnsearchedVersion, ...] = ()
