"""Choose the implementations behind the interfaces. No other module does.

The engine is imported where it is opened: commands that only look into a store start without it.
"""

import contextlib
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Final, TypeAlias

from pagein.errors import BadInput, BadSetting, StoreError
from pagein.settings.sources import load_config
from pagein.settings.store_address import ADDRESSES, MEMORY, store_address, without_password

if TYPE_CHECKING:
    from pagein.engine.engine import Engine, Settings
    from pagein.engine.log.evicted_texts import EvictedTexts
    from pagein.engine.reads.read_resources import Outside
    from pagein.engine.recall.recall_resources import RecallResources
    from pagein.engine.session import Session
    from pagein.memory.indexer import Indexer
    from pagein.memory.object_writer import IndexedStore
    from pagein.past_sessions.intake import Intake
    from pagein.ports import BlobStore, ChildModel, DerivedLayer, ForgettingStore, TokenCounter, WholeStore
    from pagein.settings.layers import Config
    from pagein.store.postgres.postgres_store import PostgresStore
    from pagein.store.search.search_layer import SearchLayer
    from pagein.store.search.shelves import SearchedStore
    from pagein.store.sqlite.sqlite_store import SqliteStore
    from pagein.store.upkeep.file_soundness import FileWatch
    from pagein.tools.child_tools import SessionDelegate
    from pagein.workspace.symbols.kept_symbols import LayeredBlobs

    OpenChildModel: TypeAlias = Callable[[], ChildModel]

# Seconds that a process of an intake waits for its neighbours, which write in turns.
_PATIENCE_OF_INTAKE: Final = 60.0
_LONGEST_REFRESH: Final = 5.0
"""Seconds for which a search waits for objects that are not made yet."""


def open(  # noqa: A001 -- users write pagein.open
    store: str | Path | None = None,
    *,
    workspace: str | Path = ".",
    counter: "TokenCounter | None" = None,
    settings: "Settings | None" = None,
    patience: float | None = None,
    children: "OpenChildModel | None" = None,
    given: "Mapping[str, object] | None" = None,
) -> "Engine":
    """Open an engine for a workspace.

    store: a file for the SQLite store or a folder to put it in, `postgresql://...` for a database (needs the extra
    `pagein[postgres]`), `":memory:"` for a store in memory, or None for the configured store, by default a file in the
    user's data folder. File or tables are created on first use; a failure then raises StoreError.
    settings: None for the configured settings, from files and the environment (`settings.sources.load_config`)
    patience: seconds to wait for a busy store or an unreachable database; None for the store's own default
    children: opens a connection to child models, for `Session.query` and its like; None for the providers' own interfaces
    given: settings by name; they override the configured settings

    Raises BadSetting, with file, key and remedy, for an invalid setting.
    """
    return _open(store, workspace, counter, settings, patience, children, given)[0]


@contextlib.contextmanager
def open_texts(store: str | Path | None, workspace: str | Path) -> "Iterator[EvictedTexts]":
    """Open the evicted texts of a workspace, without an engine. Raises as `open` does for the store."""
    from pagein.engine.log.evicted_texts import EvictedTexts
    from pagein.store.memory.memory_store import MemoryStore

    store, place = store_address(store, workspace), _place(workspace)
    with contextlib.closing(MemoryStore() if store == MEMORY else open_kept_store(store, place)) as blobs:
        yield EvictedTexts(blobs, place)


def open_with_layers(
    store: str | Path | None = None, *, workspace: str | Path = ".", patience: float | None = None
) -> "tuple[Engine, tuple[DerivedLayer, ...]]":
    """Open an engine as `open` does, with the layers over its store; none for a store in memory."""
    return _open(store, workspace, None, None, patience)


def layers_of(store: "IndexedStore") -> "tuple[Indexer, SearchLayer]":
    """Return the derived layers of a store, in the order of derivation."""
    from pagein.memory.indexer import Indexer
    from pagein.store.search.search_layer import SearchLayer

    return (Indexer(store), SearchLayer(store))


