"""A shelf of the versions in a SQL database, read in bulk.

Gives the same items as `VersionShelf` on the same store, without building a `Version` per row and loading each content separately.
"""

import threading
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Final

import zstandard

from pagein.errors import DamagedBlob, MissingBlob, StoreError
from pagein.model.names import ContentHash
from pagein.model.version_hash import object_hash_of
from pagein.store.search.shelves import CHAT, Loaded, Newest, ShelfItem, pages_in, shelf_item, unreadable
from pagein.store.sql.packed_bytes import AS_IT_IS, MEMBER, PINNED, ZSTD, unpack
from pagein.store.sql.packed_records import unpack_record
from pagein.store.sql.sql_blobs import hash_of_name, raw
from pagein.store.sql.sql_bundles import BLOBS, DATA, load_bundle, members_of
from pagein.store.sql.sql_objects import SqlObjects
from pagein.store.sql.sql_rows import Row, Rows, SqlDatabase, decode_text, encode_text
from pagein.store.sql.sql_versions import SESSION, with_records

_AT_ONCE: Final = 200
_COLUMNS: Final = (
    f"version.sequence, version.number, version.at, version.chars, version.record, {SESSION}, version.object_hash"
)
_RECORD, _EARLIER, _EARLIER_RECORD = 4, 7, 8
"""Places of columns in the rows of `_VERSIONS`."""
# with the record of the version before, for chats
_VERSIONS: Final = f"""SELECT {_COLUMNS}, earlier.sequence, earlier.record FROM version
    JOIN document ON document.number = version.document
    LEFT JOIN version AS earlier ON document.type = '{CHAT}' AND earlier.document = version.document
      AND earlier.number = version.number - 1"""  # noqa: S608 -- constants
_BLOB: Final = f"blob.number, hash, codec, {DATA}, base"


class SqlShelf:
    """The versions of every object in a SQL database."""

    name: Final = "v"

    def __init__(self, store: SqlObjects) -> None:
        self._database = database_of(store)

    def last(self) -> int:
        with self._database.open_reader() as rows:
            found = rows.execute("SELECT sequence FROM tally").fetchone()
        return 0 if found is None else int(found[0])

    def between(self, above: int, upto: int) -> Sequence[ShelfItem]:
        if upto <= above:
            return ()
        with self._database.open_reader() as rows:
            query = f"{_VERSIONS} WHERE version.sequence > ? AND version.sequence <= ? ORDER BY version.sequence"
            found = _with_records(rows, rows.execute(query, (above, upto)).fetchall())
        return tuple(map(_proven, found))

    def of(self, name: str, above: int = 0) -> Sequence[ShelfItem]:
        with self._database.open_reader() as rows:
            meant = rows.execute("SELECT number FROM document WHERE id = ?", (encode_text(name),)).fetchone()
            meant = (
                meant or rows.execute("SELECT number FROM document WHERE nickname = ?", (encode_text(name),)).fetchone()
            )
            if meant is None:
                return ()
            query = f"{_VERSIONS} WHERE version.document = ? AND version.sequence > ? ORDER BY version.sequence"
            found = _with_records(rows, rows.execute(query, (meant[0], above)).fetchall())
        return tuple(map(_proven, found))

    def newest(self, ids: Collection[str]) -> Mapping[str, Newest]:
        names = [encode_text(name) for name in dict.fromkeys(ids)]
        found: dict[str, Newest] = {}
        with self._database.open_reader() as rows:
            for start in range(0, len(names), _AT_ONCE):
                some = names[start : start + _AT_ONCE]
                query = f"""SELECT id, head, deleted, record FROM document
                    LEFT JOIN version ON sequence = head AND type = '{CHAT}' WHERE id IN ({placeholders(some)})"""  # noqa: S608 -- constants
                for name, head, gone, record in with_records(rows, rows.execute(query, some).fetchall(), 1, 3):
                    found[decode_text(name)] = Newest(head, bool(gone), {} if record is None else _pages(record))
        return found

    def load(self, names: Sequence[ContentHash]) -> Loaded:
        return blobs_in(self._database, names)

    def mark(self, place: int) -> str:
        with self._database.open_reader() as rows:
            found = rows.execute("SELECT object_hash FROM version WHERE sequence = ?", (place,)).fetchone()
        return "" if found is None else hash_of_name(found[0]).hex


def _with_records(rows: Rows, found: Sequence[Row]) -> Sequence[Row]:
    return with_records(rows, with_records(rows, found, 0, _RECORD), _EARLIER, _EARLIER_RECORD)


def _pages(stored: str | bytes) -> Mapping[str, ContentHash]:
    try:
        return pages_in(unpack_record(stored))
    except DamagedBlob:
        return {}


def database_of(store: SqlObjects) -> SqlDatabase:
    """Return the database of a store."""
    database: SqlDatabase = store._database  # noqa: SLF001 - the same tables, seen from another side
    return database


