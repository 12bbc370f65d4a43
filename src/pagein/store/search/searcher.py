"""Search a whole store: newest first, in pages, and complete even if the index is behind.

Rules of this file
------------------
1. The index only excludes items. Items not yet indexed are scanned, and so is everything if a pattern has no trigrams; so every
   answer equals the answer of a full scan.
2. Places only go down in the course of a search. New content gets higher places and changes no page.
3. The deadline is checked between two items; a search that exceeds it reports the fact and where to continue.
4. Only texts of items passing every filter are read, in batches, and the next batch is read while the current batch is matched. A text
   of several items is read once, and JSON only if it may have the words of a literal.
"""

import time
from collections.abc import Callable, Collection, Container, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from itertools import islice
from typing import Final, Protocol, TypeAlias

from pagein.errors import BadInput, StoreError
from pagein.model.chats import page_of
from pagein.model.names import ContentHash
from pagein.model.search_query import CONTENT, ChatPlace, Hit, Match, Results, Search, UnsearchedVersion, Where
from pagein.policy.recall.hit_order import arrange_hits
from pagein.policy.recall.path_filter import path_matches, path_words
from pagein.policy.recall.patterns import NO_NEED, Need, every_need, literal_grams, some_need
from pagein.store.search.page_positions import PagePosition, position_in
from pagein.store.search.pattern_matches import Matcher
from pagein.store.search.shelf_batches import at, batches, downwards
from pagein.store.search.shelves import (
    NOWHERE,
    Newest,
    Part,
    Shelf,
    ShelfItem,
    may_say,
    name_text,
    page_places,
    readable,
    type_mark,
    word_of,
)

_LARGEST_PAGE: Final = 10_000
MOST_SESSIONS: Final = 8
"""Sessions to ask the index for; of more, each item is filtered."""
_MOST_BARREN: Final = 1 << 16
_AHEAD: Final = 2
"""Number of batches read and matched at the same time: as many as the engine can run in parallel on a small machine."""


class Index(Protocol):
    """Names the places of a shelf that may match a pattern. Called from several threads; raises no exception."""

    def covered_place(self, shelf: Shelf) -> int:
        """Return the place up to which the index covers this very shelf; 0 for an unknown shelf."""
        ...

    def candidates(self, shelf: Shelf, need: Need, below: int) -> Iterator[int]:
        """Yield covered places below `below` whose texts may meet the need, highest first.

        Complete: no matching place is missing.
        """
        ...


Placed: TypeAlias = tuple[Match, ChatPlace | None]
Found: TypeAlias = dict[str, "list[Placed] | StoreError"]
"""Matches by part of an item, without the parts that have no match."""


@dataclass(frozen=True, slots=True)
class _BatchResult:
    """Result of a batch.

    held: items with matches, or unreadable, each with its number in the batch
    count: number of items searched
    left: the first item not searched for lack of time
    """

    held: list[tuple[int, ShelfItem, Newest, Found]]
    count: int
    left: ShelfItem | None


@dataclass(slots=True)
class _SearchPage:
    """The results of a search so far.

    sessions: the sessions that the search asks for; None for all
    told: objects and fields with a reported newest match
    barren: texts without a match, which other items have too, by field
    """

    search: Search
    matcher: Matcher
    deadline: float | None
    sessions: Container[str] | None
    hits: list[Hit] = field(default_factory=list)
    looked_into: int = 0
    unsearched: list[UnsearchedVersion] = field(default_factory=list)
    told: set[tuple[str, str]] = field(default_factory=set)
    barren: set[tuple[str, ContentHash]] = field(default_factory=set)

    def full(self) -> bool:
        return len(self.hits) > self.search.limit

    def late(self) -> bool:
        return self.deadline is not None and time.monotonic() >= self.deadline


SessionsOf: TypeAlias = Callable[[str | None, str | None], Container[str] | None]
"""Returns the names of the sessions of an agent whose names begin as given; None for all. A set, if they are few."""


def _exact_session(session: str | None, agent: str | None) -> frozenset[str] | None:
    return None if session is None and agent is None else frozenset([] if session is None else [session])


