"""Interfaces to a store, as the engine uses it."""

from collections.abc import Collection, Iterator, Sequence
from contextlib import AbstractContextManager
from typing import Protocol

from pagein.errors import StoreError
from pagein.model.entries import Entry, EntryId
from pagein.model.links import Backlink, Link, Resolution, UnresolvedReference
from pagein.model.messages import UnreadableLine
from pagein.model.names import ContentHash
from pagein.model.objects import ObjectId, StoredObject
from pagein.model.references import Reference
from pagein.model.text_removal import SessionGroup, Tombstone
from pagein.model.values import Value
from pagein.model.versions import Version
from pagein.model.writes import Outcome, Query, Write


class BlobStore(Protocol):
    """Stores bytes under the hash of their content, and objects: ids under which evicted content is recalled.

    Called by sessions from several threads, and by several processes on one store. When a `put` returns, the stored content
    survives the death of the process at any point (law 1). Puts are idempotent: storing known content again changes
    nothing. No other order is promised. Unreferenced bytes may be collected at any time: store the bytes and the record that
    refers to them within one `exclusive`. The only exception is StoreError, for every failure of the store.
    """

    def put(self, content: bytes, name: ContentHash | None = None) -> ContentHash:
        """Store bytes and return their hash. name: the hash, where the caller has computed it from these bytes."""
        ...

    def prepare(self, content: bytes, name: ContentHash) -> None:
        """Compress bytes for a later `put`.

        For large bytes, while something else has to be waited for. What is prepared serves the next `put` under this hash,
        and stores nothing by itself.
        """
        ...

    def put_many(self, contents: Sequence[bytes]) -> tuple[ContentHash, ...]:
        """Store several contents in one transaction: every content or no content."""
        ...

    def put_objects(self, objects: Sequence[tuple[StoredObject, bytes]]) -> frozenset[ObjectId]:
        """Store objects with their bytes in one transaction. A known id keeps its first record.

        Returns the ids whose first record has other content or another workspace (32 bits do collide). These objects
        are not stored, and their ids must not be used.
        """
        ...

    def get(self, name: ContentHash) -> bytes:
        """Return the bytes under this hash, verified by hashing. Raises MissingBlob or DamagedBlob."""
        ...

    def has(self, name: ContentHash) -> bool:
        """Return whether the store has bytes under this hash, without verifying the bytes."""
        ...

    def names(self) -> Iterator[ContentHash]:
        """Return the hashes of every blob, in an order in which they are read fast, as of the beginning of the iteration."""
        ...

    def figures(self) -> tuple[int, int]:
        """Return the number of blobs and their stored size in bytes."""
        ...

    def find(self, object_id: ObjectId) -> StoredObject | None:
        """Return the record of an object of any workspace, or None."""
        ...

    def elsewhere(self, object_id: ObjectId) -> bool:
        """Return whether a neighbouring store knows this id, for the message about an object that cannot be recalled.
        May always be False.
        """
        ...

    def secret(self) -> bytes:
        """Return the key of this store's object ids: 32 random bytes, created once, readable by the user alone."""
        ...

    def tombstones(self) -> tuple[Tombstone, ...]:
        """Return the keyed digests of erased texts.

        The store refuses bytes with an erased text (StoreError), and stores journal entries without the text.
        """
        ...

    def forgettings(self) -> int:
        """Return the number of erasures so far. When the number grows, a cache of store content is outdated."""
        ...

    def close(self) -> None:
        """Close files. Further calls do nothing."""
        ...


class JournalStore(Protocol):
    """Stores the entries of sessions, in append order.

    Called by the engine, from one thread per session, possibly from several processes. A known entry stays
    unchanged. When `append` returns, the entries survive the death of the process. Raises StoreError.

    The session's leaf is the last entry of the last `append`, also if that entry was known already: repeating an entry after going
    back moves the session there. A `bridge`, which fills the place of a lost entry, does not count as known: the repeated entry
    replaces the bridge.
    """

    def append(self, session: str, entries: Sequence[Entry]) -> int:
        """Append entries in one transaction.

        Return the last place of the session (see `news`), 0 if `entries` is empty.
        """
        ...

    def entries(self, session: str) -> Iterator[Entry | UnreadableLine]:
        """Return every entry of a session, parents first. An undecodable entry comes as UnreadableLine."""
        ...

    def news(self, session: str, after: int = 0) -> Iterator[tuple[int, Entry | UnreadableLine]]:
        """Return the entries after the place `after`, each with its place.

        Places only grow. Cheap if there is nothing new.
        """
        ...

    def has_place(self, session: str, place: int) -> bool:
        """Return whether the session has an entry at this place. One that it had is gone if its journal was removed."""
        ...

    def leaf(self, session: str) -> EntryId | None:
        """Return the session's leaf, or None if nothing was stored for the session."""
        ...

    def latest(self, most: int) -> Sequence[str]:
        """Return the names of the most recently appended sessions, up to a limit, the latest first."""
        ...

    def exclusive(self) -> AbstractContextManager[None]:
        """Return a context in which only the current thread of this process writes to the store.

        Everything stored within, blobs included, is committed together at the end, or rolled back if an exception ends
        the context. Entering waits for the current writer, and raises StoreError after too long a wait.
        """
        ...