def blobs_in(database: SqlDatabase, names: Sequence[ContentHash]) -> Loaded:
    """Return the blobs under these hashes, loaded in bulk together with their delta bases.

    A failure in place of an unreadable blob.
    """
    kept_names = [raw(name) for name in names]
    with database.open_reader() as rows:
        blobs = {row[0]: row for row in _fetch_rows(rows, "hash", list(dict.fromkeys(kept_names)))}
        _with_bases(rows, blobs)
    by_name = {bytes(row[1]): row[0] for row in blobs.values()}
    contents = _members(database, blobs.values())
    return [_content(name, by_name.get(key), blobs, contents) for name, key in zip(names, kept_names, strict=True)]


def _proven(row: Row) -> ShelfItem:
    sequence, number, at, chars, stored, session, name, _, stored_before = row
    try:
        record = unpack_record(stored)
        before = None if stored_before is None else unpack_record(stored_before)
    except DamagedBlob as problem:
        return unreadable(sequence, number, problem)
    if object_hash_of(record) != hash_of_name(name):
        return unreadable(
            sequence, number, StoreError(f"the record of version {sequence} is not the one that was stored")
        )
    return shelf_item((sequence, number, at, chars, record, None if session is None else decode_text(session)), before)


def _fetch_rows(rows: Rows, column: str, values: Sequence[object]) -> Iterator[Row]:
    for start in range(0, len(values), _AT_ONCE):
        some = values[start : start + _AT_ONCE]
        query = f"SELECT {_BLOB} FROM {BLOBS} WHERE blob.{column} IN ({placeholders(some)})"  # noqa: S608 -- constants
        yield from rows.execute(query, some).fetchall()


def placeholders(values: Sequence[object]) -> str:
    """Return a question mark for each value."""
    return ", ".join("?" * len(values))


def _members(database: SqlDatabase, blobs: Iterable[Row]) -> dict[int, bytes | DamagedBlob]:
    """Return the contents of blobs that are in bundles, by number. One bundle is in memory at a time: bundles are large."""
    places: dict[int, list[tuple[int, int, bytes]]] = {}
    for number, _, codec, place, base in blobs:
        if codec in (MEMBER, PINNED) and base is not None:
            places.setdefault(base, []).append((number, codec, place))
    contents: dict[int, bytes | DamagedBlob] = {}
    for bundle, members in sorted(places.items()):
        with database.open_reader() as rows:
            try:
                contents |= members_of(rows, load_bundle(rows, bundle), members)
                continue
            except DamagedBlob as problem:
                contents |= {number: problem for number, _, _ in members}
            again = list(_fetch_rows(rows, "number", [number for number, _, _ in members]))
        # the bundle was dissolved since: its members are alone
        contents |= {
            number: _unpack_or_damage(codec, data, None) for number, _, codec, data, base in again if base is None
        }
    return contents


def _with_bases(rows: Rows, blobs: dict[int, Row]) -> None:
    """Add the delta bases of these blobs, and the bases of the bases, without bundles."""
    missing = _bases(blobs.values()) - blobs.keys()
    while missing:
        found = {row[0]: row for row in _fetch_rows(rows, "number", sorted(missing))}
        blobs.update(found)
        missing = _bases(found.values()) - blobs.keys()


def _bases(blobs: Iterable[Row]) -> set[int]:
    return {base for _, _, codec, _, base in blobs if base is not None and codec not in (MEMBER, PINNED)}


def _content(
    name: ContentHash, number: int | None, blobs: dict[int, Row], contents: dict[int, bytes | DamagedBlob]
) -> bytes | StoreError:
    if number is None:
        return MissingBlob(f"the store has nothing under {name}")
    if blobs[number][4] is None:
        contents[number] = _unpack_or_damage(blobs[number][2], blobs[number][3], None)
    chain: list[int] = []
    at: int | None = number
    while at is not None and at not in contents and at in blobs and len(chain) <= len(blobs):
        chain.append(at)
        at = blobs[at][4]
    for below in reversed(chain):
        _, _, codec, data, base = blobs[below]
        contents[below] = _unpack_or_damage(codec, data, None if base is None else contents.get(base))
    content = contents[number]
    if isinstance(content, DamagedBlob):
        return DamagedBlob(f"the bytes under {name} cannot be unpacked: {content}")
    # compressed bytes are verified by their checksum; a full search has no time for a second verification
    if blobs[number][2] in (AS_IT_IS, MEMBER, PINNED) and ContentHash.of(content) != name:
        return DamagedBlob(f"the bytes under {name} are not the ones that were stored")
    return content


_mine: Final = threading.local()


def _unpack_or_damage(codec: int, data: bytes, base: bytes | DamagedBlob | None) -> bytes | DamagedBlob:
    if isinstance(base, DamagedBlob):
        return base
    try:
        return _unpacked_alone(bytes(data)) if codec == ZSTD else unpack(codec, bytes(data), base)
    except DamagedBlob as problem:
        return problem


def _unpacked_alone(data: bytes) -> bytes:
    """Unpack bytes compressed without a base, with a decompressor per thread.

    Creating a decompressor costs half of the work.
    """
    if not hasattr(_mine, "decompressor"):
        _mine.decompressor = zstandard.ZstdDecompressor()
    try:
        content: bytes = _mine.decompressor.decompress(data, max_output_size=0)
    except (zstandard.ZstdError, MemoryError):
        return unpack(ZSTD, data)  # raises with the reason
    return content
