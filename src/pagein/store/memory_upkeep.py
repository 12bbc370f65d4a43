"""The store in memory, opened to be looked after: the twin of the real ones, for tests of export, import, check and collection."""

import contextlib
from collections.abc import Iterator, Mapping, Sequence

from pagein.model.codec import encode_entry
from pagein.model.entries import EntryId
from pagein.model.holdings import JournalLine, KeptSession
from pagein.model.names import ContentHash
from pagein.model.objects import ObjectId, StoredObject
from pagein.store.memory import MemoryStore


class MemoryUpkeep(MemoryStore):
    """A WholeStore that dies with its process. It has no clock, so it cannot tell when a session was touched."""

    def __init__(self) -> None:
        super().__init__()
        self._own_secret = False
        self._ended: dict[str, int] = {}

    def secret(self) -> bytes:
        self._own_secret = True
        return super().secret()

    @contextlib.contextmanager
    def snapshot(self) -> Iterator[None]:
        with self._writer:
            yield

    def sessions(self) -> Sequence[KeptSession]:
        names = {*self._leaves, *(one.origin.session for one in self._objects.values())}
        sizes = {name: sum(len(encode_entry(entry)) for entry in self._order.get(name, ())) for name in names}
        return tuple(
            KeptSession(name, self.leaf(name), None, self._has_ended(name), sizes[name]) for name in sorted(names)
        )

    def paged_objects(self) -> Iterator[StoredObject]:
        return iter([self._objects[name] for name in sorted(self._objects)])

    def blob_sizes(self) -> Mapping[ContentHash, int]:
        return {name: len(content) for name, content in self._blobs.items()}

    def journal_lines(self, after: int = 0) -> Iterator[JournalLine]:
        every = [(session, entry) for session, order in self._order.items() for entry in order]
        for place, (session, entry) in enumerate(every[after:], start=after + 1):
            yield JournalLine(place, session, encode_entry(entry))

    def adopt_secret(self, secret: bytes) -> bool:
        if not self._own_secret and not self._objects:
            self._secret, self._own_secret = secret, True
        return self._secret == secret

    def end_session(self, name: str) -> None:
        self._ended[name] = len(self._order.get(name, ()))

    def stand(self, session: str, leaf: EntryId) -> None:
        if session in self._leaves:
            before = self._leaves[session]
            self._leaves[session] = leaf
            self._undone_by(lambda: self._stand(session, before))

    def drop_sessions(self, names: Sequence[str]) -> None:
        for name in names:
            for held in (self._journals, self._order, self._leaves, self._ended):
                held.pop(name, None)

    def drop_entries(self, session: str, places: Sequence[int]) -> None:
        gone = {line.place for line in self.journal_lines() if line.session == session and line.place in set(places)}
        kept = [
            entry
            for line, entry in zip(self._lines_of(session), self._order.get(session, []), strict=True)
            if line not in gone
        ]
        self._order[session] = kept
        self._journals[session] = {entry.id: entry for entry in kept}

    def drop_objects(self, object_ids: Sequence[ObjectId]) -> None:
        for one in object_ids:
            self._objects.pop(one, None)

    def drop_blobs(self, names: Sequence[ContentHash]) -> int:
        return sum(self._blobs.pop(name, None) is not None for name in names)

    def shrink(self) -> None:
        """Memory goes back by itself."""

    def faults(self) -> Sequence[str]:
        return ()

    def _has_ended(self, name: str) -> bool:
        return self._ended.get(name) == len(self._order.get(name, ()))

    def _lines_of(self, session: str) -> list[int]:
        return [line.place for line in self.journal_lines() if line.session == session]