class SnapshotStore(Protocol):
    """Stores one state snapshot per session beside its journal, for a faster resumption of the session.

    Called from several threads, and by several processes. Losing a snapshot is harmless at any time. A snapshot must be deleted when an
    entry of its session is changed or dropped. Raises StoreError.
    """

    def keep_snapshot(self, session: str, place: int, version: str, data: bytes) -> None:
        """Store a snapshot in place of the previous snapshot.

        place: of the newest entry in the snapshot
        version: of the format, which a reader must know
        """
        ...

    def load_snapshot(self, session: str, version: str) -> tuple[int, bytes] | None:
        """Return the snapshot of a session with its place.

        Return None if the snapshot is missing, damaged or of another version.
        """
        ...

    def entry(self, session: str, name: EntryId) -> Entry | UnreadableLine | None:
        """Return an entry of a session by name, or None."""
        ...

    def entries(self, session: str) -> Iterator[Entry | UnreadableLine]:
        """Return every entry of a session, parents first."""
        ...

    def exclusive(self) -> AbstractContextManager[None]:
        """Return a context without other writers (see `JournalStore.exclusive`)."""
        ...


class LayerStore(Protocol):
    """Stores how far derived layers have followed the journals of all sessions.

    A layer is made from the journals alone, so that it can be dropped and made again. Called from several threads, and
    by several processes. Raises StoreError.
    """

    def layer(self, name: str) -> tuple[int, str] | None:
        """Return the place of the last entry in a layer, with the version of the layer's form; None if there is none."""
        ...

    def set_layer(self, name: str, place: int, version: str) -> None:
        """Store the place of the last entry in a layer."""
        ...

    def places(self, after: int, most: int) -> Sequence[tuple[int, str]]:
        """Return the places of the oldest entries after a place, up to a limit, each with its session.

        Places are those of `JournalStore.news`. They become visible in ascending order.
        """
        ...

    def last_place(self) -> int:
        """Return the place of the newest entry; 0 for a store without entries."""
        ...

    def bundle_more(self, *, rest: bool = False) -> int:
        """Store some blobs, lines or records that are alone together in less room, in a short transaction, and return how many.

        0 if there are too few. No answer changes; meant for the pauses between calls.

        rest: also a few, because no more follow soon
        """
        ...

    def sessions_together(self, sessions: Collection[str]) -> SessionGroup | None:
        """Return a group with these sessions, to be followed again together.

        None if a person or another writer has a part in its objects, so that its journals alone do not tell them.
        """
        ...

    def drop_objects_of_sessions(self, sessions: Collection[str], most: int) -> int:
        """Delete objects with a version that follows from the journal of one of some sessions, and return their number.

        most: how many. Their blobs stay.
        """
        ...

    def drop_objects_of(self, *writers: tuple[str, str | None]) -> int:
        """Delete every object whose versions have only these writers, and return the number of deleted objects.

        An object with a version of another writer, or of a session without a journal, stays. It only loses its versions
        of writers with any reason, of sessions with a journal; the others are numbered anew.

        writers: kinds of writers, each with a reason; None for any reason.

        Their numbers in the order of all versions are not used again. Their blobs stay.
        """
        ...


