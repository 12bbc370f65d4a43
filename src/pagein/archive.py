"""Open a store's objects together with the search over them, the index, and the watcher of a working folder."""

import contextlib
import os
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from pagein import wiring
from pagein.model.search_query import Results, Search
from pagein.policy.privacy.exclusions import EXCLUDED
from pagein.store.search.index_builder import Builder
from pagein.store.search.store_search import StoreSearch

if TYPE_CHECKING:
    from pagein.ports import ObjectStore, WholeStore
    from pagein.workspace.folder_watch import Tell, Watcher
    from pagein.workspace.followed_files import FileObjects


@dataclass(frozen=True, slots=True)
class Archive:
    """An open store with search.

    builder: keeps the index up to date in the background once started; None if the store has no index
    """

    objects: "WholeStore"
    searcher: StoreSearch
    builder: Builder | None = None

    def search(self, asked: Search) -> Results:
        """Return a page of hits."""
        return self.searcher.search(asked)


def files_of(store: "ObjectStore", folder: str | Path = ".", *, excluded: tuple[str, ...] = EXCLUDED) -> "FileObjects":
    """Return the files of a working folder as objects of a store.

    Pass the result to `watch` to follow the files during work.
    """
    # imported here, as the watch: a search starts without them
    from pagein.store.random_ids import RandomIds
    from pagein.workspace.folder import Folder
    from pagein.workspace.followed_files import FileObjects, Rim
    from pagein.workspace.machine import home_of

    place = os.path.realpath(folder)
    # A path may contain bytes that are not valid text. The store keeps names as text, so these bytes are escaped.
    home = home_of(place).encode("utf-8", "backslashreplace").decode()
    return FileObjects(Folder(place, excluded), Rim(store, time.time, RandomIds(), home))  # noqa: TID251 - the rim reads the clock


@contextlib.contextmanager
def watch(files: "FileObjects", folder: str | Path = ".", tell: "Tell | None" = None) -> "Iterator[Watcher]":
    """Follow the files of a folder until the context ends.

    Changes made before the context are recorded when the context begins.
    """
    from pagein.workspace.folder_watch import Watcher

    watcher = Watcher(str(folder), files, tell)
    watcher.start()
    try:
        yield watcher
    finally:
        watcher.stop()


@contextlib.contextmanager
def open_archive(store: str | Path | None = None, *, workspace: str | Path = ".") -> Iterator[Archive]:
    """Open the objects of a store, named as for `wiring.open_for_upkeep`.

    Raises BadInput if the store does not exist.
    """
    kept = wiring.open_for_upkeep(store, workspace=workspace)
    with contextlib.closing(kept), archive_of(kept) as archive:
        yield archive


@contextlib.contextmanager
def archive_of(kept: "WholeStore") -> Iterator[Archive]:
    """Return the archive of an open store. On exit, stop the builder and close the index; the store stays open."""
    with contextlib.closing(StoreSearch(kept)) as searcher:
        index = searcher.index
        builder = None if index is None else Builder(index, searcher.shelves)
        try:
            yield Archive(kept, searcher, builder)
        finally:
            if builder is not None:
                builder.stop()
