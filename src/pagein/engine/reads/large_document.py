"""The large file that a session read last, so that its pages are hashed and split once."""

from collections.abc import Callable
from typing import Final

from pagein.model.documents import Document

_LEAST: Final = 1 << 17
"""Bytes from which a hash and lines cost more than a comparison with the bytes of before."""
_MOST: Final = 8 << 20
"""Bytes up to which a file is remembered."""


class LargeDocument:
    """Remember the last large file by its bytes. Thread-safe.

    meet: is given each document, of any size, that is not the remembered one.
    """

    def __init__(self, meet: Callable[[Document], None]) -> None:
        self._meet = meet
        self._last: Document | None = None

    def remember(self, document: Document) -> Document:
        """Return the remembered document if it is of the same file and bytes; else this one, remembered if it is large."""
        last = self._last
        if last is not None and last == document:
            return last
        if _LEAST <= len(document.content) <= _MOST:
            self._last = document
        self._meet(document)
        return document
