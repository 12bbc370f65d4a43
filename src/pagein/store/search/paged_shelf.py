"""A shelf of evicted objects in a SQL database, in the order of their eviction."""

import hashlib
import json
from collections.abc import Collection, Mapping, Sequence
from typing import Final

from pagein.model.names import ContentHash
from pagein.model.objects import EXPIRED
from pagein.model.search_query import CONTENT, METADATA
from pagein.store.search.shelves import Loaded, Newest, ShelfItem
from pagein.store.search.sql_shelf import database_of, placeholders
from pagein.store.sql.blob_batches import load_blobs
from pagein.store.sql.sql_blobs import hash_of_name
from pagein.store.sql.sql_objects import SqlObjects
from pagein.store.sql.sql_rows import Row, SqlDatabase

_COLUMNS: Final = "paged.place, object.id, hash, kind, workspace, session, call_id, description, chars, paged.at"
_SELECT: Final = f"SELECT {_COLUMNS} FROM paged JOIN object ON object.id = paged.id WHERE kind <> '{EXPIRED}' AND"  # noqa: S608 -- constants
_AT_ONCE: Final = 200


class PagedShelf:
    """Objects made by `BlobStore.put_objects`. Each has a single version that is never replaced."""

    name: Final = "p"

    def __init__(self, store: SqlObjects) -> None:
        self._database: SqlDatabase = database_of(store)

    def last(self) -> int:
        with self._database.open_reader() as rows:
            found = rows.execute("SELECT coalesce(max(place), 0) FROM paged").fetchone()
        return 0 if found is None else int(found[0])

    def between(self, above: int, upto: int) -> Sequence[ShelfItem]:
        return self._things("paged.place > ? AND paged.place <= ?", (above, upto))

    def at(self, places: Collection[int]) -> Sequence[ShelfItem]:
        return self._things(f"paged.place IN ({placeholders(places)})", tuple(places))

    def of(self, name: str, above: int = 0) -> Sequence[ShelfItem]:
        return self._things("object.id = ? AND paged.place > ?", (name, above))

    def newest(self, ids: Collection[str]) -> Mapping[str, Newest]:
        names = list(dict.fromkeys(ids))
        found: dict[str, Newest] = {}
        with self._database.open_reader() as rows:
            for start in range(0, len(names), _AT_ONCE):
                some = names[start : start + _AT_ONCE]
                query = f"SELECT id, place FROM paged WHERE id IN ({placeholders(some)})"  # noqa: S608 -- constants
                found |= {name: Newest(place, deleted=False) for name, place in rows.execute(query, some).fetchall()}
        return found

    def load(self, names: Sequence[ContentHash]) -> Loaded:
        return load_blobs(self._database, names)

    def mark(self, place: int) -> str:
        with self._database.open_reader() as rows:
            found = rows.execute("SELECT id, at FROM paged WHERE place = ?", (place,)).fetchone()
        return "" if found is None else hashlib.sha256(f"{place} {found[0]} {found[1]}".encode()).hexdigest()

    def _things(self, wanted: str, values: Sequence[object]) -> Sequence[ShelfItem]:
        with self._database.open_reader() as rows:
            return tuple(map(_shelf_item, rows.execute(f"{_SELECT} {wanted} ORDER BY paged.place", values).fetchall()))


def _shelf_item(row: Row) -> ShelfItem:
    place, name, content, kind, workspace, session, call, description, chars, at = row
    said = {"workspace": workspace, "session": session, "call_id": call, "description": description}
    metadata = json.dumps({"nickname": None, "metadata": said}).encode()
    parts = ((CONTENT, hash_of_name(content)), (METADATA, metadata))
    return ShelfItem(place, name, 1, kind, None, None, session, float(at), chars, parts)
