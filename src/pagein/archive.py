"""Open a store's objects together with the search over them, the index, the watcher of a working folder, and its symbols."""

import contextlib
import os
import time
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Final

from pagein import wiring
from pagein.engine.recall.named_objects import HOW_TO_FILL
from pagein.errors import BadInput, CallerError, StoreError
from pagein.gateway.announced_store import default_folder, nearest_store, running_stores
from pagein.memory.followed_place import is_followed
from pagein.policy.privacy.exclusions import EXCLUDED
from pagein.settings.sources import load_config
from pagein.store.sqlite.readonly_file import LOG

if TYPE_CHECKING:
    from pagein.model.search_query import Results, Search
    from pagein.ports import ObjectStore, Progress, WholeStore
    from pagein.store.search.search_layer import SearchLayer
    from pagein.store.search.store_search import StoreSearch
    from pagein.workspace.folder_watch import Tell, Watcher
    from pagein.workspace.followed_files import FileObjects
    from pagein.workspace.symbols.symbol_index import SymbolIndex

_MOST_NAMED: Final = 3


class Archive:
    """An open store with search. What searches is imported and opened on first use: a history starts without it."""

    def __init__(self, objects: "WholeStore") -> None:
        self.objects = objects
        self._opened = contextlib.ExitStack()

    @cached_property
    def searcher(self) -> "StoreSearch":
        """The search over the store."""
        from pagein.store.search.store_search import StoreSearch

        return self._opened.enter_context(contextlib.closing(StoreSearch(self.objects)))

    @cached_property
    def index(self) -> "SearchLayer":
        """The layer that keeps the index of searches up to date."""
        from pagein.store.search.search_layer import SearchLayer

        return SearchLayer(self.objects)

    def search(self, asked: "Search") -> "Results":
        """Return a page of hits."""
        return self.searcher.search(asked)

    def close(self) -> None:
        """Close the index; the store stays open."""
        self._opened.close()


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


@dataclass(frozen=True, slots=True)
class StorePlace:
    """A store to be opened.

    store, workspace: as for `open_archive`
    told: what to tell a person who did not name the store; "" for the store of the own folder
    """

    store: str | Path | None
    workspace: str | Path
    told: str = ""


def find_store(store: str | Path | None = None, workspace: str | Path | None = None) -> StorePlace:
    """Find the store: the named store, else the configured one, else the store of a running gateway, else the current
    folder's.

    Raises BadInput if nothing is named and there is no store, and BadSetting as `wiring.open`.
    """
    named = store not in (None, "") or workspace is not None
    if named or load_config().store:
        return StorePlace(store, "." if workspace is None else workspace)
    own = wiring.store_file()
    found = running_stores(default_folder())
    running = nearest_store(found, str(Path.cwd()))
    if running is not None:
        if Path(running.store).is_absolute() and not Path(running.store).is_file():
            raise BadInput(
                f"the gateway at {running.url} has stored nothing yet; let an agent use it (`pagein doctor` checks the setup), "
                "or take in recorded sessions with `pagein remember`"
            )
        others = sorted({one.store for one in found} - {running.store})
        told = f"the store of the gateway at {running.url}: {running.store}"
        more = f"; other gateways use {', '.join(others)}, named with --store" if others else ""
        is_own = running.store == str(own) or Path.cwd().is_relative_to(running.workspace)
        return StorePlace(running.store, running.workspace, "" if is_own and not others else told + more)
    if own is not None and not own.is_file():
        raise BadInput(f"no gateway runs, and this folder has no store yet ({own}); {HOW_TO_FILL}{_other_stores(own)}")
    return StorePlace(None, ".")


def _other_stores(own: Path) -> str:
    """Return the stores of other folders in words, the last used first."""
    there = sorted(own.parent.glob(f"*{own.suffix}"), key=lambda one: one.stat().st_mtime, reverse=True)
    return (
        f"; stores of other folders are named with --store: {', '.join(map(str, there[:_MOST_NAMED]))}" if there else ""
    )


