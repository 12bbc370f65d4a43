"""The one place that chooses implementations."""

from pathlib import Path
from typing import Final

from pagein.engine.engine import Engine, Settings
from pagein.ports import TokenCounter

MEMORY: Final = ":memory:"


def open(  # noqa: A001 -- users write pagein.open
    store: str | Path | None = None,
    *,
    workspace: str | Path = ".",
    counter: TokenCounter | None = None,
    settings: Settings | None = None,
) -> Engine:
    """An engine for one workspace.

    store: a file for the SQLite store, `":memory:"` for one that keeps nothing, or None for the default place in the user's
    data folder. The file is made when it is first used; a failure to do so shows as StoreError then.
    """
    # A path may hold bytes that are no text. Stores keep names as text, so such bytes are spelled out once, here.
    place = str(Path(workspace).resolve()).encode("utf-8", "backslashreplace").decode()
    tokens = counter if counter is not None else default_counter()
    if store == MEMORY:
        from pagein.store.memory import MemoryStore

        return Engine(blobs=MemoryStore(), counter=tokens, settings=settings, workspace=place)
    from pagein.store.location import default_path
    from pagein.store.sqlite import SqliteStore

    kept = SqliteStore(default_path(place) if store is None else Path(store))
    return Engine(blobs=kept, journals=kept, counter=tokens, settings=settings, workspace=place)


class _Ratio:
    """Characters per token of Claude 4.x (`notes/real-sessions.md` 1.3), for callers that bring no counter."""

    def count(self, text: str, kind: str = "result") -> float:  # noqa: ARG002 -- one ratio serves all kinds
        return len(text) / 2.85


def default_counter() -> TokenCounter:
    """The counter that is used where the caller brings none."""
    return _Ratio()
