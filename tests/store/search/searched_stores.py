"""Stores with content for searches, and a plain search for comparison."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from pagein.model.search_query import Hit, Results, Search
from pagein.model.versions import Draft, Version, Writer
from pagein.model.writes import Write, Written
from pagein.store.memory.memory_store import MemoryStore
from pagein.store.search.index_builder import grow
from pagein.store.search.pattern_matches import Matcher
from pagein.store.search.searcher import Searcher
from pagein.store.search.shelves import SearchedStore, Shelf, VersionShelf, readable
from pagein.store.search.sqlite_index import SqliteIndex


class Desk:
    """A store to write to, and its search. index: None for none."""

    def __init__(self, store: SearchedStore | None = None, index: SqliteIndex | None = None) -> None:
        self.store: SearchedStore = store if store is not None else MemoryStore()
        self.shelf: Shelf = VersionShelf(self.store)
        self.index = index
        self.searcher = Searcher([self.shelf], index)
        self._count = 0

    def put(self, content: str | None, *, key: str = "", **fields: object) -> Version:
        """Store the next version of an object. fields: of the draft, or `at` and `session`."""
        self._count += 1
        at, session = fields.pop("at", float(self._count)), fields.pop("session", None)
        path = fields.pop("path", None)
        fields.setdefault("metadata", {} if path is None else {"path": path})
        fields.setdefault("type", "toolcall")
        draft = Draft(id=key or f"call-{self._count}", content=content, **fields)  # type: ignore[arg-type]
        done = self.store.write(
            Write(
                f"r{self._count}",
                draft,
                float(str(at)),
                writer=Writer(session=None if session is None else str(session)),
            )
        )
        assert isinstance(done, Written), done
        return done.version

    def build(self) -> None:
        """Bring the index up."""
        assert self.index is not None
        while grow(self.index, self.shelf):
            pass

    def find(self, pattern: str, **asked: object) -> Results:
        return self.searcher.search(Search(pattern=pattern, **asked))  # type: ignore[arg-type]

    def pages(self, search: Search) -> list[Hit]:
        """All hits, page by page; those of a page in the order of the store."""
        hits: list[Hit] = []
        after: str | None = None
        for _ in range(1000):
            results = self.searcher.search(replace(search, after=after))
            hits += sorted(results.hits, key=_store_order)
            after = results.next
            if after is None:
                return hits
        raise AssertionError("no end of pages")


def _store_order(hit: Hit) -> tuple[int, int, str, int]:
    part = {"content": 0, "metadata": 2}.get(hit.field, 1)
    return -hit.where.sequence, part, hit.field, hit.match.line


def scanned(desk: Desk, search: Search) -> list[tuple[int, str, int]]:
    """Place, field and line of every hit, found by looking at everything in the simplest way."""
    matcher = Matcher(search)
    told: set[tuple[str, str]] = set()
    found = []
    things = desk.shelf.between(0, desk.shelf.last())
    for thing in reversed(things):
        for name, part in thing.parts:
            [data] = [part] if isinstance(part, bytes) else desk.shelf.load([part])
            assert isinstance(data, bytes)
            lines = [match.line for match in matcher.matches(readable(name, data))]
            if search.versions == "newest" and (thing.id, name) in told:
                continue
            if lines:
                told.add((thing.id, name))
            found += [(thing.place, name, line) for line in lines]
    return found


def places(hits: Sequence[Hit]) -> list[tuple[int, str, int]]:
    return [(hit.where.sequence, hit.field, hit.match.line) for hit in hits]


def indexed(folder: Path, store: SearchedStore | None = None) -> Desk:
    return Desk(store, SqliteIndex(folder / "store.pagein-search"))
