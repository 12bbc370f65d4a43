"""The embedded store, opened to be looked after: listed, checked, collected.

Rules of this file
------------------
1. Numbers of blobs and entries are never given twice, since others remember how far they have come by them. SQLite would give the
   number of a dropped last row again; so the last blob waits until it is not the last, and the last entry leaves an empty row.
2. An object of this store's own key is forgotten whole: its tag still tells that it was here. One that came by import has another
   key's tag; of it the bare record is kept, so that asking for it says *expired* and not *never existed*.
"""

import contextlib
import sqlite3
from collections.abc import Iterator, Sequence
from typing import Final

from pagein.errors import DamagedBlob, StoreError
from pagein.model.entries import EntryId
from pagein.model.holdings import JournalLine, KeptSession
from pagein.model.names import ContentHash
from pagein.model.objects import EXPIRED, ObjectId, StoredObject
from pagein.store.packing import unpacked
from pagein.store.sql_blobs import named, plain, removed, stored_object
from pagein.store.sqlite import SqliteStore

_PAGE: Final = 500
# No session has this name: names with a zero byte are kept, but this row is in no journal's index.
_NOBODY: Final = "\0dropped"


class SqliteUpkeep(SqliteStore):
    """A WholeStore in one file."""

    @contextlib.contextmanager
    def snapshot(self) -> Iterator[None]:
        with self._database.snapshot():
            yield

    def sessions(self) -> Sequence[KeptSession]:
        with self._database.reading() as connection:
            rows = connection.execute(
                """SELECT life.session, session.leaf, life.touched, life.ended
                   FROM life LEFT JOIN session ON session.name = life.session ORDER BY life.session"""
            ).fetchall()
        return tuple(KeptSession(name, leaf, float(touched), bool(ended)) for name, leaf, touched, ended in rows)

    def paged_objects(self) -> Iterator[StoredObject]:
        last = ""
        while rows := self._page("SELECT * FROM object WHERE id > ? ORDER BY id LIMIT ?", last):
            for row in rows:
                last = row[0]
                yield stored_object(row)

    def journal_lines(self, after: int = 0) -> Iterator[JournalLine]:
        query = "SELECT number, session, codec, line FROM entry WHERE number > ? ORDER BY number LIMIT ?"
        while rows := self._page(query, after):
            for number, session, codec, data in rows:
                after = number
                if session != _NOBODY:
                    yield JournalLine(number, session, _line(codec, data))

    def adopt_secret(self, secret: bytes) -> bool:
        with self._database.writing() as connection:
            connection.execute("INSERT INTO secret(number, key) VALUES(1, ?) ON CONFLICT DO NOTHING", (secret,))
        return self.secret() == secret

    def end_session(self, name: str) -> None:
        with self._database.writing() as connection:
            connection.execute("UPDATE life SET ended = 1 WHERE session = ?", (plain(name),))

    def stand(self, session: str, leaf: EntryId) -> None:
        with self._database.writing() as connection:
            connection.execute("UPDATE session SET leaf = ? WHERE name = ?", (plain(leaf), plain(session)))

    def drop_sessions(self, names: Sequence[str]) -> None:
        with self._database.writing() as connection:
            _keep_last_place(connection)
            for name in map(plain, names):
                connection.execute("DELETE FROM entry WHERE session = ?", (name,))
                connection.execute("DELETE FROM session WHERE name = ?", (name,))
                connection.execute("DELETE FROM life WHERE session = ?", (name,))

    def drop_entries(self, session: str, places: Sequence[int]) -> None:
        with self._database.writing() as connection:
            _keep_last_place(connection)
            rows = [(plain(session), place) for place in places]
            connection.executemany("DELETE FROM entry WHERE session = ? AND number = ?", rows)

    def drop_objects(self, object_ids: Sequence[ObjectId]) -> None:
        secret = self.secret()
        own = [(str(one),) for one in object_ids if one.made_with(secret)]
        others = [(EXPIRED, str(one)) for one in object_ids if not one.made_with(secret)]
        with self._database.writing() as connection:
            connection.executemany("DELETE FROM object WHERE id = ?", own)
            connection.executemany("UPDATE object SET kind = ?, description = '' WHERE id = ?", others)

    def drop_blobs(self, names: Sequence[ContentHash]) -> int:
        with self._database.writing() as connection:
            last = connection.execute("SELECT hash FROM blob ORDER BY number DESC LIMIT 1").fetchone()
            kept = None if last is None else named(last[0])
            return sum(removed(connection, name) for name in dict.fromkeys(names) if name != kept)

    def shrink(self) -> None:
        with contextlib.suppress(StoreError), self._database.reading() as connection:
            connection.execute("VACUUM")
            connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")

    def faults(self) -> Sequence[str]:
        with self._database.reading() as connection:
            rows = connection.execute("PRAGMA integrity_check").fetchall()
        return tuple(str(row[0]) for row in rows if row[0] != "ok")

    def _page(self, query: str, after: str | int) -> list[tuple[str, ...]]:
        with self._database.reading() as connection:
            return connection.execute(query, (after, _PAGE)).fetchall()


def _line(codec: int, data: bytes) -> bytes:
    try:
        return unpacked(codec, data)
    except DamagedBlob:
        return bytes(data)


def _keep_last_place(connection: sqlite3.Connection) -> None:
    """An empty row under the next number, instead of the one that served for this before."""
    (last,) = connection.execute("SELECT max(number) FROM entry").fetchone()
    if last is not None:
        connection.execute(
            "INSERT INTO entry(number, session, id, codec, line) VALUES(?, ?, ?, 0, x'')",
            (last + 1, _NOBODY, str(last + 1)),
        )
        connection.execute("DELETE FROM entry WHERE session = ? AND number <= ?", (_NOBODY, last))
