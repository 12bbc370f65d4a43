"""Searchable items, in the order of their storage.

A *shelf* is an ordered list of items of the same kind. Each item has a *place*: a growing number that is never reused. The place of a
version is its sequence. An item has named texts as its parts: the content, additional texts, and the metadata.
"""

import json
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Protocol, TypeAlias

import msgspec

from pagein.errors import StoreError
from pagein.model.names import ContentHash
from pagein.model.search_query import CONTENT, METADATA
from pagein.model.versions import Version
from pagein.model.writes import Query
from pagein.ports import ObjectStore

Part: TypeAlias = ContentHash | bytes
"""A text, or the hash of its blob."""


@dataclass(frozen=True, slots=True)
class ShelfItem:
    """An item on a shelf.

    chars: length of its content
    parts: by name, in search order (see `readable`)
    problem: why only its place is known; no filter leaves out an item with a problem
    """

    place: int
    id: str
    version: int
    type: str
    nickname: str | None
    path: str | None
    session: str | None
    at: float
    chars: int
    parts: tuple[tuple[str, Part], ...]
    problem: StoreError | None = None


Loaded: TypeAlias = Sequence[bytes | StoreError]


class Shelf(Protocol):
    """Items in order. Called from several threads; raises StoreError. Only `load` reads content."""

    @property
    def name(self) -> str:
        """Return the letter that identifies this shelf in a place."""
        ...

    def last(self) -> int:
        """Return the highest place, 0 for an empty shelf."""
        ...

    def between(self, above: int, upto: int) -> Sequence[ShelfItem]:
        """Return the items at places above `above`, up to and including `upto`, lowest first."""
        ...

    def of(self, name: str) -> Sequence[ShelfItem]:
        """Return every version of the item with this id or nickname, lowest place first; empty for an unknown name."""
        ...

    def newest(self, ids: Collection[str]) -> Mapping[str, tuple[int, bool]]:
        """Return for each item the place of its newest version, and whether that version is a deletion."""
        ...

    def load(self, names: Sequence[ContentHash]) -> Loaded:
        """Return the verified bytes under each hash, or the failure."""
        ...

    def mark(self, place: int) -> str:
        """Return a permanent hash of the item at this place, which distinguishes this store from another.

        Empty for a free place.
        """
        ...


class SearchedStore(ObjectStore, Protocol):
    """An object store that can return content by hash. Every store of pagein can."""

    def get(self, name: ContentHash) -> bytes:
        """Return bytes as `BlobStore.get`."""
        ...


class VersionShelf:
    """The versions of every object of any store."""

    name: Final = "v"

    def __init__(self, store: SearchedStore) -> None:
        self._store = store

    def last(self) -> int:
        newest = self._store.objects(Query(deleted=None, limit=1))
        return newest[0].sequence if newest else 0

    def between(self, above: int, upto: int) -> Sequence[ShelfItem]:
        if upto <= above:
            return ()
        return tuple(_version_item(one) for one in self._store.log(above, upto - above) if one.sequence <= upto)

    def of(self, name: str) -> Sequence[ShelfItem]:
        meant = self._store.current(name)
        return () if meant is None else tuple(map(_version_item, self._store.history(meant.id)))

    def newest(self, ids: Collection[str]) -> Mapping[str, tuple[int, bool]]:
        found = (self._store.current(name) for name in dict.fromkeys(ids))
        return {one.id: (one.sequence, one.deleted) for one in found if one is not None}

    def load(self, names: Sequence[ContentHash]) -> Loaded:
        return [self._one(name) for name in names]

    def mark(self, place: int) -> str:
        found = self._store.log(place - 1, 1) if place > 0 else ()
        return found[0].object_hash.hex if found and found[0].sequence == place else ""

    def _one(self, name: ContentHash) -> bytes | StoreError:
        try:
            return self._store.get(name)
        except StoreError as problem:
            return problem


def _version_item(version: Version) -> ShelfItem:
    return shelf_item(
        (version.sequence, version.number, version.at, version.chars, version.record, version.writer.session)
    )


Row: TypeAlias = tuple[int, int, float, int, str, str | None]
"""Columns of a version: sequence, number, time, characters, record and session."""


def shelf_item(row: Row) -> ShelfItem:
    """Return a version as a shelf item, from its record (`model/version_hash.py`)."""
    place, number, at, chars, record, session = row
    try:
        fields = _RECORDS.decode(record)
        path = _PATHS.decode(fields.metadata).path if b'"path":' in bytes(fields.metadata) else None
        parts = tuple(_parts(fields, record))
    except (msgspec.MsgspecError, ValueError) as problem:
        return unreadable(place, number, StoreError(f"the record of version {place} cannot be read: {problem}"))
    about = fields.id, number, fields.type, fields.nickname, path if isinstance(path, str) else None
    return ShelfItem(place, *about, session, at, chars, parts)


def unreadable(place: int, number: int, problem: StoreError) -> ShelfItem:
    """Return an item of which only the place is known."""
    return ShelfItem(place, f"version {place}", number, "", None, None, None, 0.0, 0, (), problem)


class _SearchRecord(msgspec.Struct):
    """The fields of a record needed by a search. The metadata is decoded only when searched."""

    id: str
    type: str
    nickname: str | None
    content: str | None
    additional: dict[str, str]
    metadata: msgspec.Raw


class _PathRecord(msgspec.Struct):
    path: Any = None


_RECORDS: Final = msgspec.json.Decoder(_SearchRecord)
_PATHS: Final = msgspec.json.Decoder(_PathRecord)


def _parts(fields: _SearchRecord, record: str) -> Iterator[tuple[str, Part]]:
    if fields.content is not None:
        yield CONTENT, ContentHash(fields.content)
    for name in sorted(fields.additional):
        yield name, ContentHash(fields.additional[name])
    yield METADATA, record.encode()


def readable(name: str, data: bytes) -> bytes:
    """Return the searchable text of a part.

    Content is searched unchanged. An additional field, stored as JSON, and the metadata of a record become a line per
    value, labelled with the names that lead to the value.
    """
    if name == CONTENT:
        return data
    try:
        value = json.loads(data)
        return "\n".join(_metadata_texts(value) if name == METADATA else _lines("", value)).encode("utf-8", "replace")
    except (ValueError, TypeError, KeyError):
        return data


def _metadata_texts(fields: Mapping[str, Any]) -> Iterator[str]:
    if fields["nickname"] is not None:
        yield f"nickname: {fields['nickname']}"
    metadata = fields["metadata"]
    for name in sorted(metadata):
        yield from _lines(name, metadata[name])


def _lines(name: str, value: Any) -> Iterator[str]:  # noqa: ANN401 - JSON
    """Yield a value in readable form: a line per scalar, labelled with the names that lead to it."""
    label = f"{name}: " if name else ""
    if isinstance(value, dict):
        if value.keys() == {"$ref"}:
            yield f"{label}[[{value['$ref'].get('id', '')}]]"
            return
        for inner in sorted(value):
            plain = inner[1:] if inner.startswith("$$") else inner
            yield from _lines(f"{name}.{plain}" if name else plain, value[inner])
    elif isinstance(value, list):
        for one in value:
            yield from _lines(name, one)
    elif isinstance(value, bool):
        yield f"{label}{str(value).lower()}"
    elif value is not None:
        yield f"{label}{value}"
