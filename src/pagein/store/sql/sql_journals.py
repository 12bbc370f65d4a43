"""Store journals in a SQL database. A line shares its long texts with blobs (the rules are in `packed_bytes`).

A blob is removed here, because the lines that need it change with it.
"""

from collections.abc import Iterator, Sequence
from typing import Final

from pagein.errors import DamagedBlob, MissingBlob
from pagein.model.codec import decode_entry, encode_entries
from pagein.model.entries import Entry, EntryId
from pagein.model.messages import UnreadableLine
from pagein.model.names import ContentHash
from pagein.model.objects import ObjectId, StoredObject
from pagein.policy.privacy.erasure import EntryRedaction
from pagein.store.sql.packed_bytes import (
    BRIDGE,
    SLOWLY,
    PackedLine,
    pack,
    pack_line,
    pack_lines,
    texts_in,
    unpack,
    unpack_line,
)
from pagein.store.sql.short_names import OF_SESSION, entry_id, entry_key, session_number, stored_name
from pagein.store.sql.sql_blobs import (
    SqlBlobs,
    free_member,
    hash_of_name,
    is_shared,
    load_blob,
    put_blob,
    raw,
    store_alone,
)
from pagein.store.sql.sql_lines import (
    LINES,
    keep_snapshots,
    line_of,
    move_lines,
    snapshots_of,
    waiting_lines,
    with_lines,
)
from pagein.store.sql.sql_rows import Rows, decode_text, plain, plain_names
from pagein.store.sql.sql_segments import join_texts

_AT_ONCE: Final = 500
"""Number of entries fetched per turn of the store."""
# A lost entry that is appended again gets its old place.
_APPEND: Final = f"""INSERT INTO journal(session, id, codec, line) VALUES(?, ?, ?, ?)
  ON CONFLICT(session, id) DO UPDATE SET codec = excluded.codec, line = excluded.line WHERE journal.codec = {BRIDGE}
  RETURNING number"""
_NUMBER: Final = "SELECT number FROM journal WHERE session = ? AND id = ?"
_NEWS: Final = f"SELECT number, codec, line, id FROM journal WHERE {OF_SESSION} AND number > ? ORDER BY number LIMIT ?"  # noqa: S608 -- a constant
_AT: Final = f"SELECT 1 FROM journal WHERE {OF_SESSION} AND number = ?"  # noqa: S608 -- a constant
_ONE: Final = f"SELECT number, codec, line FROM journal WHERE {OF_SESSION} AND id = ?"  # noqa: S608 -- a constant
_SNAPSHOT: Final = f"SELECT place, codec, data FROM snapshot WHERE {OF_SESSION} AND version = ?"  # noqa: S608 -- a constant
_NOTE_TEXT: Final = """INSERT INTO line_text(blob, entry)
  SELECT number, ? FROM blob WHERE hash = ? ON CONFLICT DO NOTHING"""
_SHARING: Final = """SELECT number, codec, line FROM journal WHERE number IN (
  SELECT entry FROM line_text WHERE blob = (SELECT number FROM blob WHERE hash = ?))"""


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
            number = session_number(rows, stored_name(session))
            put_lines(rows, number, ids, lines, packed)
            rows.execute(
                "INSERT INTO session(name, leaf) VALUES(?, ?) ON CONFLICT(name) DO UPDATE SET leaf = excluded.leaf",
                (name, ids[-1]),
            )
            last = rows.execute("SELECT max(number) FROM journal WHERE session = ?", (number,)).fetchone()
        return 0 if last is None else int(last[0])

    def bundle_more(self, *, rest: bool = False) -> int:
        done = super().bundle_more(rest=rest)
        if done:
            return done
        with self._database.open_writer() as rows:
            if moved := move_lines(rows, rest=rest):
                return moved
        with self._database.open_reader() as rows:
            waiting = waiting_lines(rows, rest=rest)
        if waiting is None:
            return 0
        joined = join_texts(waiting.texts, SLOWLY)
        with self._database.open_writer() as rows:
            return LINES.put_joined(rows, waiting, joined)

    def _put_objects(self, rows: Rows, objects: Sequence[tuple[StoredObject, bytes]]) -> frozenset[ObjectId]:
        taken = super()._put_objects(rows, objects)
        for stored, _ in objects:
            if stored.id not in taken:
                loosen_lines(rows, stored.content)
        return taken

    def entries(self, session: str) -> Iterator[Entry | UnreadableLine]:
        return (entry for _, entry in self.news(session))

    def news(self, session: str, after: int = 0) -> Iterator[tuple[int, Entry | UnreadableLine]]:
        while True:
            # released between batches, so that others need not wait for a long session
            with self._database.open_reader() as rows:
                page = rows.execute(_NEWS, (stored_name(session), after, _AT_ONCE)).fetchall()
                found = with_lines(rows, page) if any(len(line) == 0 for _, _, line, _ in page) else page
            for number, codec, line, name in found:
                yield number, self._entry(number, codec, line, entry_id(bytes(name)))
            if len(found) < _AT_ONCE:
                return
            after = found[-1][0]

    def has_place(self, session: str, place: int) -> bool:
        with self._database.open_reader() as rows:
            return rows.execute(_AT, (stored_name(session), place)).fetchone() is not None

    def leaf(self, session: str) -> EntryId | None:
        with self._database.open_reader() as rows:
            row = rows.execute("SELECT leaf FROM session WHERE name = ?", (plain(session),)).fetchone()
        return None if row is None else str(row[0])

    def latest(self, most: int) -> Sequence[str]:
        with self._database.open_reader() as rows:
            found = rows.execute(
                """SELECT name, last FROM (SELECT session, max(number) AS last FROM journal GROUP BY session) AS latest
                   JOIN writer_session ON writer_session.number = session ORDER BY last DESC LIMIT ?""",
                (most,),
            ).fetchall()
        return [decode_text(name) for name, _ in found]

    def entry(self, session: str, name: EntryId) -> Entry | UnreadableLine | None:
        with self._database.open_reader() as rows:
            found = with_lines(rows, rows.execute(_ONE, (stored_name(session), entry_key(name))).fetchall())
        return next((self._entry(number, codec, line, plain(name)) for number, codec, line in found), None)

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
        except (MissingBlob, DamagedBlob):
            # a text may have been removed, and put back into the line, since; or the line left its segment
            with self._database.open_reader() as rows:
                return load_line(rows, *(line_of(rows, number) or (codec, data)))

    def keep_snapshot(self, session: str, place: int, version: str, data: bytes) -> None:
        codec, small = pack(data)
        with self._database.open_writer() as rows:
            number = session_number(rows, stored_name(session))
            if rows.execute(_AT, (stored_name(session), place)).fetchone() is None:
                return  # the journal was dropped meanwhile, and may have begun anew
            rows.execute("DELETE FROM snapshot WHERE session = ?", (number,))
            rows.execute(
                "INSERT INTO snapshot(session, place, version, codec, data) VALUES(?, ?, ?, ?, ?)",
                (number, place, version, codec, small),
            )

    def load_snapshot(self, session: str, version: str) -> tuple[int, bytes] | None:
        with self._database.open_reader() as rows:
            row = rows.execute(_SNAPSHOT, (stored_name(session), version)).fetchone()
        if row is None:
            return None
        place, codec, data = row
        try:
            return int(place), unpack(codec, bytes(data))
        except DamagedBlob:
            return None


