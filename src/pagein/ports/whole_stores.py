"""Interfaces to a store, as export, import, check, garbage collection and erasure use it."""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Protocol

from pagein.model.entries import Entry, EntryId
from pagein.model.links import LastingLink
from pagein.model.names import ContentHash
from pagein.model.objects import ObjectId, StoredObject
from pagein.model.store_inventory import JournalLine, KeptSession
from pagein.model.text_removal import PrivateSpan, Retold, TextHolders, Tombstone
from pagein.model.writes import Write
from pagein.ports.stores import BlobStore, JournalStore, LayerStore, ObjectStore


class WholeStore(BlobStore, JournalStore, ObjectStore, LayerStore, Protocol):
    """A complete store with the operations of its upkeep: export, import, check and garbage collection.

    Called by one thread. Raises StoreError. Dropped content cannot be restored: the caller must first prove that nothing refers to it.
    """

    def snapshot(self) -> AbstractContextManager[None]:
        """Return a context in which this thread reads the store's state at the context's beginning.

        Blocks no writer of another process.
        """
        ...

    def sessions(self) -> Sequence[KeptSession]:
        """Return every session with a journal or an object, by name."""
        ...

    def paged_objects(self) -> Iterator[StoredObject]:
        """Return the records of every object made by `put_objects`, in ascending order of ids."""
        ...

    def blob_sizes(self) -> Mapping[ContentHash, int]:
        """Return every blob's hash with its stored size in bytes."""
        ...

    def journal_lines(self, after: int = 0) -> Iterator[JournalLine]:
        """Return the lines of every journal after a place, in append order, including undecodable lines.

        Places are as for `news`.
        """
        ...

    def adopt_secret(self, secret: bytes) -> bool:
        """Set the key of object ids if the store has no key yet. Return whether `secret` is the store's key now."""
        ...

    def bury(self, tombstones: Iterable[Tombstone]) -> None:
        """Record tombstones of erased texts. Every process on the store then reloads its sessions."""
        ...

    def end_session(self, name: str) -> None:
        """Mark a session as ended by its user. Storing more of the session removes the mark."""
        ...

    def stand(self, session: str, leaf: EntryId) -> None:
        """Set a session's leaf to an existing entry."""
        ...

    def put_entry(self, session: str, place: int, entry: Entry) -> None:
        """Put an entry at a free place, or in place of the entry already there. Does not move the session's leaf."""
        ...

    def requests(self) -> Iterator[tuple[str, int]]:
        """Return the id of each executed request, with the sequence of the version in its answer."""
        ...

    def lasting_links(self, object_id: str) -> Sequence[LastingLink]:
        """Return the references of all versions of an object, each once for the versions in a row that have it.

        Raises StoreError if one of them is damaged.
        """
        ...

    def put_version(self, write: Write, number: int) -> bool:
        """Restore a lost version of an object between its neighbours, as originally written.

        Returns False if there is no place: the number is taken or the newest, or no version between the neighbours was
        lost.
        """
        ...

    def drop_sessions(self, names: Sequence[str]) -> None:
        """Delete sessions with their journals. Objects stay; versions made from these journals are `archived` from then on."""
        ...

    def drop_objects(self, object_ids: Sequence[ObjectId]) -> None:
        """Delete objects. A later recall reports them as expired. Their blobs stay."""
        ...

    def drop_blobs(self, names: Sequence[ContentHash]) -> int:
        """Delete blobs and return the number of deleted blobs.

        A blob that is the delta base of another blob may stay until later.
        """
        ...

    def shrink(self) -> None:
        """Return free space to the disk, unless another process is at work; then do nothing."""
        ...

    def faults(self) -> Sequence[str]:
        """Return the database's own integrity complaints; empty for a sound database."""
        ...


class ForgettingStore(WholeStore, Protocol):
    """A store from which texts can be erased.

    Rewrites belong to the same transaction as any other work within `exclusive`.
    """

    def find_holders(self, finds: Callable[[str], Sequence[PrivateSpan]]) -> TextHolders:
        """Return what holds a text now. Others may write meanwhile."""
        ...

    def retell(
        self,
        key: bytes,
        finds: Callable[[str], Sequence[PrivateSpan]],
        drop: Callable[[Collection[str] | None], bool] = lambda _: False,
        holders: TextHolders | None = None,
    ) -> Retold:
        """Rewrite every record with a matching span, without the span.

        key: the store's secret. drop: called before versions and entries are rewritten, with the sessions that have one to be
        rewritten, or with None if a version of another writer is among them: any journal may quote its hashes. It returns whether
        the objects of these sessions wait to be dropped; then those with a version that would be rewritten go at once. holders: what `find_holders`
        found before; only what was stored since is searched.
        """
        ...

    def retell_session(self, session: str, key: bytes) -> Retold:
        """Erase everything said in a session, and its evicted results.

        Content needed by other sessions stays for them.
        """
        ...

    def scrub(self) -> Sequence[str]:
        """Remove every trace of erased content from the store's files. Return the failures, in words."""
        ...
