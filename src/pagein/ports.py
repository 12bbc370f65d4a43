"""What pagein needs from outside, as Protocols whose docstrings are contracts."""

from collections.abc import Iterable, Iterator, Sequence
from contextlib import AbstractContextManager
from typing import Literal, Protocol

from pagein.model.documents import Document, Located
from pagein.model.entries import Entry, EntryId
from pagein.model.messages import Unreadable
from pagein.model.names import ContentHash
from pagein.model.objects import ObjectId, StoredObject


class TokenCounter(Protocol):
    """Estimates how many tokens a provider counts for a text.

    Called for each tool result as it enters, from any thread. Must be fast (a few ns per character), must not raise, and
    must give the same answer for the same text until it is calibrated anew. `kind` is `result` for text of a tool.
    """

    def count(self, text: str, kind: Literal["result", "said", "user", "system"] = "result") -> float:
        """Tokens of this text."""
        ...


class BlobStore(Protocol):
    """Keeps bytes under the hash of their content, and objects: ids under which paged-out content is recalled.

    Called by sessions from several threads, and by several processes on one store. When a `put` returns, what it stored
    survives the death of the process at any point (law 1). Puts are idempotent: storing again what is there changes
    nothing. Nothing else is promised about order. Raises StoreError for whatever goes wrong on our side, and only that.
    """

    def put(self, content: bytes) -> ContentHash:
        """Store these bytes."""
        ...

    def put_many(self, contents: Sequence[bytes]) -> tuple[ContentHash, ...]:
        """Store all of these in one transaction: all of them or none."""
        ...

    def put_objects(self, objects: Sequence[tuple[StoredObject, bytes]]) -> frozenset[ObjectId]:
        """Store objects with their bytes in one transaction. An id that is there already keeps its first record.

        Returns the ids whose first record names other content or another workspace (32 bits do collide): these are not
        stored, and must not be used.
        """
        ...

    def get(self, name: ContentHash) -> bytes:
        """The bytes under this name, proven by hashing them. Raises MissingBlob or DamagedBlob."""
        ...

    def has(self, name: ContentHash) -> bool:
        """Whether there are bytes under this name. Does not prove them."""
        ...

    def names(self) -> Iterator[ContentHash]:
        """Names of all blobs, in ascending order, as they stood when the iteration began."""
        ...

    def figures(self) -> tuple[int, int]:
        """How many blobs there are, and how many bytes they take as stored."""
        ...

    def find(self, object_id: ObjectId) -> StoredObject | None:
        """The record of an object, of whatever workspace, or None."""
        ...

    def elsewhere(self, object_id: ObjectId) -> bool:
        """Whether a neighbouring store knows this id: asked only to say why an object cannot be recalled. May always be False."""
        ...

    def secret(self) -> bytes:
        """The key of this store's object ids: 32 random bytes, made once, readable by the user alone."""
        ...

    def close(self) -> None:
        """Let go of files. Calling it again does nothing."""
        ...


class JournalStore(Protocol):
    """Keeps the entries of sessions, in the order in which they were appended.

    Called by the engine, from one thread per session, possibly from several processes. An entry that is there already
    is left alone. When `append` returns, the entries survive the death of the process. Raises StoreError.

    The session stands at the last entry of the last `append`, also where that entry was there already: going back and
    saying the same thing again is going there.
    """

    def append(self, session: str, entries: Sequence[Entry]) -> None:
        """Add entries in one transaction."""
        ...

    def entries(self, session: str) -> Iterator[Entry | Unreadable]:
        """All entries of a session, parents first. One that cannot be understood comes as Unreadable."""
        ...

    def news(self, session: str, after: int = 0) -> Iterator[tuple[int, Entry | Unreadable]]:
        """What `entries` gives from behind the place `after` on, each with its place; places only grow. Cheap where there is none."""
        ...

    def leaf(self, session: str) -> EntryId | None:
        """Where the session stands, None where nothing was kept of it."""
        ...

    def exclusive(self) -> AbstractContextManager[None]:
        """A time in which nobody else writes to this store: no other thread, no other process.

        All that is stored within, blobs too, is kept together at its end, or not at all where an exception ends it.
        Entering may take until another writer is done; raises StoreError where that lasts too long.
        """
        ...


class Signal(Protocol):
    """How a caller calls a read off. A `threading.Event` is one. Asked between steps, from the reading thread; must not block."""

    def is_set(self) -> bool:
        """Whether the caller has given up."""
        ...


class Files(Protocol):
    """The files an agent works on, as the engine sees them.

    Called from several threads at once. `locate` and `read` raise BadInput in the words that the model is to see where
    a path or file cannot be used, `read` also Aborted. Nothing is remembered between two calls.
    """

    def locate(self, path: str, *, offset: float | None = None, limit: float | None = None) -> Located:
        """The file that a read call means, and whether its content may be stored. It may be missing."""
        ...

    def read(self, located: Located, signal: Signal | None = None) -> Document:
        """The file's bytes, read once."""
        ...

    def same_file(self, located: Located, among: Iterable[str]) -> str | None:
        """The key among these that names the same file by another way than links (a hard link), None for none."""
        ...