def _open(
    store: str | Path | None,
    workspace: str | Path,
    counter: "TokenCounter | None",
    settings: "Settings | None",
    patience: float | None,
    children: "OpenChildModel | None" = None,
    given: "Mapping[str, object] | None" = None,
) -> "tuple[Engine, tuple[DerivedLayer, ...]]":
    from pagein.engine.engine import Engine

    store = store_address(store, workspace)
    config = load_config(workspace, given)
    settings, delegate = settings or config.engine, _delegate(config, children)
    home, place = str(Path(workspace).resolve()), _place(workspace)
    tokens = counter if counter is not None else default_counter()
    make = partial(Engine, counter=tokens, settings=settings, workspace=place)
    if store == MEMORY:
        from pagein.store.memory.memory_store import MemoryStore

        memory = MemoryStore()
        outside = _outside(memory, home, settings)
        reach = _reach(memory, settings, None, None, delegate)
        return make(blobs=memory, outside=outside, reach=reach), ()
    kept = open_kept_store(store, place, patience)
    outside = _outside(kept, home, settings, kept)
    layers = layers_of(kept)
    reach = _reach(kept, settings, _log_beside(store, place), layers[0], delegate)
    return make(blobs=kept, journals=kept, snapshots=kept, outside=outside, reach=reach), layers


def _place(workspace: str | Path) -> str:
    """Return the name of a workspace in stores, which keep names as text: a path may contain bytes that are no valid text."""
    return str(Path(workspace).resolve()).encode("utf-8", "backslashreplace").decode()


def usual() -> "Settings":
    """Return the engine's settings for the current folder. Raises BadSetting as `open`."""
    return load_config().engine


def open_for_replay(store: Path, *, counter: "TokenCounter", settings: "Settings") -> "Engine":
    """Open an engine on a real store without journals: no replay continues an earlier session."""
    from pagein.engine.engine import Engine
    from pagein.store.sqlite.sqlite_store import SqliteStore

    return Engine(blobs=SqliteStore(store), counter=counter, settings=settings, workspace="replay")


def open_for_upkeep(
    store: str | Path | None = None, *, workspace: str | Path = ".", new: bool = False, looks: bool = False
) -> "WholeStore":
    """Open a store for maintenance, named as for `open`, or a PostgreSQL database by its address (`postgresql://...`).
    Raises BadInput if there is no store.

    new: the store may be missing, and is then created
    looks: open the file read-only, unless an older pagein wrote it
    """
    return _whole(store, workspace=workspace, new=new, looks=looks)


def _whole(
    store: str | Path | None, *, workspace: str | Path, new: bool = False, looks: bool = False
) -> "ForgettingStore":
    store = store_address(store, workspace)
    if store == MEMORY:
        raise BadInput("a store in memory ends with its process, so there is none to look after; name a file")
    path = store_file(store, workspace=workspace)
    if path is None:
        with _extra("postgres"):
            from pagein.store.upkeep.postgres_upkeep import PostgresUpkeep
        return PostgresUpkeep(str(store))
    from pagein.store.sqlite.sqlite_database import is_outdated
    from pagein.store.upkeep.sqlite_upkeep import SqliteUpkeep

    if not new and not path.is_file():
        raise BadInput(f"there is no store at {path}; name one with --store, or the folder it is of with --workspace")
    return SqliteUpkeep(path, looks=looks and not is_outdated(path))


def open_for_forgetting(store: str | Path | None = None, *, workspace: str | Path = ".") -> "ForgettingStore":
    """Open a store for erasing texts, named as for `open_for_upkeep`. Raises BadInput as `open_for_upkeep`."""
    return _whole(store, workspace=workspace)


def log_of(store: str | Path | None = None, *, workspace: str | Path = ".") -> Path:
    """Return the path of the log of operations on a store."""
    return _log_beside(store_address(store, workspace), str(Path(workspace).absolute()))


@contextlib.contextmanager
def open_for_import(store: str | Path | None = None, *, workspace: str | Path = ".") -> "Iterator[WholeStore]":
    """Open a store to import into, named as for `open_for_upkeep`.

    A new file appears only if the context ends without an exception.
    """
    path = None if store == MEMORY else store_file(store, workspace=workspace)
    if path is None or path.exists():
        with contextlib.closing(open_for_upkeep(store, workspace=workspace, new=True)) as kept:
            yield kept
        return
    from pagein.store.upkeep.file_swap import place_file
    from pagein.store.upkeep.sqlite_upkeep import SqliteUpkeep

    with place_file(path) as made, contextlib.closing(SqliteUpkeep(made)) as kept:
        yield kept


