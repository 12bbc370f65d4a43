"""Keep the symbols of a workspace in a store: a blob for each part, and a layer with the parts' names.

Nothing refers to these blobs, so that garbage collection may take them at any time; then the files are parsed again. Only names and
places are kept, no text of a file.
"""

import contextlib
from typing import Protocol

from pagein.errors import BadName, StoreError
from pagein.model.names import ContentHash
from pagein.ports import BlobStore, LayerStore


class LayeredBlobs(BlobStore, LayerStore, Protocol):
    """A store of blobs and layers."""


class KeptSymbols:
    """The symbols of one workspace in a store. Implements `SymbolCache`."""

    def __init__(self, store: LayeredBlobs, workspace: str) -> None:
        self._store = store
        self._name = f"symbols:{ContentHash.of(workspace.encode('utf-8', 'surrogateescape'))}"

    def load(self, part: int) -> bytes | None:
        """Return a stored part; None for a missing part or a failed store."""
        try:
            found = self._store.layer(f"{self._name}:{part}")
            return None if found is None else self._store.get(ContentHash.parse(found[1]))
        except (BadName, StoreError):
            return None

    def keep(self, part: int, data: bytes) -> None:
        """Keep a part. A store that fails, or refuses an erased text, keeps nothing."""
        with contextlib.suppress(StoreError):
            name = self._store.put(data)
            self._store.set_layer(f"{self._name}:{part}", 0, str(name))
