"""Interfaces to the symbols of a workspace: lookup by name, and storage between processes."""

from typing import Protocol

from pagein.model.symbols import SymbolAnswer
from pagein.ports.machine import Signal


class SymbolCache(Protocol):
    """Keeps the symbols of a workspace's files in parts, and spares the parsing of unchanged files.

    Losing a part is harmless at any time. Called from one thread at a time. Never raises: a failure is a part that is missing.
    """

    def load(self, part: int) -> bytes | None:
        """Return a stored part, or None."""
        ...

    def keep(self, part: int, data: bytes) -> None:
        """Keep a part in place of the previous one."""
        ...


class SymbolSource(Protocol):
    """Finds definitions by name in the files below a folder. Called from any thread."""

    def read(
        self,
        folder: str,
        name: str,
        /,
        *,
        path: str | None = None,
        include_context: bool = False,
        skipped: frozenset[str] = frozenset(),
        signal: Signal | None = None,
    ) -> SymbolAnswer:
        """Return the definition with a name, qualified name or id; else the candidates, possibly empty.

        path: a file, folder or glob that tells several apart.
        skipped: names of folders whose definitions count only if the name is defined nowhere else, or with a path.
        Raises BadSetting, with the remedy, if symbols need more than is installed; BadInput; AbortedOperation.
        """
        ...
