"""The one place that chooses implementations."""

from pathlib import Path
from typing import Final

from pagein.engine.engine import Engine, Settings
from pagein.ports import BlobStore, TokenCounter

MEMORY: Final = ":memory:"


def open(  # noqa: A001 -- users write pagein.open
    store: str | Path | None = None,
    *,
    workspace: str | Path = ".",
    counter: TokenCounter | None = None,
    settings: Settings | None = None,
) -> Engine:
    """An engine for one workspace.

    store: a file for the SQLite store, `":memory:"` for none, or None for the default place in the user's data folder, which
    is made when something is first stored. Raises StoreError where a store cannot be opened.
    """
    place = str(Path(workspace).resolve())
    blobs = _blobs(store, place)
    return Engine(
        blobs=blobs, counter=counter if counter is not None else default_counter(), settings=settings, workspace=place
    )


def _blobs(store: str | Path | None, workspace: str) -> BlobStore:
    if store == MEMORY:
        from pagein.store.memory import MemoryBlobs

        return MemoryBlobs()
    from pagein.store.location import default_path
    from pagein.store.sqlite import SqliteBlobs

    return SqliteBlobs(default_path(workspace) if store is None else Path(store))


class _Ratio:
    """Characters per token of Claude 4.x (`notes/real-sessions.md` 1.3), for callers that bring no counter."""

    def count(self, text: str, kind: str = "result") -> float:  # noqa: ARG002 -- one ratio serves all kinds
        return len(text) / 2.85


def default_counter() -> TokenCounter:
    """The counter that is used where the caller brings none."""
    return _Ratio()
