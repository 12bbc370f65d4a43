"""The search over everything in a store: its shelves, its index, and the names of its sessions.

Every search of pagein goes through here: the command, the tools, and the library.
"""

import contextlib
from collections.abc import Container, Sequence
from dataclasses import replace
from functools import cached_property
from typing import Final

from pagein.errors import BadInput
from pagein.model.search_query import Results, Search
from pagein.model.writes import Query
from pagein.ports import ObjectStore
from pagein.store.search.paged_shelf import PagedShelf
from pagein.store.search.searcher import MOST_SESSIONS, Searcher
from pagein.store.search.shelves import SearchedStore, Shelf, VersionShelf
from pagein.store.search.sql_shelf import SqlShelf, database_of
from pagein.store.search.sqlite_index import SUFFIX, SqliteIndex, usable
from pagein.store.search.trigram_index import TrigramIndex
from pagein.store.sql.sql_objects import SqlObjects
from pagein.store.sqlite.sqlite_database import SqliteDatabase

_NAMED: Final = 5
_SESSIONS: Final = Query(types=frozenset({"session"}), deleted=None)


class StoreSearch:
    """The search over a store. Opens the index on first use; closing leaves the store open. Called from several threads.

    evicted: whether evicted results are searched too
    """

    def __init__(self, store: SearchedStore, *, evicted: bool = True) -> None:
        self._store = store
        self._evicted = evicted
        self._opened = contextlib.ExitStack()

    @cached_property
    def shelves(self) -> Sequence[Shelf]:
        """Everything searchable, in the order of the search."""
        kept = self._store
        if not isinstance(kept, SqlObjects):
            return [VersionShelf(kept)]
        return [SqlShelf(kept), PagedShelf(kept)] if self._evicted else [SqlShelf(kept)]

    @cached_property
    def index(self) -> TrigramIndex | None:
        """The index beside the store; None if this kind of store has none."""
        found = _index_of(self._store)
        if found is not None:
            self._opened.callback(found.close)
        return found

    @cached_property
    def _searcher(self) -> Searcher:
        return Searcher(self.shelves, self.index, self._session_names)

    def search(self, asked: Search) -> Results:
        """Return a page of hits. Raises BadInput for an invalid pattern or filter, and StoreError."""
        return self._searcher.search(asked)

    def close(self) -> None:
        """Close the index."""
        self._opened.close()

    def _session_names(self, session: str | None, agent: str | None) -> Container[str] | None:
        """Return the sessions of an agent whose name is or begins as given; None for no restriction."""
        if session is None and agent is None:
            return None
        found = None if session is None else _sessions_that_begin(self._store, session)
        if agent is None:
            return found
        agents = _sessions_of(self._store, agent)
        return agents if found is None else frozenset(one for one in found if one in agents)


def _sessions_that_begin(store: ObjectStore, beginning: str) -> frozenset[str]:
    found = store.objects(replace(_SESSIONS, under=("session_id", beginning)))
    names = {str(one.metadata["session_id"]) for one in found}
    if beginning in names or not names:  # a store may hold results of a session without an object for it
        return frozenset({beginning})
    if len(names) > 1:
        some = ", ".join(sorted(names)[:_NAMED])
        raise BadInput(f"several sessions begin with {beginning[:80]!r}: {some}; give more of the name")
    return frozenset(names)


class _ManySessions(Container[str]):
    """The sessions of an agent that has many. They are not listed: each is looked up when an item of it is met."""

    def __init__(self, store: ObjectStore, agent: str) -> None:
        self._store, self._agent = store, agent
        self._met: dict[str, bool] = {}

    def __contains__(self, name: object) -> bool:
        if not isinstance(name, str):
            return False
        if name not in self._met:
            found = self._store.objects(replace(_SESSIONS, where={"session_id": name}))
            self._met[name] = any(one.metadata.get("harness") == self._agent for one in found)
        return self._met[name]


def _sessions_of(store: ObjectStore, agent: str) -> Container[str]:
    if isinstance(store, SqlObjects) and store.may_have_more(MOST_SESSIONS, "harness", agent):
        return _ManySessions(store, agent)
    found = store.objects(replace(_SESSIONS, where={"harness": agent}))
    if not found:
        known = {str(one.metadata.get("harness", "")) for one in store.objects(replace(_SESSIONS, deleted=False))}
        there = ", ".join(sorted(known - {""})) or "none"
        raise BadInput(f"no session of an agent {agent[:40]!r}; there are sessions of: {there}")
    return frozenset(str(one.metadata["session_id"]) for one in found)


def has_index(store: SearchedStore) -> bool:
    """Return whether the index of a store was begun, without beginning it."""
    database = database_of(store) if isinstance(store, SqlObjects) else None
    if isinstance(database, SqliteDatabase):
        return database.path.with_name(database.path.name + SUFFIX).exists()
    return database is not None


def _index_of(store: SearchedStore) -> TrigramIndex | None:
    if not isinstance(store, SqlObjects):
        return None
    database = database_of(store)
    if isinstance(database, SqliteDatabase):
        path = database.path
        return SqliteIndex(path.with_name(path.name + SUFFIX)) if usable() else None
    from pagein.store.postgres.postgres_database import PostgresDatabase
    from pagein.store.search.postgres_index import PostgresIndex

    return PostgresIndex(database) if isinstance(database, PostgresDatabase) else None
