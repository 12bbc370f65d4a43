"""In-memory store with maintenance operations, for tests of export, import, check and collection."""

import contextlib
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from pagein.errors import StoreError
from pagein.model.codec import decode_entry, encode_entry
from pagein.model.derived_versions import ARCHIVED, INDEXER
from pagein.model.entries import Entry, EntryId
from pagein.model.links import LastingLink
from pagein.model.messages import UnreadableLine
from pagein.model.names import ContentHash
from pagein.model.objects import ObjectId, StoredObject
from pagein.model.store_inventory import JournalLine, KeptSession
from pagein.model.text_removal import SessionGroup, Tombstone
from pagein.model.versions import Version
from pagein.model.writes import Write
from pagein.policy.privacy.erased_texts import ErasedTexts
from pagein.policy.privacy.erasure import EntryRedaction
from pagein.testing.memory_journals import MemoryJournals


class MemoryUpkeep(MemoryJournals):
    """An in-process WholeStore without persistence. Has no clock, so the last use of a session is unknown."""

    def __init__(self) -> None:
        super().__init__()
        self._has_key = False
        self._ended: dict[str, int] = {}
        self._places: dict[tuple[str, EntryId], int] = {}
        self._last_place = 0
        self._layers: dict[str, tuple[int, str]] = {}
        self._tombstones: dict[Tombstone, int] = {}

    def secret(self) -> bytes:
        self._has_key = True
        return super().secret()

    def put(self, content: bytes, name: ContentHash | None = None) -> ContentHash:
        if self._erased().finds(content.decode("utf-8", "replace")):
            raise StoreError("it holds a text that was ordered to be forgotten, and is not stored")
        return super().put(content, name)

    def bury(self, tombstones: Iterable[Tombstone]) -> None:
        with self._change(self._tombstones):
            self._tombstones |= dict.fromkeys(tombstones, self.forgettings() + 1)

    def tombstones(self) -> tuple[Tombstone, ...]:
        return tuple(self._tombstones)

    def forgettings(self) -> int:
        return max(self._tombstones.values(), default=0)

    def _erased(self) -> ErasedTexts:
        return ErasedTexts(self._secret, self.tombstones())

    def append(self, session: str, entries: Sequence[Entry]) -> int:
        with self._writer:
            if self._tombstones:
                erased = self._erased()
                redaction = EntryRedaction(erased.key, erased.finds, {})
                entries = [
                    entry
                    for one in entries
                    if isinstance(entry := decode_entry(redaction.line(encode_entry(one))), Entry)
                ]
            super().append(session, entries)
            self._ended.pop(session, None)
            for entry in entries:
                if (session, entry.id) not in self._places:
                    self._last_place += 1
                    self._places[session, entry.id] = self._last_place
            order = self._order[session]
            return self._places[session, order[-1].id] if entries and order else 0

    def news(self, session: str, after: int = 0) -> Iterator[tuple[int, Entry | UnreadableLine]]:
        placed = [(self._places[session, entry.id], entry) for entry in self._order.get(session, ())]
        return iter([(place, entry) for place, entry in placed if place > after])

    def has_place(self, session: str, place: int) -> bool:
        return any(self._places[session, entry.id] == place for entry in self._order.get(session, ()))

    def layer(self, name: str) -> tuple[int, str] | None:
        return self._layers.get(name)

    def set_layer(self, name: str, place: int, version: str) -> None:
        with self._change(self._layers):
            self._layers[name] = place, version

    def places(self, after: int, most: int) -> Sequence[tuple[int, str]]:
        found = sorted((place, session) for (session, _), place in self._places.items() if place > after)
        return found[:most]

    def last_place(self) -> int:
        return self._last_place

    @contextlib.contextmanager
    def snapshot(self) -> Iterator[None]:
        with self._writer:
            yield

    def sessions(self) -> Sequence[KeptSession]:
        names = {*self._leaves, *(one.origin.session for one in self._objects.values())}
        sizes = {name: sum(len(encode_entry(entry)) for entry in self._order.get(name, ())) for name in names}
        return tuple(
            KeptSession(name, self.leaf(name), None, name in self._ended, sizes[name]) for name in sorted(names)
        )

    def paged_objects(self) -> Iterator[StoredObject]:
        return iter([self._objects[name] for name in sorted(self._objects)])

    def blob_sizes(self) -> Mapping[ContentHash, int]:
        return {name: len(content) for name, content in self._blobs.items()}

    def journal_lines(self, after: int = 0) -> Iterator[JournalLine]:
        lines = (
            JournalLine(self._places[session, entry.id], session, encode_entry(entry), id=entry.id)
            for session, order in self._order.items()
            for entry in order
        )
        return iter(sorted((line for line in lines if line.place > after), key=lambda line: line.place))

    def adopt_secret(self, secret: bytes) -> bool:
        if not self._has_key and not self._objects:
            self._secret, self._has_key = secret, True
        return self._secret == secret

    def end_session(self, name: str) -> None:
        self._ended[name] = 1

    def stand(self, session: str, leaf: EntryId) -> None:
        with self._change(self._leaves):
            self._leaves[session] = leaf

    def put_entry(self, session: str, place: int, entry: Entry) -> None:
        with self._change(self._journals, self._order, self._places):
            order = [one for one in self._order.get(session, ()) if self._places[session, one.id] != place]
            self._places[session, entry.id] = place
            self._last_place = max(self._last_place, place)
            self._order[session] = sorted([*order, entry], key=lambda one: self._places[session, one.id])
            self._journals[session] = {one.id: one for one in self._order[session]}

    def requests(self) -> Iterator[tuple[str, int]]:
        return iter([(request, one.version.sequence) for request, one in sorted(self._requests.items())])

    def put_version(self, write: Write, number: int) -> bool:
        """Return False: an in-memory store never loses a version, so there is no gap to fill."""
        del write, number
        return False

    def lasting_links(self, object_id: str) -> Sequence[LastingLink]:
        return tuple(
            LastingLink(one.path, one.reference, version.sequence, version.sequence + 1, one.resolved)
            for version in self.history(object_id)
            for one in self.references(version)
        )

    def bundle_more(self, *, rest: bool = False) -> int:
        del rest
        return 0

    def drop_objects_of(self, *writers: tuple[str, str | None]) -> int:
        meant = {(kind, reason) for kind, reason in writers}
        with self._change(self._history, self._requests):
            names = [
                name
                for name, history in self._history.items()
                if all(
                    {(one.writer.kind, None), (one.writer.kind, one.writer.reason)} & meant
                    and (one.writer.session is None or one.writer.session in self._leaves)
                    for one in history
                )
            ]
            for name in names:
                del self._history[name]
            kinds = {kind for kind, reason in writers if reason is None}
            for name, history in self._history.items():
                kept = [
                    one for one in history if one.writer.kind not in kinds or one.writer.session not in self._leaves
                ]
                if len(kept) < len(history):
                    self._history[name] = [replace(one, number=number) for number, one in enumerate(kept, 1)]
            self._drop_answers()
        return len(names)

    def _drop_answers(self) -> None:
        """Drop the answers to requests with versions that were dropped."""
        left = {one.sequence: one for history in self._history.values() for one in history}
        for request, earlier in list(self._requests.items()):
            if earlier.version.sequence in left:
                self._requests[request] = replace(earlier, version=left[earlier.version.sequence])
            else:
                del self._requests[request]

    def sessions_together(self, sessions: Collection[str]) -> SessionGroup | None:
        group, names = set(sessions), set[str]()
        while more := self._names_of(group) - names:
            if any(one.writer.kind != INDEXER or one.writer.session is None for one in self._versions_of(more)):
                return None
            names |= more
            referrers = {one.source.id for name in more for one in self.backlinks(name, ever=True)}
            group.update(one.writer.session for one in self._versions_of(more | referrers) if one.writer.session)
        notes = tuple(sorted(name for name in names if self._history[name][-1].type == "note"))
        return SessionGroup(frozenset(group), frozenset(names), notes)

    def drop_objects_of_sessions(self, sessions: Collection[str], most: int) -> int:
        names = sorted(self._names_of(sessions))[:most]
        with self._change(self._history, self._requests):
            for name in names:
                del self._history[name]
            self._drop_answers()
        return len(names)

    def _names_of(self, sessions: Collection[str]) -> set[str]:
        return {
            name for name, history in self._history.items() if any(one.writer.session in sessions for one in history)
        }

    def _versions_of(self, names: Collection[str]) -> Iterator[Version]:
        return (one for name in names for one in self._history[name])

    def log(self, after: int = 0, limit: int | None = None) -> Sequence[Version]:
        there = [one for history in self._history.values() for one in history if one.sequence > after]
        return tuple(sorted(there, key=lambda one: one.sequence)[: None if limit is None else max(limit, 0)])

    def drop_sessions(self, names: Sequence[str]) -> None:
        held: tuple[dict[str, Any], ...] = (self._journals, self._order, self._leaves, self._ended)
        with self._change(*held, self._places, self._history, self._requests):
            for name in names:
                for one in held:
                    one.pop(name, None)
                self._archive(name)
                for key in [key for key in self._places if key[0] == name]:
                    del self._places[key]
            self._drop_answers()  # those that stay have the versions as they are now

    def _archive(self, session: str) -> None:
        for name, history in self._history.items():
            self._history[name] = [
                replace(one, writer=replace(one.writer, kind=ARCHIVED))
                if (one.writer.kind, one.writer.session) == (INDEXER, session)
                else one
                for one in history
            ]

    def drop_objects(self, object_ids: Sequence[ObjectId]) -> None:
        with self._change(self._objects):
            for one in object_ids:
                self._objects.pop(one, None)

    def drop_blobs(self, names: Sequence[ContentHash]) -> int:
        with self._change(self._blobs):
            return sum(self._blobs.pop(name, None) is not None for name in names)

    def shrink(self) -> None:
        """Do nothing: the interpreter frees the memory."""

    def faults(self) -> Sequence[str]:
        return ()

    @contextlib.contextmanager
    def _change(self, *held: dict[Any, Any]) -> Iterator[None]:
        """Record the previous state, so that a change is rolled back with the surrounding transaction."""
        with self._writer:
            before = [dict(one) for one in held]
            yield
            self._undone_by(lambda: _restore(held, before))


def _restore(held: Sequence[dict[Any, Any]], before: Sequence[dict[Any, Any]]) -> None:
    for one, was in zip(held, before, strict=True):
        one.clear()
        one.update(was)