# --- lines, and the texts that they share ---


def load_line(rows: Rows, codec: int, data: bytes) -> bytes:
    """Return a stored journal line. Raises DamagedBlob, also for a missing text."""
    try:
        return unpack_line(codec, data, lambda name: load_blob(rows, name))
    except MissingBlob as problem:
        raise DamagedBlob(f"a text of the line is missing: {problem}") from problem


def put_lines(
    rows: Rows, session: int, entries: Sequence[str], lines: Sequence[bytes], packed: Sequence[PackedLine]
) -> None:
    """Store the lines of entries, given by their ids.

    session: its number
    packed: the lines with all long texts as blobs. One with the content of an evicted object is packed again.
    """
    for key, line, one in zip(map(entry_key, entries), lines, packed, strict=True):
        shares = all(is_shared(rows, name) for name in one.texts)
        made = one if shares else pack_line(line, lambda name: is_shared(rows, name))
        found = rows.execute(_APPEND, (session, key, made.codec, made.data)).fetchone()
        if found is not None:
            put_texts(rows, int(found[0]), made)
        elif made.texts:  # the line is stored already, and a text may be damaged
            number = rows.execute(_NUMBER, (session, key)).fetchone()
            put_texts(rows, 0 if number is None else int(number[0]), made)


def change_line(rows: Rows, number: int, line: bytes, *, without: ContentHash | None = None) -> None:
    """Replace the line of an entry, in its row. What a segment has of the line stays there.

    without: hash of a content that it does not share
    """
    packed = pack_line(line, lambda name: name != without and is_shared(rows, name))
    rows.execute("UPDATE journal SET codec = ?, line = ? WHERE number = ?", (packed.codec, packed.data, number))
    put_texts(rows, number, packed)


def put_texts(rows: Rows, number: int, packed: PackedLine) -> None:
    """Store the texts of a line that was stored under this number."""
    for name, content in packed.texts.items():
        put_blob(rows, content, name=name)
        rows.execute(_NOTE_TEXT, (number, raw(name)))


def note_texts(rows: Rows, number: int, codec: int, data: bytes) -> None:
    """Note again which blobs a stored line needs. Raises DamagedBlob."""
    for name in texts_in(codec, data):
        rows.execute(_NOTE_TEXT, (number, raw(name)))


def remove_blob(rows: Rows, name: ContentHash) -> int:
    """Delete a blob, after its dependents are stored without the blob. Return the number of deleted blobs: 0 or 1."""
    free_member(rows, name)
    found = rows.execute("SELECT number FROM blob WHERE hash = ?", (raw(name),)).fetchone()
    if found is None:
        return 0
    # What is unreadable keeps its base or text: cleaning up must not make damage worse.
    try:
        for (dependent,) in rows.execute("SELECT hash FROM blob WHERE base = ?", found).fetchall():
            store_alone(rows, hash_of_name(dependent), load_blob(rows, hash_of_name(dependent)))
        loosen_lines(rows, name)
    except DamagedBlob:
        return 0
    rows.execute("DELETE FROM blob WHERE number = ?", found)
    rows.execute("DELETE FROM alone WHERE number = ?", found)
    rows.execute("DELETE FROM file_text WHERE number = ?", found)
    return 1


def loosen_lines(rows: Rows, name: ContentHash) -> None:
    """Put a shared text back into each line. Raises DamagedBlob."""
    for number, codec, data in with_lines(rows, rows.execute(_SHARING, (raw(name),)).fetchall()):
        if name in texts_in(codec, bytes(data)):  # a line may have changed since its need was noted
            # a change of an entry drops the snapshot of its session; here the entry says the same as before
            snapshots = snapshots_of(rows, int(number))
            change_line(rows, int(number), load_line(rows, codec, bytes(data)), without=name)
            keep_snapshots(rows, snapshots)
    rows.execute("DELETE FROM line_text WHERE blob = (SELECT number FROM blob WHERE hash = ?)", (raw(name),))
