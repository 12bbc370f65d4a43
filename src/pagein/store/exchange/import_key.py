"""The key of an export, and its tombstones: a text that was erased in the store of an export does not come back in the importing store.

Rules of this file
------------------
1. A tombstone means something only to a store with the key that made it.
2. Tombstones are buried behind all other records, so that an import stores what the store of the export stores.
3. Known records stay unchanged: a text that the importing store contains gets no tombstone there.
"""

import contextlib
import re
from collections.abc import Iterator, Sequence
from typing import Final

from pagein.errors import BadInput, StoreError
from pagein.model.text_removal import Tombstone
from pagein.policy.privacy.erased_texts import ErasedTexts
from pagein.policy.privacy.erasure import texts_in
from pagein.ports import WholeStore
from pagein.store.exchange.exporter import Fields, readable_log
from pagein.store.exchange.import_bounds import count, text
from pagein.store.exchange.import_state import ImportReport

_KEY, _TOMBSTONE = "key", "tombstone"
_DIGEST: Final = re.compile("[0-9a-f]{32}")
_DEEPEST: Final = 4
"""Levels of JSON strings within JSON strings, in a line of a journal."""


class ImportKey:
    """Reader of the records `key` and `tombstone`."""

    def __init__(self, store: WholeStore, done: ImportReport) -> None:
        self._store = store
        self._done = done
        self._is_own = False
        self._is_empty = False
        self._tombstones: dict[str, Tombstone] = {}

    def take(self, fields: Fields) -> None:
        """Read the key."""
        if sum(self._done.counts.values()) > 1:
            raise BadInput("the key stands before everything else, and once")
        key = bytes.fromhex(text(fields["key"]))
        if len(key) != 32:  # noqa: PLR2004 -- the contract of `BlobStore.secret`
            raise BadInput("a key has 32 bytes")
        self._is_empty = self._store.last_place() == 0 and next(iter(self._store.names()), None) is None
        self._is_own = self._store.adopt_secret(key)

    def take_tombstone(self, fields: Fields) -> None:
        """Read a tombstone."""
        if self._done.counts.keys() != {_KEY, _TOMBSTONE}:
            raise BadInput("tombstones stand right behind the key")
        digest = text(fields["digest"])
        if not _DIGEST.fullmatch(digest) or digest in self._tombstones:
            raise BadInput("a tombstone has a digest of 32 hex digits, and no two have the same")
        beginning = fields["beginning"]
        if isinstance(beginning, bool) or not isinstance(beginning, int):
            raise TypeError("beginning is not a whole number")
        self._tombstones[digest] = Tombstone(digest, count(fields["chars"], "chars", 1), beginning)

    def bury(self) -> None:
        """Store the tombstones, after all other records."""
        known = {one.digest for one in self._store.tombstones()}
        fresh = {digest: one for digest, one in self._tombstones.items() if digest not in known}
        if fresh and not self._is_own:
            self._done.unburied.append(
                f"{len(fresh):,} of the texts erased there: this store has a key of its own, and cannot recognise them"
            )
            return
        held = set() if self._is_empty else self._held(tuple(fresh.values()))
        if held:
            self._done.unburied.append(
                f"{len(held):,} of the texts erased there: this store contains them, and keeps them until they are erased here"
            )
        if buried := [one for digest, one in fresh.items() if digest not in held]:
            self._store.bury(buried)
            self._done.added[_TOMBSTONE] = len(buried)

    def _held(self, tombstones: Sequence[Tombstone]) -> set[str]:
        """Return the digests of the texts that the store contains."""
        erased = ErasedTexts(self._store.secret(), tuple(tombstones))
        return set().union(*map(erased.digests_in, texts_of(self._store))) if tombstones else set()


def texts_of(store: WholeStore) -> Iterator[str]:
    """Yield every readable text of a store."""
    for name in store.names():
        with contextlib.suppress(StoreError):  # damaged content
            yield store.get(name).decode("utf-8", "replace")
    for line in store.journal_lines():
        yield from texts_in(line.line.decode("utf-8", "replace"), _DEEPEST)
    yield from (one.description for one in store.paged_objects())
    for version in readable_log(store):
        yield from texts_in(version.record, _DEEPEST)
