"""The messages of a session on disk. Memory holds only the places of the messages.

A session is read several times, in order, and may be larger than memory. So its messages are in an unnamed temporary
file, and are loaded one at a time.
"""

import pickle
import weakref
from collections.abc import Sequence
from dataclasses import dataclass
from tempfile import SpooledTemporaryFile
from typing import Final, overload

from pagein.model.messages import Message

_IN_MEMORY: Final = 8 * 1024 * 1024  # bytes; most sessions never reach the disk


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class StoredMessage:
    """The place of a stored message."""

    shelf: "_Shelf"
    start: int
    size: int

    def get(self) -> Message:
        """Return the message, equal to the stored one."""
        return self.shelf.get(self)


class Messages(Sequence[Message]):
    """Stored messages in order. Reading one costs its size."""

    def __init__(self) -> None:
        self._shelf = _Shelf()
        self._kept: list[StoredMessage] = []

    def append(self, message: Message) -> StoredMessage:
        """Store a message after the others."""
        kept = self._shelf.put(message)
        self._kept.append(kept)
        return kept

    def start(self, index: int) -> int:
        """Return the offset of a message, used as its name here."""
        return self._kept[index].start

    @overload
    def __getitem__(self, index: int) -> Message: ...
    @overload
    def __getitem__(self, index: slice) -> list[Message]: ...
    def __getitem__(self, index: int | slice) -> Message | list[Message]:
        if isinstance(index, slice):
            return [kept.get() for kept in self._kept[index]]
        return self._kept[index].get()

    def __len__(self) -> int:
        return len(self._kept)


class _Shelf:
    def __init__(self) -> None:
        self._file = SpooledTemporaryFile(_IN_MEMORY)  # noqa: SIM115 - open as long as a message may be read
        weakref.finalize(self, self._file.close)
        self._end = 0
        # The blocks of a message are read one after the other.
        self._latest: tuple[int, Message] | None = None

    def put(self, message: Message) -> StoredMessage:
        raw = pickle.dumps(message, pickle.HIGHEST_PROTOCOL)
        self._file.seek(self._end)
        self._file.write(raw)
        kept = StoredMessage(self, self._end, len(raw))
        self._end += len(raw)
        return kept

    def get(self, kept: StoredMessage) -> Message:
        if self._latest is None or self._latest[0] != kept.start:
            self._file.seek(kept.start)
            message: Message = pickle.loads(self._file.read(kept.size))  # noqa: S301 - our own bytes, in a file without a name
            self._latest = kept.start, message
        return self._latest[1]