@contextlib.contextmanager
def open_kept_session(
    name: str, store: str | Path | None = None, *, workspace: str | Path = "."
) -> "Iterator[Session]":
    """Open a stored session from a store named as for `open`.

    Raises BadInput for an unknown session or a missing store.
    """
    from pagein.tools.pin_commands import existing_session

    def stored_names() -> list[str]:
        with contextlib.closing(open_for_upkeep(store, workspace=workspace)) as kept:
            newest = sorted(kept.sessions(), key=lambda one: -(one.touched or 0.0))
        return [one.name for one in newest if one.leaf is not None and not one.is_own]

    open_for_upkeep(store, workspace=workspace).close()  # asking for a stored session must not create a store
    with open(store, workspace=workspace) as engine:
        yield existing_session(engine, name, stored_names)


@contextlib.contextmanager
def open_intake(
    store: str | Path | None = None, *, workspace: str | Path = ".", jobs: int = 0, looks: bool = False
) -> "Iterator[Intake]":
    """Open a store, named as for `open`, to take recorded sessions into it. It is created if it does not exist.

    jobs: number of worker processes; 0: one per core, where there is much to read
    looks: write nothing; a missing store then counts as an empty one
    """
    from pagein.past_sessions.intake import Intake
    from pagein.past_sessions.source_intake import IntakeTerms

    address = store_address(store, workspace)
    if address == MEMORY:
        raise BadInput("a store in memory ends with its process, so it remembers nothing; name a file")
    file = store_file(store, workspace=workspace)
    terms = IntakeTerms(default_counter(), load_config(workspace).engine.excluded, looks)
    with contextlib.ExitStack() as stack:
        if looks and file is not None and not file.is_file():
            file = Path(stack.enter_context(tempfile.TemporaryDirectory())) / file.name
        intake = Intake(partial(_intake_store, address if file is None else file, looks=looks), terms, jobs=jobs)
        yield stack.enter_context(contextlib.closing(intake))


def _intake_store(store: str | Path | None, *, looks: bool) -> "PostgresStore | SqliteStore":
    if not (looks and isinstance(store, Path) and store.is_file()):
        return open_kept_store(store, "", _PATIENCE_OF_INTAKE)
    from pagein.store.sqlite.sqlite_database import is_outdated
    from pagein.store.sqlite.sqlite_store import SqliteStore

    return SqliteStore(store, looks=not is_outdated(store))


def store_file(store: str | Path | None = None, *, workspace: str | Path = ".") -> Path | None:
    """Return the path of the named store's file, existing or not; None for a database address.

    Raises BadSetting as `open`.
    """
    store = store_address(store, workspace)
    if isinstance(store, str) and store.startswith(ADDRESSES):
        return None
    return _file(store, _place(workspace))


def public_address(store: str | Path | None = None, *, workspace: str | Path = ".") -> str | None:
    """Return the path of the named store's file, or the address of its database without a password; None for a store in memory.

    Raises BadSetting as `open`.
    """
    named = store_address(store, workspace)
    if named == MEMORY:
        return None
    if not isinstance(named, str) or not named.startswith(ADDRESSES):
        return str(Path(store_file(store, workspace=workspace) or "").absolute())
    return without_password(named)


def file_watch(store: str | Path | None = None, *, workspace: str | Path = ".") -> "FileWatch | None":
    """Return a monitor of the store file's soundness; None if the store is not a file. Raises BadSetting as `open`."""
    from pagein.store.upkeep.file_soundness import FileWatch

    file = store_file(store, workspace=workspace) if store != MEMORY else None
    return FileWatch(file) if file is not None else None


def remedy_of(problem: StoreError) -> str:
    """Return the remedy for a store failure, "" unless the store's file is damaged."""
    from pagein.store.upkeep.file_soundness import REMEDY, is_damage

    return REMEDY if is_damage(problem.__cause__) else ""


