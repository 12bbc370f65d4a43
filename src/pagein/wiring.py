"""The one place that chooses implementations."""

import time
from pathlib import Path
from typing import Final

from pagein.engine.engine import Engine, Settings
from pagein.engine.reading import Outside
from pagein.ports import BlobStore, TokenCounter
from pagein.providers.tokens import ratio_counter

MEMORY: Final = ":memory:"


def open(  # noqa: A001 -- users write pagein.open
    store: str | Path | None = None,
    *,
    workspace: str | Path = ".",
    counter: TokenCounter | None = None,
    settings: Settings | None = None,
) -> Engine:
    """An engine for one workspace.

    store: a file for the SQLite store or a folder to put it in, `":memory:"` for one that keeps nothing, or None for the
    default place in the user's data folder. The file is made when it is first used; a failure to do so shows as StoreError then.
    """
    # A path may hold bytes that are no text. Stores keep names as text, so such bytes are spelled out once, here.
    home = str(Path(workspace).resolve())
    place = home.encode("utf-8", "backslashreplace").decode()
    tokens = counter if counter is not None else default_counter()
    if store == MEMORY:
        from pagein.store.memory import MemoryStore

        memory = MemoryStore()
        outside = _outside(memory, home, settings)
        return Engine(blobs=memory, counter=tokens, settings=settings, workspace=place, outside=outside)
    from pagein.store.sqlite import SqliteStore

    kept = SqliteStore(_file(store, place))
    outside = _outside(kept, home, settings)
    return Engine(blobs=kept, journals=kept, counter=tokens, settings=settings, workspace=place, outside=outside)


def open_for_replay(store: Path, *, counter: TokenCounter) -> Engine:
    """An engine on a real store whose sessions end with the process: a replay never goes on with one, so none is journaled."""
    from pagein.store.sqlite import SqliteStore

    return Engine(blobs=SqliteStore(store), counter=counter, workspace="replay")


def _file(store: str | Path | None, place: str) -> Path:
    from pagein.store.location import SUFFIX, default_path

    if store is None:
        return default_path(place)
    path = Path(store)
    return path / f"store{SUFFIX}" if path.is_dir() else path


def _outside(blobs: BlobStore, home: str, settings: Settings | None) -> Outside:
    from pagein.workspace.folder import Folder

    chosen = settings if settings is not None else Settings()

    def folder(path: str) -> Folder:
        return Folder(str(Path(path).absolute()), chosen.excluded)

    return Outside(blobs, folder, home, time.time, chosen.reading)  # noqa: TID251 -- the rim reads the clock


def default_counter() -> TokenCounter:
    """The counter that is used where the caller brings none: Claude's, until usage calibrates it."""
    return ratio_counter("claude")