class Searcher:
    """Answers searches over several shelves, in sequence. Called from several threads."""

    def __init__(
        self, shelves: Sequence[Shelf], index: Index | None = None, sessions_of: SessionsOf = _exact_session
    ) -> None:
        self._shelves = tuple(shelves)
        self._index = index
        self._sessions_of = sessions_of

    def search(self, search: Search) -> Results:
        """Return a page of hits.

        Raises BadInput for an invalid pattern, page or bound; StoreError if the items cannot be listed.
        """
        _check(search)
        deadline = None if search.within is None else time.monotonic() + search.within
        sessions = self._sessions_of(search.session, search.agent)
        page = _SearchPage(search, Matcher(search), deadline, sessions)
        start = position_in(search.after)
        for shelf in self._shelves:
            if start is not None and start.shelf != shelf.name:
                continue
            before = len(page.hits)
            stopped = _ShelfPass(shelf, self._index, page, start).run()
            start = None
            late = not page.full()
            del page.hits[search.limit :]
            page.hits[before:] = arrange_hits(page.hits[before:])
            if stopped is not None:
                return _results(page, str(stopped), timed_out=late)
        return _results(page, None, timed_out=False)


class _ShelfPass:
    """A search of a single page down a single shelf."""

    def __init__(self, shelf: Shelf, index: Index | None, page: _SearchPage, start: PagePosition | None) -> None:
        self._shelf, self._index, self._page, self._start = shelf, index, page, start
        self._search, self._matcher = page.search, page.matcher
        self._word = "" if self._search.regex else word_of(self._search.pattern)
        self._earlier: dict[tuple[str, str], bool] = {}

    def run(self) -> PagePosition | None:
        """Search the shelf downwards. Return where to continue, or None at the end of the shelf."""
        below = self._shelf.last() + 1 if self._start is None else self._start.place + 1
        wanted = (thing for thing in self._things(below) if self._passes(thing))
        with ThreadPoolExecutor(_AHEAD) as workers:
            for worked in _in_order(workers, self._match_batch, batches(wanted)):
                stopped = self._take_batch(worked)
                if stopped is not None:
                    return stopped
        return None

    def _take_batch(self, worked: _BatchResult) -> PagePosition | None:
        """Add a batch's result to the page. Return where to continue if the page is full or the time is over."""
        page = self._page
        for number, thing, newest, found in worked.held:
            before = len(page.hits)
            self._keep(thing, newest, found)
            if page.full():
                page.looked_into += number + 1
                return PagePosition(self._shelf.name, thing.place, self._skip(thing) + self._search.limit - before)
        page.looked_into += worked.count
        left = worked.left
        return None if left is None else PagePosition(self._shelf.name, left.place, self._skip(left))

    def _things(self, below: int) -> Iterator[ShelfItem]:
        """Yield the items that may match, highest place first."""
        if self._search.ids:
            found = {thing.place: thing for name in self._search.ids for thing in self._shelf.of(name)}
            yield from (found[place] for place in sorted(found, reverse=True) if place < below)
            return
        need, covered = every_need((self._matcher.need, _filters_need(self._search, self._page.sessions))), 0
        if self._index is not None and need != NO_NEED:
            covered = self._index.covered_place(self._shelf)
        yield from downwards(self._shelf, covered, below)
        if covered and self._index is not None:
            yield from at(self._shelf, self._index.candidates(self._shelf, need, min(below, covered + 1)))

    def _passes(self, thing: ShelfItem) -> bool:
        return thing.problem is not None or _is_wanted(self._search, self._page.sessions, thing)

    def _skip(self, thing: ShelfItem) -> int:
        return self._start.skip if self._start is not None and self._start.place == thing.place else 0

    def _match_batch(self, batch: Sequence[ShelfItem]) -> _BatchResult:
        """Read and match a batch, in a worker thread."""
        newest: Mapping[str, Newest] = {}
        if self._search.versions == "current" or not self._search.deleted:
            newest = self._shelf.newest({thing.id for thing in batch})
        asked = [self._searched_parts(thing, newest.get(thing.id, NOWHERE)) for thing in batch]
        wanted = {
            part: None
            for parts in asked
            for name, part in parts
            if isinstance(part, ContentHash) and (name, part) not in self._page.barren
        }
        loaded = dict(zip(wanted, self._shelf.load([*wanted]), strict=True))
        held: list[tuple[int, ShelfItem, Found]] = []
        count, left = 0, None
        for thing, parts in zip(batch, asked, strict=True):
            if not parts and thing.problem is None:
                continue
            # at least one item per page, so that paging always ends
            if (count or self._page.looked_into) and self._page.late():
                left = thing
                break
            # a page needs no more matches than this from a single item
            most = self._search.limit + 1 + self._skip(thing)
            found = {name: self._part_matches(thing, name, part, loaded, most) for name, part in parts}
            found = {name: some for name, some in found.items() if some}
            if found or thing.problem is not None:
                held.append((count, thing, found))
            count += 1
        newest = newest or self._shelf.newest({thing.id for _, thing, _ in held})
        return _BatchResult(
            [(number, thing, newest.get(thing.id, NOWHERE), found) for number, thing, found in held], count, left
        )

    def _part_matches(
        self, thing: ShelfItem, name: str, part: Part, loaded: Mapping[ContentHash, bytes | StoreError], most: int
    ) -> list[Placed] | StoreError:
        data = loaded.get(part) if isinstance(part, ContentHash) else part
        if data is None:  # known to be barren
            return []
        if isinstance(data, StoreError):
            return data
        matches = self._matches(name, data, most)
        if not matches and isinstance(part, ContentHash) and len(self._page.barren) < _MOST_BARREN:
            self._page.barren.add((name, part))
        if matches and page_of(name) is not None:
            return list(zip(matches, page_places(name, data, [match.line for match in matches]), strict=True))
        place = None if thing.turn is None else ChatPlace(thing.turn, thing.step)
        return [(match, place) for match in matches]

    def _matches(self, name: str, data: bytes, most: int) -> list[Match]:
        if name != CONTENT and self._word and not may_say(data, self._word, ignore_case=self._search.ignore_case):
            return []
        return self._matcher.matches(readable(name, data), most)

    def _searched_parts(self, thing: ShelfItem, newest: Newest) -> Sequence[tuple[str, Part]]:
        """Return the parts of an item that the search asks for."""
        if thing.problem is not None or (newest.deleted and not self._search.deleted):
            return ()
        is_current = self._search.versions == "current"
        return [
            (name, part)
            for name, part in thing.parts
            if self._is_searched(thing, name) and not (is_current and not _is_newest(thing, name, newest))
        ]

    def _is_searched(self, thing: ShelfItem, name: str) -> bool:
        fields = self._search.fields
        if fields and not any(name == one or name.startswith(f"{one}.") for one in fields):
            return False
        return self._search.versions != "newest" or (thing.id, name) not in self._page.told

    def _keep(self, thing: ShelfItem, newest: Newest, found: Found) -> None:
        page, skip = self._page, self._skip(thing)
        if thing.problem is not None:
            page.unsearched.append(UnsearchedVersion(thing.id, thing.version, str(thing.problem)))
            return
        for name, matches in found.items():
            if isinstance(matches, StoreError):
                page.unsearched.append(UnsearchedVersion(thing.id, thing.version, str(matches)))
                continue
            if self._search.versions == "newest" and self._is_reported(thing, name, newest):
                continue
            page.told.add((thing.id, name))
            where = _where(thing, current=_is_newest(thing, name, newest))
            page.hits += [Hit(where, name, match, place) for match, place in matches[skip:]]
            skip = max(skip - len(matches), 0)

    def _is_reported(self, thing: ShelfItem, name: str, newest: Newest) -> bool:
        """Return whether a newer version had hits, on this page or an earlier page."""
        key = (thing.id, name)
        if key in self._page.told:
            return True
        if self._start is None or newest.place <= self._start.place:
            return False
        if key not in self._earlier:
            sessions = self._page.sessions
            newer = self._shelf.of(thing.id, self._start.place)
            above = [one for one in newer if _is_wanted(self._search, sessions, one)]
            self._earlier[key] = any(self._holds(newer, name) for newer in above)
        return self._earlier[key]

    def _holds(self, thing: ShelfItem, name: str) -> bool:
        part = dict(thing.parts).get(name)
        if part is None:
            return False
        [data] = [part] if isinstance(part, bytes) else self._shelf.load([part])
        return not isinstance(data, StoreError) and self._matcher.found_in(readable(name, data))


