"""Prove the versions of objects in bulk: parts common to several versions are read and parsed once.

There is no proof of a damaged version, nor of one that is written meanwhile. Such a version needs a closer look, alone.
"""

from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import Final, Generic, TypeVar

from pagein.errors import BadInput, StoreError
from pagein.model.links import LastingLink, UnresolvedReference
from pagein.model.names import ContentHash
from pagein.model.references import Reference
from pagein.model.values import canonical, escape_name, references_in
from pagein.model.version_hash import object_hash_of, record_of, references_beside, value_of, view_hash_of
from pagein.model.versions import Version
from pagein.ports import WholeStore

_AT_HAND: Final = 50_000
"""References kept in memory, of fields and of objects. A long chat has thousands."""
_Key = TypeVar("_Key", bound=Hashable)
_Item = TypeVar("_Item")


class VersionProofs:
    """Proves versions whose blobs were verified before. Not thread-safe.

    chars: number of characters of each blob; None for bytes that are no text
    """

    def __init__(self, store: WholeStore, chars: Mapping[ContentHash, int | None]) -> None:
        self._store = store
        self._chars = chars
        self._of_field = _Lists(self._references_in_field)
        self._of_object = _Lists(store.lasting_links)
        self._is_open: dict[Reference, bool] = {}

    def references(self, version: Version) -> tuple[int, int] | None:
        """Return the number of references of a version, and of those without a target yet; None without a proof."""
        try:
            return self._prove(version)
        except (StoreError, BadInput):
            return None

    def _prove(self, version: Version) -> tuple[int, int] | None:
        chars = 0 if version.content_hash is None else self._chars.get(version.content_hash)
        record = record_of(version)
        made = (record, object_hash_of(record), view_hash_of(version), chars)
        if made != (version.record, version.object_hash, version.metadata_view_hash, version.chars):
            return None
        stated = set(references_beside(version))
        for name, blob in version.additional.items():
            place = f"/additional/{escape_name(name)}"
            stated.update((place + path, one) for path, one in self._of_field.get(blob))
        links = [one for one in self._of_object.get(version.id) if one.stands_in(version.sequence)]
        if stated != {(one.path, one.reference) for one in links}:
            return None
        return len(links), sum(self._has_no_target(one) for one in links)

    def _references_in_field(self, blob: ContentHash) -> Sequence[tuple[str, Reference]]:
        """Return the references in an additional field, with their places in it. Raises BadInput if it is not canonical."""
        data = self._store.get(blob)
        value = value_of(data)
        if canonical(value).encode() != data:
            raise BadInput("an additional field is not in the canonical form")
        return tuple(references_in(value))

    def _has_no_target(self, link: LastingLink) -> bool:
        if link.resolved:
            return False
        if link.reference not in self._is_open:
            if len(self._is_open) >= _AT_HAND:
                self._is_open.clear()
            found = self._store.resolve(link.reference)
            if isinstance(found, UnresolvedReference) and found.why == "hashes disagree":
                raise BadInput("a reference is pinned to something with other hashes")
            self._is_open[link.reference] = isinstance(found, UnresolvedReference)
        return self._is_open[link.reference]


class _Lists(Generic[_Key, _Item]):
    """Lists that are made when first asked for, and kept while they are few."""

    def __init__(self, make: Callable[[_Key], Sequence[_Item]]) -> None:
        self._make = make
        self._kept: dict[_Key, Sequence[_Item]] = {}
        self._count = 0

    def get(self, key: _Key) -> Sequence[_Item]:
        found = self._kept.get(key)
        if found is None:
            found = self._make(key)
            if self._count > _AT_HAND:
                self._kept.clear()
                self._count = 0
            self._kept[key] = found
            self._count += 1 + len(found)
        return found
