"""Store journals in a SQL database."""

from collections.abc import Iterator, Sequence
from typing import Final

from pagein.errors import DamagedBlob, MissingBlob
from pagein.model.codec import decode_entry, encode_entries
from pagein.model.entries import Entry, EntryId
from pagein.model.messages import UnreadableLine
from pagein.model.objects import ObjectId, StoredObject
from pagein.policy.privacy.erasure import EntryRedaction
from pagein.store.sql.packed_bytes import pack, unpack
from pagein.store.sql.shared_lines import pack_lines, unpack_line
from pagein.store.sql.sql_blobs import SqlBlobs, plain, plain_names
from pagein.store.sql.sql_lines import load_line, loosen_lines, put_lines

_AT_ONCE: Final = 500
"""Number of entries fetched per turn of the store."""


class SqlJournals(SqlBlobs):
    """A JournalStore in a SQL database."""

    def append(self, session: str, entries: Sequence[Entry]) -> int:
        if not entries:
            return 0
        forgotten = self.forgotten()
        retelling = EntryRedaction(forgotten.key, forgotten.finds, {}) if forgotten.tombstones else None
        name, *ids = plain_names((session, *(entry.id for entry in entries)))
        lines = encode_entries(entries)
        if retelling is not None:
            lines = [retelling.line(line) for line in lines]
        packed = pack_lines(lines)
        with self._database.open_writer() as rows:
            put_lines(rows, name, ids, lines, packed)
            rows.execute(
                "INSERT INTO session(name, leaf) VALUES(?, ?) ON CONFLICT(name) DO UPDATE SET leaf = excluded.leaf",
                (name, ids[-1]),
            )
            last = rows.execute("SELECT max(number) FROM entry WHERE session = ?", (name,)).fetchone()
        return 0 if last is None else int(last[0])

    def put_objects(self, objects: Sequence[tuple[StoredObject, bytes]]) -> frozenset[ObjectId]:
        with self._database.open_writer() as rows:
            taken = super().put_objects(objects)
            for stored, _ in objects:
                if stored.id not in taken:
                    loosen_lines(rows, stored.content)
        return taken

    def entries(self, session: str) -> Iterator[Entry | UnreadableLine]:
        return (entry for _, entry in self.news(session))

    def news(self, session: str, after: int = 0) -> Iterator[tuple[int, Entry | UnreadableLine]]:
        while True:
            with (
                self._database.open_reader() as rows
            ):  # released between batches, so that others need not wait for a long session
                found = rows.execute(
                    "SELECT number, codec, line, id FROM entry WHERE session = ? AND number > ? ORDER BY number LIMIT ?",
                    (plain(session), after, _AT_ONCE),
                ).fetchall()
            for number, codec, line, name in found:
                yield number, self._entry(number, codec, line, name)
            if len(found) < _AT_ONCE:
                return
            after = found[-1][0]

    def leaf(self, session: str) -> EntryId | None:
        with self._database.open_reader() as rows:
            row = rows.execute("SELECT leaf FROM session WHERE name = ?", (plain(session),)).fetchone()
        return None if row is None else str(row[0])

    def latest(self, most: int) -> Sequence[str]:
        with self._database.open_reader() as rows:
            found = rows.execute(
                "SELECT session, max(number) AS last FROM entry GROUP BY session ORDER BY last DESC LIMIT ?", (most,)
            ).fetchall()
        return [str(name) for name, _ in found]

    def entry(self, session: str, name: EntryId) -> Entry | UnreadableLine | None:
        with self._database.open_reader() as rows:
            query = "SELECT number, codec, line FROM entry WHERE session = ? AND id = ?"
            row = rows.execute(query, (plain(session), plain(name))).fetchone()
        return None if row is None else self._entry(int(row[0]), int(row[1]), bytes(row[2]), plain(name))

    def _entry(self, number: int, codec: int, data: bytes, name: str) -> Entry | UnreadableLine:
        try:
            line = self._line(number, codec, data)
        except DamagedBlob as problem:
            return UnreadableLine(number, f"DamagedBlob: {problem}")
        entry = decode_entry(line, number)
        if isinstance(entry, Entry) and plain(entry.id) != name:
            return UnreadableLine(number, f"it is kept as {name!r} and calls itself {entry.id!r}")
        return entry

    def _line(self, number: int, codec: int, data: bytes) -> bytes:
        try:
            return unpack_line(codec, bytes(data), self.get)
        except MissingBlob:
            with (
                self._database.open_reader() as rows
            ):  # a text may have been removed, and put back into the line, since
                again = rows.execute("SELECT codec, line FROM entry WHERE number = ?", (number,)).fetchone()
                return load_line(rows, *((codec, data) if again is None else again))

    def keep_snapshot(self, session: str, place: int, version: str, data: bytes) -> None:
        codec, small = pack(data)
        with self._database.open_writer() as rows:
            known = rows.execute("SELECT max(number) FROM entry WHERE session = ?", (plain(session),)).fetchone()
            if known is None or known[0] is None or known[0] < place:
                return  # the journal was dropped meanwhile
            rows.execute("DELETE FROM snapshot WHERE session = ?", (plain(session),))
            rows.execute(
                "INSERT INTO snapshot(session, place, version, codec, data) VALUES(?, ?, ?, ?, ?)",
                (plain(session), place, version, codec, small),
            )

    def load_snapshot(self, session: str, version: str) -> tuple[int, bytes] | None:
        with self._database.open_reader() as rows:
            query = "SELECT place, codec, data FROM snapshot WHERE session = ? AND version = ?"
            row = rows.execute(query, (plain(session), version)).fetchone()
        if row is None:
            return None
        place, codec, data = row
        try:
            return int(place), unpack(codec, bytes(data))
        except DamagedBlob:
            return None
