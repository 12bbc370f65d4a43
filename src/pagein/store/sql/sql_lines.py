"""Store journal lines in a SQL database, and remove blobs, which lines may share.

The rules are in `shared_lines.py`.
"""

from collections.abc import Sequence
from typing import Final

from pagein.errors import DamagedBlob, MissingBlob
from pagein.model.names import ContentHash
from pagein.store.sql.packed_bytes import BRIDGE, pack
from pagein.store.sql.shared_lines import PackedLine, pack_line, texts_in, unpack_line
from pagein.store.sql.sql_blobs import free_member, hash_of_name, is_shared, load_blob, put_blob, raw
from pagein.store.sql.sql_rows import Rows

# A lost entry that is appended again gets its old place.
_APPEND: Final = f"""INSERT INTO entry(session, id, codec, line) VALUES(?, ?, ?, ?)
  ON CONFLICT(session, id) DO UPDATE SET codec = excluded.codec, line = excluded.line WHERE entry.codec = {BRIDGE}"""
_NUMBER: Final = "SELECT number FROM entry WHERE session = ? AND id = ?"
_NOTE_TEXT: Final = """INSERT INTO line_text(blob, entry)
  SELECT number, ? FROM blob WHERE hash = ? ON CONFLICT DO NOTHING"""
_SHARING: Final = """SELECT number, codec, line FROM entry WHERE number IN (
  SELECT entry FROM line_text WHERE blob = (SELECT number FROM blob WHERE hash = ?))"""

_SNAPSHOTS: Final = """SELECT session, place, version, codec, data FROM snapshot
  WHERE session = (SELECT session FROM entry WHERE number = ?)"""
_PUT_SNAPSHOT: Final = "INSERT INTO snapshot(session, place, version, codec, data) VALUES(?, ?, ?, ?, ?)"


def load_line(rows: Rows, codec: int, data: bytes) -> bytes:
    """Return a stored journal line. Raises DamagedBlob, also for a missing text."""
    try:
        return unpack_line(codec, data, lambda name: load_blob(rows, name))
    except MissingBlob as problem:
        raise DamagedBlob(f"a text of the line is missing: {problem}") from problem


def put_lines(
    rows: Rows, session: str, entries: Sequence[str], lines: Sequence[bytes], packed: Sequence[PackedLine]
) -> None:
    """Store the lines of entries, given by their ids.

    packed: the lines with all long texts as blobs. One with the content of an evicted object is packed again.
    """
    for entry, line, one in zip(entries, lines, packed, strict=True):
        shares = all(is_shared(rows, name) for name in one.texts)
        made = one if shares else pack_line(line, lambda name: is_shared(rows, name))
        rows.execute(_APPEND, (session, entry, made.codec, made.data))
        if made.texts:
            number = rows.execute(_NUMBER, (session, entry)).fetchone()
            put_texts(rows, 0 if number is None else int(number[0]), made)


def change_line(rows: Rows, number: int, line: bytes, *, without: ContentHash | None = None) -> None:
    """Replace the line of an entry.

    without: hash of a content that it does not share
    """
    packed = pack_line(line, lambda name: name != without and is_shared(rows, name))
    rows.execute("UPDATE entry SET codec = ?, line = ? WHERE number = ?", (packed.codec, packed.data, number))
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
    """Delete a blob, and store what needs it without it. Return the number of deleted blobs: 0 or 1."""
    free_member(rows, name)
    found = rows.execute("SELECT number FROM blob WHERE hash = ?", (raw(name),)).fetchone()
    if found is None:
        return 0
    # What is unreadable keeps its base or text: cleaning up must not make damage worse.
    try:
        for (dependent,) in rows.execute("SELECT hash FROM blob WHERE base = ?", found).fetchall():
            codec, data = pack(load_blob(rows, hash_of_name(dependent)))
            rows.execute(
                "UPDATE blob SET codec = ?, data = ?, base = NULL, depth = 0 WHERE hash = ?", (codec, data, dependent)
            )
        loosen_lines(rows, name)
    except DamagedBlob:
        return 0
    rows.execute("DELETE FROM blob WHERE number = ?", found)
    rows.execute("DELETE FROM alone WHERE number = ?", found)
    return 1


def loosen_lines(rows: Rows, name: ContentHash) -> None:
    """Put a text back into the lines that share it. Raises DamagedBlob."""
    for number, codec, data in rows.execute(_SHARING, (raw(name),)).fetchall():
        if name in texts_in(codec, bytes(data)):  # a line may have changed since its need was noted
            # a change of an entry drops the snapshot of its session; here the entry says the same as before
            snapshots = rows.execute(_SNAPSHOTS, (number,)).fetchall()
            change_line(rows, int(number), load_line(rows, codec, bytes(data)), without=name)
            for snapshot in snapshots:
                rows.execute(_PUT_SNAPSHOT, tuple(snapshot))
    rows.execute("DELETE FROM line_text WHERE blob = (SELECT number FROM blob WHERE hash = ?)", (raw(name),))
