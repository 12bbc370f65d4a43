"""Read and write the versions of objects in a SQL database. A row is valid only if its record matches its hash."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Final

from pagein.errors import CallerError, DamagedBlob
from pagein.model.version_hash import object_hash_of, version_of
from pagein.model.versions import Version, Writer
from pagein.store.sql.packed_records import CONTENT, RECORDS, full_record, shorten_record, unpack_record
from pagein.store.sql.record_hashes import HASH_MARK, blobs_behind, shorten_hashes, with_hashes
from pagein.store.sql.short_names import session_number
from pagein.store.sql.sql_rows import Row, Rows, batches, decode_text, encode_text, question_marks
from pagein.store.sql.sql_segments import join_texts

SESSION: Final = (
    "coalesce((SELECT name FROM writer_session WHERE writer_session.number = version.of_session), version.session)"
)
"""The session of a version's writer. In an older store it is in the version's row."""
VERSION: Final = f"sequence, version.number, at, object_hash, chars, record, writer, reason, {SESSION}"
"""The columns of a version."""
IN_SEGMENT: Final = b""
"""What a version has in place of its record while that is in a segment."""
OBJECT_HASH, CHARS, RECORD = (VERSION.split(", ").index(name) for name in ("object_hash", "chars", "record"))
"""The places of these columns in a row of a version."""
_AT_ONCE: Final = 500
_WITH_SESSION: Final = "SELECT sequence, session FROM version WHERE session IS NOT NULL ORDER BY sequence LIMIT ?"
_IN_FULL: Final = (
    "SELECT sequence, record, content_hash FROM version WHERE length(record) > 0 ORDER BY sequence LIMIT ?"
)


def select_versions(rows: Rows, wanted: str, values: Sequence[object]) -> list[Row]:
    """Return the rows of versions that meet a condition, in the columns of `VERSION`, with their records."""
    query = f"SELECT {VERSION} FROM version JOIN document ON document.number = version.document WHERE {wanted}"  # noqa: S608 -- constants
    return with_records(rows, rows.execute(query, values).fetchall())


def with_records(rows: Rows, found: Sequence[Row], sequence: int = 0, record: int = RECORD) -> list[Row]:
    """Return rows of versions with their records; rows that were removed meanwhile are left out.

    sequence, record: places of these columns in the rows. A record that is missing or damaged stays empty.
    """
    absent = [row[sequence] for row in found if row[record] is not None and not len(row[record])]
    if not absent:
        return list(found)
    shorts = RECORDS.load(rows, absent)
    gone = {one for one in absent if one not in shorts and not _is_stored(rows, one)}
    contents = _contents(rows, [one for one, short in shorts.items() if CONTENT in short])
    blobs = blobs_behind(rows, shorts.values())
    made = {one: _full(rows, one, short, contents.get(one), blobs) for one, short in shorts.items()}
    return [
        row if row[sequence] not in made else (*row[:record], made[row[sequence]], *row[record + 1 :])
        for row in found
        if row[sequence] not in gone
    ]


def put_record(rows: Rows, sequence: int, record: str, content: bytes | None) -> None:
    """Store the record of a version in a segment. The version's row has `IN_SEGMENT` instead.

    content: the hash of the content, as the version's row has it
    """
    RECORDS.put(rows, sequence, shorten_record(record, content))


def merge_records(rows: Rows) -> int:
    """Store some records of versions in a segment, records of an older store first. Return the number of records."""
    found = rows.execute(_IN_FULL, (_AT_ONCE,)).fetchall()
    if not found:
        waiting = RECORDS.waiting(rows)
        if waiting is None:
            return 0
        waiting = replace(waiting, texts=shorten_hashes(rows, waiting.texts))
        return RECORDS.put_joined(rows, waiting, join_texts(waiting.texts))
    for sequence, stored, content in found:
        try:
            put_record(rows, sequence, unpack_record(stored), None if content is None else bytes(content))
        except DamagedBlob:
            RECORDS.put_packed(rows, sequence, bytes(stored))  # damaged as before
        rows.execute("UPDATE version SET record = ? WHERE sequence = ?", (IN_SEGMENT, sequence))
    return len(found)


def writer_number(rows: Rows, session: str | None) -> int | None:
    """Return the number of a session in the rows of versions, which is stored now if it is new. None for no session."""
    return None if session is None else session_number(rows, encode_text(session))


def shorten_sessions(rows: Rows) -> int:
    """Store numbers in place of the sessions of some versions of an older store. Return the number of versions."""
    found = rows.execute(_WITH_SESSION, (_AT_ONCE,)).fetchall()
    numbers = {name: session_number(rows, name) for name in {name for _, name in found}}
    for sequence, name in found:
        values = (numbers[name], sequence)
        rows.execute("UPDATE version SET of_session = ?, session = NULL WHERE sequence = ?", values)
    return len(found)


def version_in(row: Row) -> Version:
    """Return the version in a row of `VERSION`, with its record.

    Raises DamagedBlob if the record does not match its hash.
    """
    sequence, number, at, name, chars, stored, writer, reason, session = row
    who = Writer(decode_text(writer), decode_text(reason), None if session is None else decode_text(session))
    try:
        record = unpack_record(stored)
        if object_hash_of(record).hex != bytes(name).hex():
            raise DamagedBlob(f"the record of version {sequence} is not the one that was stored")
        return version_of(record, sequence=sequence, number=number, at=at, chars=chars, writer=who)
    except CallerError as problem:
        raise DamagedBlob(f"version {sequence} cannot be read: {problem}") from problem


def _is_stored(rows: Rows, sequence: int) -> bool:
    return rows.execute("SELECT 1 FROM version WHERE sequence = ?", (sequence,)).fetchone() is not None


def _contents(rows: Rows, sequences: Sequence[int]) -> dict[int, bytes]:
    """Return the hashes of the contents of versions that have one."""
    found: dict[int, bytes] = {}
    for some in batches(sequences):
        query = f"SELECT sequence, content_hash FROM version WHERE content_hash IS NOT NULL AND sequence IN ({question_marks(some)})"  # noqa: S608 -- question marks
        found.update((int(sequence), bytes(content)) for sequence, content in rows.execute(query, some).fetchall())
    return found


def _full(
    rows: Rows, sequence: int, short: bytes, content: bytes | None, blobs: Mapping[bytes, list[bytes]]
) -> str | bytes:
    """Return the record behind a short form; `IN_SEGMENT` for a damaged one."""
    if HASH_MARK not in short:
        return _record_of(short, content)
    found = [_record_of(one, content) for one in with_hashes(short, blobs)]
    if len(found) > 1:  # some blobs begin alike
        wanted = rows.execute("SELECT object_hash FROM version WHERE sequence = ?", (sequence,)).fetchone()
        name = None if wanted is None else bytes(wanted[0]).hex()
        found = [one for one in found if isinstance(one, str) and object_hash_of(one).hex == name]
    return found[0] if found else IN_SEGMENT


def _record_of(short: bytes, content: bytes | None) -> str | bytes:
    try:
        return full_record(short, content)
    except DamagedBlob:
        return IN_SEGMENT
