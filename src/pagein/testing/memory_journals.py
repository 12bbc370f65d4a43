"""In-memory store with journals, for tests. Keeps every promise of the real store except survival."""

from collections.abc import Iterator, Sequence
from itertools import islice

from pagein.model.entries import Entry, EntryId, is_bridge
from pagein.model.messages import UnreadableLine
from pagein.store.memory.memory_store import MemoryStore


class MemoryJournals(MemoryStore):
    """An in-process BlobStore, ObjectStore and JournalStore without persistence."""

    def __init__(self) -> None:
        super().__init__()
        self._journals: dict[str, dict[EntryId, Entry]] = {}
        self._order: dict[str, list[Entry]] = {}
        self._leaves: dict[str, EntryId] = {}
        self._latest: dict[str, None] = {}

    def append(self, session: str, entries: Sequence[Entry]) -> int:
        with self._writer:
            journal, order = self._journals.setdefault(session, {}), self._order.setdefault(session, [])
            for entry in entries:
                if entry.id in journal and is_bridge(journal[entry.id]):
                    self._replace(journal, order, entry)
                elif entry.id not in journal:
                    journal[entry.id] = entry
                    order.append(entry)
                    self._undone_by(lambda: journal.pop(order.pop().id))
            if entries:
                self._latest.pop(session, None)
                self._latest[session] = None
                before = self._leaves.get(session)
                self._leaves[session] = entries[-1].id
                self._undone_by(lambda: self._leaves.pop(session) if before is None else self._stand(session, before))
            return len(order) if entries else 0

    def entries(self, session: str) -> Iterator[Entry | UnreadableLine]:
        return iter(tuple(self._order.get(session, ())))

    def news(self, session: str, after: int = 0) -> Iterator[tuple[int, Entry | UnreadableLine]]:
        order = self._order.get(session, [])
        return iter([(place, entry) for place, entry in enumerate(islice(order, after, None), start=after + 1)])

    def has_place(self, session: str, place: int) -> bool:
        return 0 < place <= len(self._order.get(session, ()))

    def leaf(self, session: str) -> EntryId | None:
        return self._leaves.get(session)

    def latest(self, most: int) -> Sequence[str]:
        return [name for name in reversed(self._latest) if name in self._leaves][:most]

    def _replace(self, journal: dict[EntryId, Entry], order: list[Entry], entry: Entry) -> None:
        before = journal[entry.id]
        place = order.index(before)
        journal[entry.id] = order[place] = entry

        def undo() -> None:
            journal[entry.id] = order[place] = before

        self._undone_by(undo)

    def _stand(self, session: str, leaf: EntryId) -> None:
        self._leaves[session] = leaf