class ObjectStore(Protocol):
    """Stores objects (files, tool calls, chats, notes, ...) in every version, and the references between them.

    Called from several threads, and by several processes and machines on one store. When `write` returns `Written`, the version
    survives the death of the process. Versions are immutable: no method changes or removes a version, and a deletion is a version too.
    A version's number counts within its object, its sequence over the whole store; both grow in the order in which versions
    become visible, without gaps, and they alone order anything. Times are those of the writers, and may go backwards.

    Answers are as of the moment of the call. Only `content`, `additional` and `load` read content. The only exception is StoreError, for every
    failure of the store; a record or content that differs from the stored bytes raises DamagedBlob.
    """

    def write(self, write: Write) -> Outcome:
        """Create a version in one transaction. The first matching rule of this list decides the answer:

        1. a `session` object without a `session_id` in its metadata: refused, `invalid_session_id`
        2. the request was carried out before: with the same draft, answered again as then; with another, `request_reused`
        3. `expected` is not the number of the newest version, or this version has a carried field otherwise:
           `version_conflict`
        4. the object is of another type: `type_changed`
        5. another object's newest version has the nickname: `nickname_taken`
        6. the newest version has the same object hash: no version is made, `unchanged`
        7. the version is made, as `created` or `updated`. References to missing objects are stored, and resolve once the object exists.
        """
        ...

    def answered(self, request: str) -> Version | None:
        """Return the version in the answer to an earlier write with this request id, or None."""
        ...

    def current(self, name: str) -> Version | None:
        """Return the newest version of the object with this id, otherwise of the object with this nickname.

        May be a deletion.
        """
        ...

    def version(self, object_id: str, number: int) -> Version | None:
        """Return a version by its number within the object."""
        ...

    def as_of(self, object_id: str, at: float) -> Version | None:
        """Return the latest version at or before a time, of several at the same time the one with the highest number.

        Versions may be written out of the order of their times, as when old sessions are taken in. Return None if the
        object did not exist yet.
        """
        ...

    def history(self, object_id: str) -> Sequence[Version]:
        """Return every version of an object, oldest first; empty for an unknown object."""
        ...

    def latest_versions(self, object_id: str, most: int | None = None) -> Sequence[Version]:
        """Return the latest versions of an object by their times, the latest first, at most so many.

        Of several at the same time, the one with the highest number comes first.
        """
        ...

    def objects(self, query: Query) -> Sequence[Version]:
        """Return the newest versions of the objects matching the query, in its order. Reads no content."""
        ...

    def log(self, after: int = 0, limit: int | None = None) -> Sequence[Version]:
        """Return versions of every object with a sequence above `after`, oldest first.

        A reader who remembers the last sequence misses no version.
        """
        ...

    def content(self, version: Version) -> str | None:
        """Return the content of a version, verified by hash; None for a version without content."""
        ...

    def additional(self, version: Version, name: str) -> Value:
        """Return an additional field of a version, verified by its hash.

        Return None if the version has no field of this name.
        """
        ...

    def load(self, names: Sequence[ContentHash]) -> Sequence[bytes | StoreError]:
        """Return the bytes of contents and additional fields, each verified by its hash; the failure in place of what is
        missing or damaged.

        Cheaper than one by one: what is stored together is read once.
        """
        ...

    def resolve(self, reference: Reference) -> Resolution | UnresolvedReference:
        """Return the current target of a reference.

        Dynamic: the newest version by id, otherwise by nickname. Static: the version as of the pinned time if its hashes match the pinned
        hashes, otherwise the version of the object with the pinned object hash. Never any other version.
        """
        ...

    def references(self, version: Version) -> Sequence[Link]:
        """Return the references in a version, sorted by `place_order` of their places.

        Sources are metadata, additional fields and provenance.
        """
        ...

    def backlinks(
        self, target: str, *, pinned: ContentHash | None = None, ever: bool = False, most: int | None = None
    ) -> Sequence[Backlink]:
        """Return references to an object (by id or nickname), from newest versions, or with `ever` from every version.

        pinned: only static references to the version with this object hash
        most: at most so many

        A dynamic reference by nickname counts for the nickname's current holder. Works for targets that do not exist
        yet. Sorted by the source's time, the latest first, then by its sequence, highest first, then by place.
        """
        ...

    def contents(self, after: int = 0) -> tuple[frozenset[ContentHash], int]:
        """Return the hashes of the blobs that versions need, and the sequence of the last version.

        Garbage collection must keep these blobs.

        after: a sequence; only later versions count
        """
        ...

    def exclusive(self) -> AbstractContextManager[None]:
        """Return a context without other writers.

        Read, decide and write in a single transaction, committed or rolled back as a whole.
        """
        ...

    def close(self) -> None:
        """Close files and connections. Further calls do nothing."""
        ...
