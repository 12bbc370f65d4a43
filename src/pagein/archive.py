"""A store's objects with the search over them: the store that was named, its index beside it, and who builds that."""

import contextlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from pagein import wiring
from pagein.model.search import Results, Search
from pagein.ports import ObjectStore, WholeStore
from pagein.store.search import Searcher
from pagein.store.search_building import Builder
from pagein.store.search_index import SUFFIX, SqliteIndex, usable
from pagein.store.search_shelves import Shelf, VersionShelf
from pagein.store.search_sql import SqlShelf, file_of
from pagein.store.sql_objects import SqlObjects


@dataclass(frozen=True, slots=True)
class Archive:
    """What is stored. builder: keeps the index up in the background once it is started; None where there is no index."""

    objects: ObjectStore
    searcher: Searcher
    builder: Builder | None = None

    def search(self, asked: Search) -> Results:
        """One page of hits."""
        return self.searcher.search(asked)


@contextlib.contextmanager
def open_archive(store: str | Path | None = None, *, workspace: str | Path = ".") -> Iterator[Archive]:
    """The objects of a store, named as for `wiring.open_for_upkeep`. Raises BadInput where there is none."""
    kept = wiring.open_for_upkeep(store, workspace=workspace)
    with contextlib.closing(kept), archive_of(kept) as archive:
        yield archive


@contextlib.contextmanager
def archive_of(kept: WholeStore) -> Iterator[Archive]:
    """The archive of an open store. At its end the builder is stopped and the index is closed; the store stays open."""
    shelf: Shelf = SqlShelf(kept) if isinstance(kept, SqlObjects) else VersionShelf(kept)
    file = file_of(kept) if isinstance(kept, SqlObjects) else None
    if file is None or not usable():
        yield Archive(kept, Searcher([shelf]))
        return
    with contextlib.closing(SqliteIndex(file.with_name(file.name + SUFFIX))) as index:
        builder = Builder(index, [shelf])
        try:
            yield Archive(kept, Searcher([shelf], index), builder)
        finally:
            builder.stop()
