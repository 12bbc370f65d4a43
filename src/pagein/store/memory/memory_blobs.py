"""In-memory blobs, and the write transaction shared by the in-memory store."""

import contextlib
import secrets
import threading
from collections.abc import Callable, Iterator, Sequence
from functools import partial

from pagein.errors import DamagedBlob, MissingBlob
from pagein.model.names import ContentHash
from pagein.model.objects import ObjectId, StoredObject
from pagein.model.text_removal import Tombstone


class MemoryBlobs:
    """An in-process BlobStore without persistence."""

    def __init__(self) -> None:
        self._blobs: dict[ContentHash, bytes] = {}
        self._objects: dict[ObjectId, StoredObject] = {}
        self._secret = secrets.token_bytes(32)
        self._writer = threading.RLock()
        self._undo: list[Callable[[], object]] | None = None

    def put(self, content: bytes, name: ContentHash | None = None) -> ContentHash:
        name = name or ContentHash.of(content)
        with self._writer:
            if name not in self._blobs:
                self._blobs[name] = content
                self._undone_by(lambda: self._blobs.pop(name, None))
        return name

    def prepare(self, content: bytes, name: ContentHash) -> None:
        """Do nothing: bytes in memory are not packed."""

    def put_many(self, contents: Sequence[bytes]) -> tuple[ContentHash, ...]:
        return tuple(self.put(content) for content in contents)

    def put_objects(self, objects: Sequence[tuple[StoredObject, bytes]]) -> frozenset[ObjectId]:
        taken: set[ObjectId] = set()
        with self._writer:
            for stored, content in objects:
                first = self._objects.get(stored.id)
                if first is None:
                    first = self._objects[stored.id] = stored
                    self._undone_by(partial(self._objects.pop, stored.id))
                if (first.content, first.workspace) == (stored.content, stored.workspace):
                    self.put(content)
                else:
                    taken.add(stored.id)
        return frozenset(taken)

    def get(self, name: ContentHash) -> bytes:
        try:
            content = self._blobs[name]
        except KeyError:
            raise MissingBlob(f"the store has nothing under {name}") from None
        if ContentHash.of(content) != name:
            raise DamagedBlob(f"the bytes under {name} are not the ones that were stored")
        return content

    def has(self, name: ContentHash) -> bool:
        return name in self._blobs

    def tombstones(self) -> tuple[Tombstone, ...]:
        return ()

    def forgettings(self) -> int:
        return 0

    def names(self) -> Iterator[ContentHash]:
        with self._writer:
            return iter(sorted(self._blobs))

    def figures(self) -> tuple[int, int]:
        with self._writer:
            return len(self._blobs), sum(map(len, self._blobs.values()))

    def find(self, object_id: ObjectId) -> StoredObject | None:
        return self._objects.get(object_id)

    def elsewhere(self, object_id: ObjectId) -> bool:  # noqa: ARG002 -- memory has no neighbours
        return False

    def secret(self) -> bytes:
        return self._secret

    @contextlib.contextmanager
    def exclusive(self) -> Iterator[None]:
        with self._writer:
            outermost = self._undo is None
            self._undo = [] if self._undo is None else self._undo
            try:
                yield
            except BaseException:
                while outermost and self._undo:
                    self._undo.pop()()
                raise
            finally:
                if outermost:
                    self._undo = None

    def _undone_by(self, step: Callable[[], object]) -> None:
        if self._undo is not None:
            self._undo.append(step)

    def close(self) -> None:
        """Do nothing: the garbage collector frees the memory."""
