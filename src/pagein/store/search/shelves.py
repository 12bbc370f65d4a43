"""Searchable items, in the order of their storage.

A *shelf* is an ordered list of items of the same kind. Each item has a *place*: a growing number that is never reused. The place of a
version is its sequence. An item has named texts as its parts: the content, additional texts, and the metadata.

A version of a chat holds every page of its turns. Each page is a part of the version that brought it, and of no later one, so that a
long chat is read and indexed once, and a page has the time at which it was said.
"""

import json
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, NamedTuple, Protocol, TypeAlias

import msgspec

from pagein.errors import BadInput, StoreError
from pagein.model.chats import PAGE_STEPS, Passage, page_of, passages_of, turns_from_value
from pagein.model.names import ContentHash
from pagein.model.search_query import CONTENT, METADATA, ChatPlace
from pagein.model.values import parse_value
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
    chat, turn, step: the chat that it is or belongs to, and its place there
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
    chat: str | None = None
    turn: int | None = None
    step: int | None = None
    problem: StoreError | None = None

    @property
    def size(self) -> int:
        """Characters to read, about: of other texts than the content only their number is known."""
        return self.chars + _USUAL * (len(self.parts) - 1)


_USUAL: Final = 4_096


class Newest(NamedTuple):
    """The newest version of an item.

    place: its place
    deleted: whether it is a deletion
    pages: the pages of a chat, by field
    """

    place: int
    deleted: bool
    pages: Mapping[str, ContentHash] = {}


NOWHERE: Final = Newest(0, deleted=False)
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

    def at(self, places: Collection[int]) -> Sequence[ShelfItem]:
        """Return the items at these places, at most a few hundred, lowest first. Free places are left out."""
        ...

    def of(self, name: str, above: int = 0) -> Sequence[ShelfItem]:
        """Return the versions of the item with this id or nickname at places above `above`, lowest place first.

        Empty for an unknown name.
        """
        ...

    def newest(self, ids: Collection[str]) -> Mapping[str, Newest]:
        """Return the newest version of each item."""
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
        return tuple(self._item(one) for one in self._store.log(above, upto - above) if one.sequence <= upto)

    def at(self, places: Collection[int]) -> Sequence[ShelfItem]:
        return tuple(thing for place in sorted(places) for thing in self.between(place - 1, place))

    def of(self, name: str, above: int = 0) -> Sequence[ShelfItem]:
        meant = self._store.current(name)
        history = () if meant is None else self._store.history(meant.id)
        return tuple(self._item(one) for one in history if one.sequence > above)

    def newest(self, ids: Collection[str]) -> Mapping[str, Newest]:
        found = (self._store.current(name) for name in dict.fromkeys(ids))
        return {one.id: Newest(one.sequence, one.deleted, pages_in(one.record)) for one in found if one is not None}

    def load(self, names: Sequence[ContentHash]) -> Loaded:
        return self._store.load(names)

    def mark(self, place: int) -> str:
        found = self._store.log(place - 1, 1) if place > 0 else ()
        return found[0].object_hash.hex if found and found[0].sequence == place else ""

    def _item(self, version: Version) -> ShelfItem:
        number, record = version.number, version.record
        before = self._store.version(version.id, number - 1) if version.type == CHAT and number > 1 else None
        row = version.sequence, number, version.at, version.chars, record, version.writer.session
        return shelf_item(row, None if before is None else before.record)


CHAT: Final = "chat"
Row: TypeAlias = tuple[int, int, float, int, str, str | None]
"""Columns of a version: sequence, number, time, characters, record and session."""


def shelf_item(row: Row, before: str | None = None) -> ShelfItem:
    """Return a version as a shelf item, from its record (`model/version_hash.py`).

    before: record of the version before, for a chat
    """
    place, number, at, chars, record, session = row
    try:
        fields = _fields_of(record)
        about = _about(fields)
        parts = tuple(_parts(fields, record, {} if before is None else pages_in(before)))
    except (msgspec.MsgspecError, ValueError, LookupError, TypeError) as problem:
        return unreadable(place, number, StoreError(f"the record of version {place} cannot be read: {problem}"))
    known = fields.id, number, fields.type, fields.nickname, about.path if isinstance(about.path, str) else None
    return ShelfItem(place, *known, session, at, chars, parts, *_chat_place(fields, about))


def pages_in(record: str) -> Mapping[str, ContentHash]:
    """Return the pages of a chat in its record, by field; empty for other objects."""
    try:
        fields = _fields_of(record)
    except (msgspec.MsgspecError, ValueError, LookupError, TypeError):
        return {}
    if fields.type != CHAT:
        return {}
    return {name: ContentHash(digest) for name, digest in fields.additional.items() if page_of(name) is not None}


def _fields_of(record: str) -> "_SearchRecord":
    """Return the fields of a record. Half of a surrogate pair, as in a text that its program cut, is no JSON for the fast decoder."""
    try:
        return _RECORDS.decode(record)
    except msgspec.DecodeError:
        found = json.loads(record)
        metadata = json.dumps(found["metadata"], separators=(",", ":")).encode()
        return msgspec.convert(found | {"metadata": msgspec.Raw(metadata)}, _SearchRecord)


