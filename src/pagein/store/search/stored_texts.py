"""The store as recall sees it: a search over every object, and the newest text of an object."""

from collections.abc import Sequence
from functools import cached_property

from pagein.model.search_query import CONTENT, ObjectMatch, Search
from pagein.store.search.searcher import Searcher
from pagein.store.search.shelves import SearchedStore, Shelf, VersionShelf
from pagein.store.search.sql_shelf import SqlShelf
from pagein.store.sql.sql_objects import SqlObjects


class StoredTexts:
    """The versions of every object of a store. Each search scans everything: no index is used or maintained."""

    def __init__(self, store: SearchedStore) -> None:
        self._store = store

    @cached_property
    def _searcher(self) -> Searcher:
        shelf: Shelf = SqlShelf(self._store) if isinstance(self._store, SqlObjects) else VersionShelf(self._store)
        return Searcher([shelf])

    def matches(
        self, pattern: str, limit: int, *, regex: bool, per_object: int, within: float
    ) -> Sequence[ObjectMatch]:
        """Return matches in the newest contents, newest first. Raises BadInput for an invalid pattern."""
        asked = Search(
            pattern=pattern,
            regex=regex,
            fields=frozenset({CONTENT}),
            versions="current",
            deleted=False,
            limit=limit,
            per_version=per_object,
            within=within,
        )
        return [
            ObjectMatch(hit.where.id, hit.match.offset, hit.match.matched, hit.match.text)
            for hit in self._searcher.search(asked).hits
        ]

    def text(self, name: str) -> str | None:
        """Return the newest content of the object with this id or nickname.

        Return None if the object is unknown or deleted.
        """
        version = self._store.current(name)
        return None if version is None or version.deleted else self._store.content(version)
