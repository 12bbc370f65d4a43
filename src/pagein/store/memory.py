"""The store in memory: a twin of the real one for tests and replays. It keeps every promise but survival."""

import secrets
from collections.abc import Iterator, Sequence

from pagein.errors import DamagedBlob, MissingBlob
from pagein.model.entries import Entry, EntryId
from pagein.model.messages import Unreadable
from pagein.model.names import ContentHash
from pagein.model.objects import ObjectId, StoredObject


class MemoryStore:
    """A BlobStore and JournalStore that dies with its process."""

    def __init__(self) -> None:
        self._blobs: dict[ContentHash, bytes] = {}
        self._objects: dict[ObjectId, StoredObject] = {}
        self._secret = secrets.token_bytes(32)
        self._journals: dict[str, dict[EntryId, Entry]] = {}
        self._leaves: dict[str, EntryId] = {}

    def put(self, content: bytes) -> ContentHash:
        name = ContentHash.of(content)
        self._blobs.setdefault(name, content)
        return name

    def put_many(self, contents: Sequence[bytes]) -> tuple[ContentHash, ...]:
        return tuple(self.put(content) for content in contents)

    def put_objects(self, objects: Sequence[tuple[StoredObject, bytes]]) -> frozenset[ObjectId]:
        taken: set[ObjectId] = set()
        for stored, content in objects:
            first = self._objects.setdefault(stored.id, stored)
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

    def names(self) -> Iterator[ContentHash]:
        return iter(sorted(self._blobs))

    def find(self, object_id: ObjectId) -> StoredObject | None:
        return self._objects.get(object_id)

    def elsewhere(self, object_id: ObjectId) -> bool:  # noqa: ARG002 -- memory has no neighbours
        return False

    def secret(self) -> bytes:
        return self._secret

    def append(self, session: str, entries: Sequence[Entry]) -> None:
        journal = self._journals.setdefault(session, {})
        for entry in entries:
            journal.setdefault(entry.id, entry)
            self._leaves[session] = entry.id

    def entries(self, session: str) -> Iterator[Entry | Unreadable]:
        return iter(tuple(self._journals.get(session, {}).values()))

    def news(self, session: str, after: int = 0) -> Iterator[tuple[int, Entry | Unreadable]]:
        journal = tuple(self._journals.get(session, {}).values())
        return ((place, journal[place - 1]) for place in range(after + 1, len(journal) + 1))

    def leaf(self, session: str) -> EntryId | None:
        return self._leaves.get(session)

    def close(self) -> None:
        """Nothing is held that the garbage collector does not know of."""