@contextlib.contextmanager
def open_own_stores() -> "Iterator[list[WholeStore]]":
    """Open the stores of every folder of this user, of the running gateways, and the configured one, to look into them.

    One that an older pagein wrote is left out: it would be migrated.
    """
    from pagein.store.sqlite.sqlite_database import is_outdated
    from pagein.store.store_location import SUFFIX, default_path

    places = {one.store for one in running_stores(default_folder())} | {load_config().store or ""}
    places.update(map(str, default_path("").parent.glob(f"*{SUFFIX}")))
    with contextlib.ExitStack() as opened:
        stores = []
        for place in sorted(places - {""}):
            with contextlib.suppress(CallerError, StoreError):
                if not is_outdated(Path(place)):
                    kept = wiring.open_for_upkeep(place, looks=True)
                    stores.append(opened.enter_context(contextlib.closing(kept)))
        yield stores


@contextlib.contextmanager
def open_archive(store: str | Path | None = None, *, workspace: str | Path = ".") -> Iterator[Archive]:
    """Open the objects of a store, named as for `wiring.open_for_upkeep`.

    Raises BadInput if the store does not exist.
    """
    kept = wiring.open_for_upkeep(store, workspace=workspace)
    with contextlib.closing(kept), archive_of(kept) as archive:
        yield archive


def catch_up(archive: Archive, tell: "Progress | None" = None, *, rest: bool = False) -> str:
    """Bring the objects of a store up to its journals. Every command does so before an answer about objects.

    tell: called with the progress
    rest: as for `LayerStore.bundle_more`

    Returns why the objects are not up to date; "" if they are. A read-only store answers with the objects that it has.
    """
    try:
        if not is_followed(archive.objects):  # most commands find nothing new, and start without the indexer
            from pagein.memory.indexer import Indexer

            Indexer(archive.objects).save_open_chats(time.time(), tell=tell)  # noqa: TID251 - the rim reads the clock
        while archive.objects.bundle_more(rest=rest):
            pass
    except StoreError as problem:
        return str(problem)
    return ""


@contextlib.contextmanager
def archive_of(kept: "WholeStore") -> Iterator[Archive]:
    """Return the archive of an open store. On exit, close the index; the store stays open."""
    with contextlib.closing(Archive(kept)) as archive:
        yield archive


@contextlib.contextmanager
def open_symbols(
    store: str | Path | None = None, *, workspace: str | Path = ".", jobs: int = 0
) -> "Iterator[SymbolIndex]":
    """Open the symbols of a workspace's files from an existing store file, named as for `wiring.open`; no file is made.

    jobs: number of processes that parse; 0: one per core. Raises BadSetting without the extra `pagein[symbols]`.
    """
    from pagein.workspace.symbols.kept_symbols import KeptSymbols
    from pagein.workspace.symbols.symbol_index import SymbolIndex

    home = os.path.realpath(workspace)
    with contextlib.ExitStack() as stack:
        cache = None
        with contextlib.suppress(StoreError):  # without a store, everything is parsed
            file = wiring.store_file(store, workspace=workspace)
            if file is not None and file.is_file():
                kept = wiring.open_kept_store(file, home)
                cache = KeptSymbols(stack.enter_context(contextlib.closing(kept)), home)
        excluded = load_config(workspace).engine.excluded
        yield stack.enter_context(SymbolIndex(home, excluded=excluded, cache=cache, jobs=jobs))


def file_sizes(file: Path) -> tuple[int | None, int | None]:
    """Return the bytes of a store's file and of the search index, each with the log; None for a missing file."""
    from pagein.store.search.sqlite_index import SUFFIX

    store, index = (
        [one.stat().st_size for one in (path, path.with_name(path.name + LOG)) if one.exists()]
        for path in (file, file.with_name(file.name + SUFFIX))
    )
    return sum(store) if store else None, sum(index) if index else None
