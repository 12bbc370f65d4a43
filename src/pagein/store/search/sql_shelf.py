"""A shelf of the versions in a SQL database, read in bulk.

Gives the same items as `VersionShelf` on the same store, without building a `Version` per row and loading each content separately.
"""

from collections.abc import Collection, Mapping, Sequence
from typing import Final

from pagein.errors import DamagedBlob, StoreError
from pagein.model.names import ContentHash
from pagein.model.version_hash import object_hash_of
from pagein.store.search.shelves import CHAT, Loaded, Newest, ShelfItem, pages_in, shelf_item, unreadable
from pagein.store.sql.blob_batches import load_blobs
from pagein.store.sql.packed_records import unpack_record
from pagein.store.sql.sql_blobs import hash_of_name
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
        return self._things("version.sequence > ? AND version.sequence <= ?", (above, upto))

    def at(self, places: Collection[int]) -> Sequence[ShelfItem]:
        return self._things(f"version.sequence IN ({placeholders(places)})", tuple(places))

    def of(self, name: str, above: int = 0) -> Sequence[ShelfItem]:
        with self._database.open_reader() as rows:
            meant = rows.execute("SELECT number FROM document WHERE id = ?", (encode_text(name),)).fetchone()
            meant = (
                meant or rows.execute("SELECT number FROM document WHERE nickname = ?", (encode_text(name),)).fetchone()
            )
        return () if meant is None else self._things("version.document = ? AND version.sequence > ?", (meant[0], above))

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
        return load_blobs(self._database, names)

    def mark(self, place: int) -> str:
        with self._database.open_reader() as rows:
            found = rows.execute("SELECT object_hash FROM version WHERE sequence = ?", (place,)).fetchone()
        return "" if found is None else hash_of_name(found[0]).hex

    def _things(self, wanted: str, values: Sequence[object]) -> Sequence[ShelfItem]:
        with self._database.open_reader() as rows:
            query = f"{_VERSIONS} WHERE {wanted} ORDER BY version.sequence"
            return tuple(map(_proven, _with_records(rows, rows.execute(query, values).fetchall())))


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


def placeholders(values: Collection[object]) -> str:
    """Return a question mark for each value."""
    return ", ".join("?" * len(values))
