"""The end of a transcript: rows that an agent wrote since the last look."""

import json
import os
from collections.abc import Iterator
from errno import EFBIG
from pathlib import Path
from typing import Any, Final, TypeAlias

Row: TypeAlias = dict[str, Any]

_LARGEST: Final = 256 * 1024 * 1024
"""Bytes of a transcript that is read at all."""
_LONGEST: Final = 16 * 1024 * 1024
"""Bytes of one line."""
_OVERLAP: Final = 64
"""Bytes before the last place that must still be the same."""


class TranscriptTail:
    """The rows of a transcript, each read once."""

    def __init__(self, file: Path) -> None:
        self._file = file
        self._place = 0
        self._before = b""
        self._inode = 0

    def news(self) -> "Iterator[Row | None] | None":
        """Return the rows since the last look; None if what was read before does not count any more.

        A row is None if it is no JSON object. After None the next look begins at the first row. Raises OSError.
        """
        with self._file.open("rb") as opened:
            size, inode = os.fstat(opened.fileno()).st_size, os.fstat(opened.fileno()).st_ino
            is_other, self._inode = self._place > 0 and inode != self._inode, inode
            opened.seek(max(self._place - len(self._before), 0))
            if size > _LARGEST:
                raise OSError(EFBIG, "transcript too large", str(self._file))
            if is_other or size < self._place or opened.read(len(self._before)) != self._before:
                self._place, self._before = 0, b""
                return None
            text = opened.read(size - self._place)
        whole = text[: text.rfind(b"\n") + 1]
        self._place += len(whole)
        self._before = (self._before + whole)[-_OVERLAP:]
        return map(_row, whole.splitlines())


def _row(line: bytes) -> Row | None:
    try:
        found = json.loads(line) if len(line) <= _LONGEST else None
    except (ValueError, RecursionError):
        return None
    return found if isinstance(found, dict) else None
