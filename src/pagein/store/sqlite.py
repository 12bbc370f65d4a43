"""The embedded store: blobs, objects and journals in one SQLite file.

Rules of this file
------------------
1. A blob's name is the hash of its bytes, so two writers of one name carry the same bytes, and losing a race is winning it.
2. What comes back is hashed again. Wrong bytes are worse than none. A blob that is put again is proven too, and healed.
3. An object's record and its bytes are committed together: an id that can be found can be recalled.
"""

import contextlib
import secrets
import sqlite3
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from pagein.errors import DamagedBlob, MissingBlob
from pagein.model.codec import decode_entry, encode_entry
from pagein.model.entries import Entry, EntryId
from pagein.model.messages import Unreadable
from pagein.model.names import ContentHash
from pagein.model.objects import ObjectId, Origin, StoredObject
from pagein.store.database import Database
from pagein.store.packing import packed, unpacked
from pagein.store.schema import APPLICATION_ID

_COLUMNS = "id, hash, kind, workspace, session, call_id, description, tokens, chars"


class SqliteStore:
    """A BlobStore and JournalStore in one file. Made on first use; `path` may lie in a folder that does not exist yet."""

    def __init__(self, path: Path) -> None:
        self._database = Database(path)

    # --- blobs ---

    def put(self, content: bytes) -> ContentHash:
        return self.put_many((content,))[0]

    def put_many(self, contents: Sequence[bytes]) -> tuple[ContentHash, ...]:
        with self._database.writing() as connection:
            return tuple(_put(connection, content) for content in contents)

    def get(self, name: ContentHash) -> bytes:
        with self._database.reading() as connection:
            found = _row(connection, name)
        if found is None:
            raise MissingBlob(f"the store has nothing under {name}")
        return _proven(name, *found)

    def has(self, name: ContentHash) -> bool:
        with self._database.reading() as connection:
            found = connection.execute("SELECT 1 FROM blob WHERE hash = ?", (bytes.fromhex(name.hex),)).fetchone()
        return found is not None

    def names(self) -> Iterator[ContentHash]:
        with self._database.reading() as connection:
            rows = connection.execute("SELECT hash FROM blob ORDER BY hash").fetchall()
        return iter([ContentHash(name.hex()) for (name,) in rows])

    def figures(self) -> tuple[int, int]:
        with self._database.reading() as connection:
            count, size = connection.execute("SELECT count(*), coalesce(sum(length(data)), 0) FROM blob").fetchone()
        return int(count), int(size)

    # --- objects ---

    def put_objects(self, objects: Sequence[tuple[StoredObject, bytes]]) -> frozenset[ObjectId]:
        taken: set[ObjectId] = set()
        with self._database.writing() as connection:
            for stored, content in objects:
                connection.execute(
                    f"INSERT INTO object({_COLUMNS}) VALUES(?,?,?,?,?,?,?,?,?) ON CONFLICT DO NOTHING",
                    _record(stored),
                )
                first = _found(connection, stored.id)
                if first is None or (first.content, first.workspace) != (stored.content, plain(stored.workspace)):
                    taken.add(stored.id)
                else:
                    _put(connection, content)
        return frozenset(taken)

    def find(self, object_id: ObjectId) -> StoredObject | None:
        with self._database.reading() as connection:
            return _found(connection, object_id)

    def elsewhere(self, object_id: ObjectId) -> bool:
        here = self._database.path
        try:
            neighbours = sorted(path for path in here.parent.glob(f"*{here.suffix}") if path.name != here.name)
        except OSError:
            return False
        return any(_knows(path, object_id) for path in neighbours)

    def secret(self) -> bytes:
        with self._database.reading() as connection:
            found = connection.execute("SELECT key FROM secret").fetchone()
        if found is None:
            with self._database.writing() as connection:
                fresh = secrets.token_bytes(32)
                # Another process may have been faster; then its key is the one.
                connection.execute("INSERT INTO secret(number, key) VALUES(1, ?) ON CONFLICT DO NOTHING", (fresh,))
                found = connection.execute("SELECT key FROM secret").fetchone()
        return bytes(found[0])

    # --- journals ---

    def append(self, session: str, entries: Sequence[Entry]) -> None:
        if not entries:
            return
        rows = [(plain(session), plain(entry.id), *packed(encode_entry(entry))) for entry in entries]
        with self._database.writing() as connection:
            connection.executemany(
                "INSERT INTO entry(session, id, codec, line) VALUES(?, ?, ?, ?) ON CONFLICT DO NOTHING", rows
            )
            connection.execute(
                "INSERT INTO session(name, leaf) VALUES(?, ?) ON CONFLICT(name) DO UPDATE SET leaf = excluded.leaf",
                (plain(session), plain(entries[-1].id)),
            )

    def entries(self, session: str) -> Iterator[Entry | Unreadable]:
        return (entry for _, entry in self.news(session))

    def news(self, session: str, after: int = 0) -> Iterator[tuple[int, Entry | Unreadable]]:
        with self._database.reading() as connection:
            rows = connection.execute(
                "SELECT number, codec, line FROM entry WHERE session = ? AND number > ? ORDER BY number",
                (plain(session), after),
            ).fetchall()
        return ((number, _entry(number, codec, line)) for number, codec, line in rows)

    def leaf(self, session: str) -> EntryId | None:
        with self._database.reading() as connection:
            row = connection.execute("SELECT leaf FROM session WHERE name = ?", (plain(session),)).fetchone()
        return None if row is None else str(row[0])

    @contextlib.contextmanager
    def exclusive(self) -> Iterator[None]:
        with self._database.writing():
            yield

    def close(self) -> None:
        self._database.close()