def _about(fields: "_SearchRecord") -> "_AboutRecord":
    """Return the metadata fields for filters. Metadata without such fields is not decoded."""
    raw = bytes(fields.metadata)
    if not any(name in raw for name in _WANTED):
        return _NOTHING
    try:
        return _ABOUT.decode(raw)
    except msgspec.DecodeError:
        return msgspec.convert(json.loads(raw), _AboutRecord)


def _chat_place(fields: "_SearchRecord", about: "_AboutRecord") -> tuple[str | None, int | None, int | None]:
    """Return the chat of an item, with turn and step."""
    if fields.type == CHAT:
        return fields.id, None, None
    reference: Mapping[str, Any] = next(
        (one.get("$ref", {}) for one in (about.chat_ref, about.turn_ref) if isinstance(one, dict)), {}
    )
    page = page_of(str(reference.get("field", "")))
    turn = about.turn if isinstance(about.turn, int) else None if page is None else page[0]
    return reference.get("id"), turn, about.place if isinstance(about.place, int) else None


def unreadable(place: int, number: int, problem: StoreError) -> ShelfItem:
    """Return an item of which only the place is known."""
    return ShelfItem(place, f"version {place}", number, "", None, None, None, 0.0, 0, (), problem=problem)


class _SearchRecord(msgspec.Struct):
    """The fields of a record needed by a search. The metadata is decoded only when searched."""

    id: str
    type: str
    nickname: str | None
    content: str | None
    additional: dict[str, str]
    metadata: msgspec.Raw


class _AboutRecord(msgspec.Struct):
    path: Any = None
    chat_ref: Any = None
    turn_ref: Any = None
    turn: Any = None
    place: Any = None


_NOTHING: Final = _AboutRecord()
_WANTED: Final = tuple(f'"{name}":'.encode() for name in ("path", "chat_ref", "turn_ref"))
_RECORDS: Final = msgspec.json.Decoder(_SearchRecord)
_ABOUT: Final = msgspec.json.Decoder(_AboutRecord)


def _parts(fields: _SearchRecord, record: str, before: Mapping[str, ContentHash]) -> Iterator[tuple[str, Part]]:
    if fields.content is not None:
        yield CONTENT, ContentHash(fields.content)
    for name in sorted(fields.additional):
        digest = ContentHash(fields.additional[name])
        if before.get(name) != digest:
            yield name, digest
    yield METADATA, record.encode()


def type_mark(name: str) -> str:
    """Return the text that the index holds of each item of a type, beside its texts. Nobody writes it by chance."""
    return f"\u27e6{name}\u27e7"


def name_text(name: str) -> str:
    """Return the name of a session or chat as the index holds it: with `?` for half of a surrogate pair, which no text of SQLite has."""
    return name.encode("utf-8", "replace").decode()


def readable(name: str, data: bytes) -> bytes:
    """Return the searchable text of a part.

    Content is searched unchanged, and a page of a chat as people see it (`model/chats.turns_as_text`). Other additional
    fields, stored as JSON, and the metadata of a record become a line per value, labelled with the names that lead to the value.
    """
    if name == CONTENT:
        return data
    try:
        if page_of(name) is not None:
            return "\n".join(passage.text for passage in _passages(name, data)).encode("utf-8", "replace")
    except (BadInput, ValueError):
        pass  # not a chat of pagein's own form
    try:
        value = json.loads(data)
        return "\n".join(_metadata_texts(value) if name == METADATA else _lines("", value)).encode("utf-8", "replace")
    except (ValueError, TypeError, KeyError):
        return data


_WORDS: Final = re.compile(r"[A-Za-z0-9_]{3,}")
_MADE: Final = "toolcall toolresult text thinking image other withheld tool ref args status open cut short turn nickname none true false"
"""Words of readable texts that no value has."""


def word_of(literal: str) -> str:
    """Return the longest word of a literal that a readable text takes from its JSON alone; "" if there is none."""
    words = (one for one in _WORDS.findall(literal) if one.lower() not in _MADE)
    return max(words, key=len, default="")


def may_say(data: bytes, word: str, *, ignore_case: bool) -> bool:
    """Return whether the readable text of some JSON may have a word (`word_of`), without reading the JSON.

    What joins values and labels is no letter, no digit and no `_`, so a word is all in one of them.
    """
    if not ignore_case:
        return word.encode() in data or b"\\u00" in data
    # other letters than these may be taken for them without regard to case
    return word.lower().encode() in data.lower() or b"\\u" in data or not data.isascii()


def page_places(name: str, data: bytes, lines: Sequence[int]) -> list[ChatPlace]:
    """Return the places in the chat of some lines of a page's text. Lines ascend, and count from 1."""
    turn, _ = page_of(name) or (1, 1)
    places: list[ChatPlace] = []
    last = 0
    try:
        for passage in _passages(name, data):
            last += passage.text.count("\n") + 1
            while len(places) < len(lines) and lines[len(places)] <= last:
                places.append(ChatPlace(turn, passage.step, passage.speaker))
    except (BadInput, ValueError):
        pass
    return places + [ChatPlace(turn)] * (len(lines) - len(places))


def _passages(name: str, data: bytes) -> Iterator[Passage]:
    _, page = page_of(name) or (1, 1)
    return passages_of(turns_from_value(parse_value(data)), (page - 1) * PAGE_STEPS + 1)


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