def _in_order(
    workers: ThreadPoolExecutor,
    work: Callable[[Sequence[ShelfItem]], _BatchResult],
    groups: Iterator[Sequence[ShelfItem]],
) -> Iterator[_BatchResult]:
    """Yield the results for every group in order, while workers process the next groups."""
    running = [workers.submit(work, group) for group in islice(groups, 1)]
    done = 0
    try:
        while running:
            results = running.pop(0).result()
            done += 1
            # the first page of a frequent pattern needs only a batch or two, and batches started early must be waited for
            ahead = _AHEAD if done > _AHEAD else 0
            running += [workers.submit(work, group) for group in islice(groups, max(ahead - len(running), 0))]
            yield results
            if not running:
                running += [workers.submit(work, group) for group in islice(groups, 1)]
    finally:
        for future in running:
            future.cancel()


def _filters_need(search: Search, sessions: Container[str] | None) -> Need:
    """Return the need of items that pass the filters: of a frequent text, a rare item must not be sought one by one."""
    chat = NO_NEED if search.chat is None else literal_grams(name_text(search.chat))
    path = NO_NEED if search.path is None else every_need(map(literal_grams, path_words(search.path)))
    return every_need((_sessions_need(sessions), _types_need(search.types), chat, path))


def _sessions_need(sessions: Container[str] | None) -> Need:
    """Return the need of items of these sessions, whose names are indexed beside the texts."""
    if not isinstance(sessions, frozenset) or not 0 < len(sessions) <= MOST_SESSIONS:
        return NO_NEED
    return some_need(literal_grams(name_text(one)) for one in sorted(sessions))


