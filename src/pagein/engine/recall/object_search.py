"""A search in stored texts: the query, the matches, and the page of the answer."""

from dataclasses import dataclass, field

from pagein.model.json_text import decode_json
from pagein.model.search_query import CONTENT, Hit, ObjectMatch, Search


@dataclass(frozen=True, slots=True)
class Lookup:
    """A search request.

    pattern: text or expression to find.
    scope: ids of objects; None for the session's objects.
    skip: number of matches shown before.
    stored: what to search in the archive, after the session's objects; None for nothing.
    own: False to search the archive alone.
    """

    pattern: str
    scope: tuple[str, ...] | None = None
    skip: int = 0
    stored: Search | None = None
    own: bool = True


@dataclass(frozen=True, slots=True)
class Hits:
    """The result of a search, in objects from newest to oldest.

    hits: the matches.
    unsearched: objects that could not be searched, with reasons.
    more: True if there are further matches.
    looked_into: number of searched objects.
    of: number of objects in scope.
    notice: how the pattern was interpreted; None if as given.
    failure: why the recall is not journaled; None if it is.
    """

    hits: tuple[ObjectMatch, ...]
    unsearched: tuple[tuple[str, str], ...] = ()
    more: bool = False
    looked_into: int = 0
    of: int = 0
    notice: str | None = None
    failure: str | None = None


def is_search_for(hit: Hit, pattern: str) -> bool:
    """Return whether a match is only the argument of a call without a result that looks for this very text: the call that asks now."""
    if hit.field == CONTENT or hit.place is None or hit.place.speaker != "toolcall":
        return False
    try:
        given = decode_json(hit.match.text.encode("utf-8", "surrogatepass"))
    except (ValueError, RecursionError):
        return False
    return isinstance(given, dict) and pattern in (given.get("pattern"), given.get("query"))


@dataclass(slots=True)
class HitPage:
    """The answer of a search in progress.

    most: most matches to show; the search looks for one match more, to set `more`.
    told: object that gave a match, by the session and the id of the call that gave the text, and by the offset.
    """

    skip: int
    most: int
    hits: list[ObjectMatch] = field(default_factory=list)
    unsearched: list[tuple[str, str]] = field(default_factory=list)
    looked_into: int = 0
    told: dict[tuple[str | None, str, int], str] = field(default_factory=dict)

    def repeats(self, source: tuple[str | None, str], offset: int, object_id: str) -> bool:
        """Return whether another object gave this match: the evicted result of a call, or the object of the call."""
        return self.told.setdefault((*source, offset), object_id) != object_id

    def full(self) -> bool:
        """Return whether the search may end: one match beyond the page was found."""
        return len(self.hits) > self.most

    def take(self, hit: ObjectMatch) -> None:
        """Add the next match, unless it was shown before."""
        if self.skip > 0:
            self.skip -= 1
        else:
            self.hits.append(hit)