def open_kept_store(
    store: str | Path | None, place: str, patience: float | None = None
) -> "PostgresStore | SqliteStore":
    """Open a store by its file or address, for any thread. place: the workspace, for its own store."""
    if isinstance(store, str) and store.startswith(ADDRESSES):
        with _extra("postgres"):
            from pagein.store.postgres.postgres_store import PostgresStore
        return PostgresStore(store, patience=patience)
    from pagein.store.sqlite.sqlite_store import SqliteStore

    return SqliteStore(_file(store, place), patience)


@contextlib.contextmanager
def _extra(name: str) -> Iterator[None]:
    """Import modules of an optional extra. Raises BadSetting with the remedy if the extra is not installed."""
    try:
        yield
    except ModuleNotFoundError as problem:
        raise BadSetting(f"this needs more than is installed: pip install 'pagein[{name}]' ({problem})") from problem


def _file(store: str | Path | None, place: str) -> Path:
    from pagein.store.store_location import SUFFIX, default_path

    if store is None or store == "":  # an empty setting names no file
        return default_path(place)
    path = Path(store)
    return path / f"store{SUFFIX}" if path.is_dir() else path


def _outside(blobs: "BlobStore", home: str, settings: "Settings", kept: "LayeredBlobs | None" = None) -> "Outside":
    from pagein.engine.reads.read_resources import Outside
    from pagein.workspace.folder import Folder
    from pagein.workspace.symbols.symbol_source import WorkspaceSymbols

    def folder(path: str) -> Folder:
        return Folder(str(Path(path).absolute()), settings.excluded)

    now = time.time  # noqa: TID251 -- the rim reads the clock
    return Outside(blobs, folder, home, now, settings.reading, symbols=WorkspaceSymbols(settings.excluded, kept))


def _reach(
    store: "SearchedStore",
    settings: "Settings | None",
    log: Path | None,
    objects: "Indexer | None",
    delegate: "SessionDelegate | None" = None,
) -> "RecallResources":
    from pagein.engine.engine import Settings
    from pagein.engine.log.trajectory import Trajectory
    from pagein.engine.recall.recall_resources import RecallResources
    from pagein.engine.recall.stored_objects import StoredObjects
    from pagein.store.search.stored_texts import StoredTexts
    from pagein.workspace.code_search import CodeSearch
    from pagein.workspace.tree import FileTree

    chosen = settings if settings is not None else Settings()

    def tree(folder: str) -> FileTree:
        return FileTree(str(Path(folder).absolute()), chosen.excluded)

    def code(folder: str) -> CodeSearch:
        return CodeSearch(str(Path(folder).absolute()), chosen.excluded)

    def refresh() -> None:
        if objects is not None:
            with contextlib.suppress(StoreError):  # a store that takes no writes answers with what it has
                objects.save_open_chats(time.time(), _LONGEST_REFRESH)  # noqa: TID251 -- the rim reads the clock

    trajectory = None if log is None else Trajectory(log, time.time)  # noqa: TID251 -- the rim reads the clock
    texts, listed = StoredTexts(store, refresh), StoredObjects(store, refresh)
    return RecallResources(tree, texts, listed, trajectory, chosen.recall, chosen.ingest, code, delegate)


def _delegate(config: "Config", children: "OpenChildModel | None") -> "SessionDelegate":
    from pagein.tools.child_tools import SessionDelegate

    def open_models() -> "ChildModel":
        from pagein.child_models.provider_models import ProviderModels

        return ProviderModels(addresses=config.addresses)

    is_set = children is not None or bool(config.delegation.model)
    return SessionDelegate(children or open_models, config.delegation, is_set=is_set)


def _log_beside(store: str | Path | None, place: str) -> Path:
    """Return the path of the log of operations: beside the store's file, or where a database's file would be."""
    from pagein.engine.log.trajectory import SUFFIX
    from pagein.store.store_location import default_path

    file = default_path(place) if isinstance(store, str) and store.startswith(ADDRESSES) else _file(store, place)
    return file.with_name(file.name + SUFFIX)


def default_counter() -> "TokenCounter":
    """Return the default token counter: Claude's ratios, until usage calibrates them."""
    from pagein.providers.tokens.counters import ratio_counter

    return ratio_counter("claude")
