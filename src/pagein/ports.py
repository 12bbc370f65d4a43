"""What pagein needs from outside, as Protocols whose docstrings are contracts."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Literal, Protocol

from pagein.model.documents import Document, LocatedFile
from pagein.model.entries import Entry, EntryId
from pagein.model.links import Backlink, Link, Resolution, UnresolvedReference
from pagein.model.messages import UnreadableLine
from pagein.model.names import ContentHash
from pagein.model.objects import ObjectId, StoredObject
from pagein.model.references import Reference
from pagein.model.store_listing import JournalLine, KeptSession
from pagein.model.text_removal import PrivateSpan, Retold, Tombstone
from pagein.model.values import Value
from pagein.model.versions import Version
from pagein.model.writes import Outcome, Query, Write


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
    nothing. Nothing else is promised about order. Bytes that nothing refers to may be collected at any time: put them, and keep what
    refers to them, within one `exclusive`. Raises StoreError for whatever goes wrong on our side, and only that.
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

    def tombstones(self) -> tuple[Tombstone, ...]:
        """What is left of texts that were ordered to be forgotten. From then on bytes that hold one are refused with StoreError, and
        entries of journals are kept without it.
        """
        ...

    def forgettings(self) -> int:
        """How often something was ordered to be forgotten: who remembers what this store held must look again when it grows."""
        ...

    def close(self) -> None:
        """Let go of files. Calling it again does nothing."""
        ...


class JournalStore(Protocol):
    """Keeps the entries of sessions, in the order in which they were appended.

    Called by the engine, from one thread per session, possibly from several processes. An entry that is there already
    is left alone. When `append` returns, the entries survive the death of the process. Raises StoreError.

    The session stands at the last entry of the last `append`, also where that entry was there already: going back and
    saying the same thing again is going there. An entry that only stands in the place of a lost one (`bridge`) is not there: what is
    said again takes its place.
    """

    def append(self, session: str, entries: Sequence[Entry]) -> int:
        """Add entries in one transaction. Returns the last place of the session (see `news`), 0 where none were given."""
        ...

    def entries(self, session: str) -> Iterator[Entry | UnreadableLine]:
        """All entries of a session, parents first. One that cannot be understood comes as Unreadable."""
        ...

    def news(self, session: str, after: int = 0) -> Iterator[tuple[int, Entry | UnreadableLine]]:
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


class SnapshotStore(Protocol):
    """Keeps one snapshot of the state of each session beside its journal, for those who take the session up again.

    Called from several threads, and by several processes. A snapshot is lost at any time without harm; it must be lost when an entry of its
    session is changed or dropped. Raises StoreError.
    """

    def keep_snapshot(self, session: str, place: int, version: str, data: bytes) -> None:
        """Keep this in place of the one before. place: of the last entry that it knows of; version: who can read it."""
        ...

    def load_snapshot(self, session: str, version: str) -> tuple[int, bytes] | None:
        """The snapshot of a session with its place; None where there is none of this version, or it is damaged."""
        ...

    def entry(self, session: str, name: EntryId) -> Entry | UnreadableLine | None:
        """One entry of a session, None where there is none of this name."""
        ...

    def entries(self, session: str) -> Iterator[Entry | UnreadableLine]:
        """All entries of a session, parents first."""
        ...

    def exclusive(self) -> AbstractContextManager[None]:
        """A time in which nobody else writes to this store (see `JournalStore.exclusive`)."""
        ...


class ObjectStore(Protocol):
    """Keeps objects (files, tool calls, chats, notes, ...) in all their versions, and the references between them.

    Called from several threads, and by several processes and machines on one store. When `write` returns `Written`, the version
    survives the death of the process. Versions are immutable: nothing here changes or removes one, deletion is a version too.
    A version's number counts within its object, its sequence over the whole store; both grow in the order in which versions
    become visible, without gaps, and they alone order anything. Times are those of the writers, and may go backwards.

    Answers are as of the moment of the call. Nothing but `content` and `additional` reads content. Raises StoreError for whatever
    goes wrong on our side (a record or content that is not what was stored is DamagedBlob), and only that.
    """

    def write(self, write: Write) -> Outcome:
        """Make one version, in one transaction. The first of these that applies is the answer:

        1. a `session` object without a `session_id` in its metadata: refused, `invalid_session_id`
        2. the request was carried out before: with the same draft, answered again as then; with another, `request_reused`
        3. `expected` is not the number of the newest version: `version_conflict`
        4. the object is of another type: `type_changed`
        5. another object's newest version has the nickname: `nickname_taken`
        6. the newest version has the same object hash: no version is made, `unchanged`
        7. the version is made, as `created` or `updated`. References to what is not there are kept and resolve once it is.
        """
        ...

    def current(self, name: str) -> Version | None:
        """The newest version of the object with this id, else of the one that has this nickname now. May be a deletion."""
        ...

    def version(self, object_id: str, number: int) -> Version | None:
        """One version by its number within the object."""
        ...

    def as_of(self, object_id: str, at: float) -> Version | None:
        """The version with the highest number among those with a time of at most `at`; None where the object was not there yet."""
        ...

    def history(self, object_id: str) -> Sequence[Version]:
        """All versions of an object, oldest first; empty where it was never there."""
        ...

    def objects(self, query: Query) -> Sequence[Version]:
        """The newest versions of the objects that the query wants, newest first. Touches no content."""
        ...

    def log(self, after: int = 0, limit: int | None = None) -> Sequence[Version]:
        """Versions of all objects with a sequence above `after`, oldest first. A reader that remembers the last one misses none."""
        ...

    def content(self, version: Version) -> str | None:
        """The content of a version, proven by its hash; None where it is null."""
        ...

    def additional(self, version: Version, name: str) -> Value:
        """An additional field of a version, proven by its hash. None where the version has no such field."""
        ...

    def resolve(self, reference: Reference) -> Resolution | UnresolvedReference:
        """What a reference means now.

        Dynamic: the newest version by id, else by nickname. Static: the version as of the pinned time if its hashes are the pinned
        ones, else whichever version of the object has the pinned object hash. Never another version in its stead.
        """
        ...

    def references(self, version: Version) -> Sequence[Link]:
        """The references in a version (metadata, additional fields, provenance), sorted by `place_order` of their places."""
        ...

    def backlinks(self, target: str, *, pinned: ContentHash | None = None, ever: bool = False) -> Sequence[Backlink]:
        """References to an object (by id or nickname), from newest versions, or with `ever` from all versions.

        pinned: only static ones to the version with this object hash. Dynamic ones by nickname count for who has it now. Works for
        targets that do not exist yet. Sorted by the source's sequence, highest first, then by place.
        """
        ...

    def contents(self) -> Iterator[ContentHash]:
        """Names of all blobs that any version needs, in ascending order, each once: what garbage collection must leave alone."""
        ...

    def exclusive(self) -> AbstractContextManager[None]:
        """A time in which nobody else writes: look, decide and write in one transaction, kept whole or not at all."""
        ...

    def close(self) -> None:
        """Let go of files and connections. Calling it again does nothing."""
        ...


class WholeStore(BlobStore, JournalStore, ObjectStore, Protocol):
    """All that one store keeps, and what it takes to look after it: for export, import, check and garbage collection.

    Called by one thread. Raises StoreError. What is dropped is gone for good: the caller must have shown that nobody needs it.
    """

    def snapshot(self) -> AbstractContextManager[None]:
        """A time in which reads of this thread see the store as it was at its beginning. Holds up no writer of another process."""
        ...

    def sessions(self) -> Sequence[KeptSession]:
        """All sessions of which there is a journal or an object, by name."""
        ...

    def paged_objects(self) -> Iterator[StoredObject]:
        """The records of all objects made by `put_objects`, in ascending order of ids."""
        ...

    def blob_sizes(self) -> Mapping[ContentHash, int]:
        """All blobs, with the bytes that each takes as stored."""
        ...

    def journal_lines(self, after: int = 0) -> Iterator[JournalLine]:
        """The lines of all journals behind a place, in the order in which they were appended; unreadable ones as they are.

        Places are those of `news`.
        """
        ...

    def adopt_secret(self, secret: bytes) -> bool:
        """Make this the key of object ids, where the store has none yet. Whether it is the key now."""
        ...

    def end_session(self, name: str) -> None:
        """Somebody says that this session has ended. Keeping anything more of it takes that back."""
        ...

    def stand(self, session: str, leaf: EntryId) -> None:
        """Have a session stand at one of its entries."""
        ...

    def put_entry(self, session: str, place: int, entry: Entry) -> None:
        """Put an entry at a place that is free, or in the stead of the one that stands there. Does not move the session."""
        ...

    def put_version(self, write: Write, number: int) -> bool:
        """Put back a version of an object that was lost from before others of it, as it was written then. False where it has no place
        there: its number is taken or the newest, or nothing was lost that was written between its neighbours.
        """
        ...

    def drop_sessions(self, names: Sequence[str]) -> None:
        """Forget these sessions and their journals. Objects stay."""
        ...

    def drop_entries(self, session: str, places: Sequence[int]) -> None:
        """Forget these entries of a journal."""
        ...

    def drop_objects(self, object_ids: Sequence[ObjectId]) -> None:
        """Forget these objects. Asking for one says from now on that it has expired. Blobs stay."""
        ...

    def drop_blobs(self, names: Sequence[ContentHash]) -> int:
        """Forget these bytes, and say of how many. Those on which others rest may be kept until a later time."""
        ...

    def shrink(self) -> None:
        """Give freed room back to the disk, where nobody else is at work. Does nothing otherwise."""
        ...

    def faults(self) -> Sequence[str]:
        """What the database beneath finds wrong with itself, in its own words; empty where all is well."""
        ...


class ForgettingStore(WholeStore, Protocol):
    """A store out of which texts can be taken. What is told anew is in one transaction with whatever else is done in `exclusive`."""

    def bury(self, tombstones: Iterable[Tombstone]) -> None:
        """From now on these texts are known as forgotten. Whoever works on the store takes up its sessions anew."""
        ...

    def retell(self, key: bytes, finds: Callable[[str], Sequence[PrivateSpan]]) -> Retold:
        """Tell anew, without it, all that holds what is found. key: that of the store."""
        ...

    def retell_session(self, session: str, key: bytes) -> Retold:
        """Take out all that was said in one session, and what was paged out of it. What others need too stays for them."""
        ...

    def scrub(self) -> Sequence[str]:
        """See to it that nothing of what was taken out is left in files of the store. Returns what could not be done, in words."""
        ...


class Clock(Protocol):
    """Tells the time to whoever writes. Called from any thread; may go backwards."""

    def __call__(self) -> float:
        """Seconds since 1970."""
        ...


class IdSource(Protocol):
    """Mints ids of objects (UUIDv7). Called from any thread; gives no id twice, and later ids sort behind earlier ones."""

    def __call__(self, at: float) -> str:
        """A new id at this time, in seconds since 1970."""
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

    def locate(self, path: str, *, offset: float | None = None, limit: float | None = None) -> LocatedFile:
        """The file that a read call means, and whether its content may be stored. It may be missing."""
        ...

    def read(self, located: LocatedFile, signal: Signal | None = None) -> Document:
        """The file's bytes, read once."""
        ...

    def same_file(self, located: LocatedFile, among: Iterable[str]) -> str | None:
        """The key among these that names the same file by another way than links (a hard link), None for none."""
        ...