def _put(connection: sqlite3.Connection, content: bytes) -> ContentHash:
    name = ContentHash.of(content)
    key = bytes.fromhex(name.hex)
    found = _row(connection, name)
    if found is None:
        connection.execute("INSERT INTO blob(hash, codec, data) VALUES(?, ?, ?)", (key, *packed(content)))
        return name
    try:
        _proven(name, *found)
    except DamagedBlob:
        connection.execute("UPDATE blob SET codec = ?, data = ? WHERE hash = ?", (*packed(content), key))
    return name


def _row(connection: sqlite3.Connection, name: ContentHash) -> tuple[int, bytes] | None:
    row: tuple[int, bytes] | None = connection.execute(
        "SELECT codec, data FROM blob WHERE hash = ?", (bytes.fromhex(name.hex),)
    ).fetchone()
    return row


def _proven(name: ContentHash, codec: int, data: bytes) -> bytes:
    try:
        content = unpacked(codec, data)
    except DamagedBlob as problem:
        raise DamagedBlob(f"the bytes under {name} cannot be unpacked: {problem}") from problem
    if ContentHash.of(content) != name:
        raise DamagedBlob(f"the bytes under {name} are not the ones that were stored")
    return content


def plain(text: str) -> str:
    """SQLite takes no lone surrogates; names that hold them are kept with the surrogates spelled out."""
    return text.encode("utf-8", "backslashreplace").decode()


def _record(stored: StoredObject) -> tuple[object, ...]:
    texts = (stored.kind, stored.workspace, stored.origin.session, stored.origin.call_id, stored.description)
    return (str(stored.id), bytes.fromhex(stored.content.hex), *map(plain, texts), stored.tokens, stored.chars)


def _found(connection: sqlite3.Connection, object_id: ObjectId) -> StoredObject | None:
    query = f"SELECT {_COLUMNS} FROM object WHERE id = ?"  # noqa: S608 -- a constant
    row = connection.execute(query, (str(object_id),)).fetchone()
    return None if row is None else stored_object(row)


def stored_object(row: tuple[Any, ...]) -> StoredObject:
    """The record in a row of the table `object`."""
    object_id, name, kind, workspace, session, call_id, description, tokens, chars = row
    origin = Origin(session, call_id)
    return StoredObject(
        ObjectId(object_id), ContentHash(name.hex()), kind, workspace, origin, description, tokens, chars
    )


def _knows(path: Path, object_id: ObjectId) -> bool:
    """Whether another store has this object. Whatever goes wrong there is none of our business."""
    try:
        connection = sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True)
        try:
            (mark,) = connection.execute("PRAGMA application_id").fetchone()
            if mark != APPLICATION_ID:
                return False
            return connection.execute("SELECT 1 FROM object WHERE id = ?", (str(object_id),)).fetchone() is not None
        finally:
            connection.close()
    except (sqlite3.Error, OSError):
        return False


def _entry(number: int, codec: int, line: bytes) -> Entry | Unreadable:
    try:
        return decode_entry(unpacked(codec, line), number)
    except DamagedBlob as problem:
        return Unreadable(number, f"DamagedBlob: {problem}")