def _types_need(types: Collection[str]) -> Need:
    """Return the need of items of these types, which are indexed beside the texts, too."""
    return some_need(literal_grams(type_mark(one)) for one in sorted(types)) if types else NO_NEED


def _is_newest(thing: ShelfItem, name: str, newest: Newest) -> bool:
    """Return whether the newest version of the item has this text: the item is this version, or has the same page."""
    return newest.place == thing.place or (name in newest.pages and newest.pages[name] == dict(thing.parts)[name])


def _is_wanted(search: Search, sessions: Container[str] | None, thing: ShelfItem) -> bool:
    return (
        (not search.types or thing.type in search.types)
        and (sessions is None or thing.session in sessions)
        and (search.chat is None or thing.chat == search.chat)
        and (search.since is None or search.since <= thing.at)
        and (search.until is None or thing.at <= search.until)
        and (search.path is None or (thing.path is not None and path_matches(search.path, thing.path)))
    )


def _where(thing: ShelfItem, *, current: bool) -> Where:
    return Where(
        id=thing.id,
        version=thing.version,
        sequence=thing.place,
        current=current,
        type=thing.type,
        nickname=thing.nickname,
        path=thing.path,
        session=thing.session,
        at=thing.at,
        chat=thing.chat,
    )


def _results(page: _SearchPage, following: str | None, *, timed_out: bool) -> Results:
    return Results(tuple(page.hits), following, timed_out, page.looked_into, tuple(page.unsearched))


def _check(search: Search) -> None:
    if not 1 <= search.limit <= _LARGEST_PAGE:
        raise BadInput(f"a page has 1 to {_LARGEST_PAGE} hits, not {search.limit}")
    if search.per_version is not None and search.per_version < 1:
        raise BadInput(f"a version may give at least one hit, not {search.per_version}")
    if search.context < 0:
        raise BadInput(f"lines of context cannot be {search.context}")
