"""Interface to what keeps symbols between processes."""

from typing import Protocol


class SymbolCache(Protocol):
    """Keeps the symbols of a workspace's files in parts, so that unchanged files need not be parsed again.

    Losing a part is harmless at any time. Called from one thread at a time. Never raises: a failure is a part that is missing.
    """

    def load(self, part: int) -> bytes | None:
        """Return a part as it was kept, or None."""
        ...

    def keep(self, part: int, data: bytes) -> None:
        """Keep a part in place of the previous one."""
        ...
