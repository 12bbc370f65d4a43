"""Find the rows that hold an erased text, and the sessions whose objects depend on one another.

Rules of this file
------------------
1. Objects that follow from journals are made again if an entry or an object of their session holds the text. Their sessions alone are
   followed again, with those that share an object with them or refer to one (`sessions_together`).
2. Orders of people meet the objects of their time. So where a person or another writer has a part, all sessions are followed again.
3. Links of notes are resolved when the note is written, by all objects of that time, and the id of a call avoids the names of that
   time. So whoever makes objects again compares their ids, and the links of notes.
"""

from collections.abc import Collection, Iterator, Sequence
from typing import Final

from pagein.errors import DamagedBlob, MissingBlob
from pagein.model.derived_versions import INDEXER
from pagein.model.text_removal import SessionGroup, TextHolders
from pagein.policy.privacy.erasure import EntryRedaction
from pagein.policy.privacy.exclusions import Finds
from pagein.store.sql.packed_bytes import BUNDLE, MEMBER, PINNED, SOURCED
from pagein.store.sql.packed_records import unpack_record
from pagein.store.sql.packed_references import packed_referrers
from pagein.store.sql.sql_blobs import hash_of_name, load_blob
from pagein.store.sql.sql_journals import load_line
from pagein.store.sql.sql_lines import with_lines
from pagein.store.sql.sql_rows import Rows, batches, decode_text, encode_text, question_marks
from pagein.store.sql.sql_versions import SESSION, with_records
from pagein.store.sql.target_keys import target_key

_AT_ONCE: Final = 500
_NOTE: Final = "note"
_PLACES: Final = """SELECT journal.number, name FROM journal JOIN writer_session ON writer_session.number = session
  ORDER BY journal.number"""
_LAST: Final = """SELECT coalesce((SELECT max(number) FROM blob), -1), coalesce((SELECT max(number) FROM journal), -1),
  coalesce((SELECT max(sequence) FROM version), -1)"""
_CONTENTS: Final = """SELECT hash FROM blob WHERE number > ? AND codec NOT IN (?, ?)
  ORDER BY CASE WHEN codec IN (?, ?) THEN base ELSE number END, number"""
_RECORDS: Final = f"""SELECT sequence, content_hash, record, {SESSION} FROM version
  WHERE sequence > ? ORDER BY sequence LIMIT ?"""  # noqa: S608 -- constants


def entry_places(rows: Rows) -> list[tuple[int, str]]:
    """Return the number of each entry, with the name of its session."""
    return [(int(number), decode_text(name)) for number, name in rows.execute(_PLACES).fetchall()]


def load_lines(rows: Rows, wanted: Sequence[tuple[int, str]], unread: list[str]) -> Iterator[tuple[int, str, bytes]]:
    """Yield entries with their sessions and lines, as far as they can be read; the others are told in words."""
    for some in batches(wanted):
        names = dict(some)
        query = f"SELECT number, codec, line FROM journal WHERE number IN ({question_marks(names)})"  # noqa: S608 -- question marks
        for number, codec, data in with_lines(rows, rows.execute(f"{query} ORDER BY number", tuple(names)).fetchall()):
            try:
                yield number, names[number], load_line(rows, codec, bytes(data))
            except DamagedBlob as problem:
                unread.append(f"entry {number} of session {names[number]}: {problem}")


def find_holders(rows: Rows, finds: Finds, orders: int, before: TextHolders | None = None) -> TextHolders:
    """Return what holds a text.

    orders: number of orders to forget that were carried out
    before: what was found earlier. If it may be trusted, only what was stored since is looked at.
    """
    known = before if before is not None and before.orders == orders and not before.unread else TextHolders()
    (last,) = rows.execute(_LAST).fetchall()
    unread: list[str] = []
    blobs = tuple(_blobs_with(rows, finds, known.last[0], unread))
    if blobs and known.last[0] >= 0:
        return find_holders(rows, finds, orders)  # what was looked at before may name them
    blobs = blobs or known.blobs
    telling = EntryRedaction(b"", finds, dict.fromkeys(blobs, ""), _evicted_with(rows, blobs))
    entries = {**known.entries, **dict(entries_with(rows, telling, unread, known.last[1]))}
    versions = {**known.versions, **_versions_with(rows, telling, known.last[2])}
    return TextHolders(blobs, entries, versions, last, orders, tuple(unread))


def _blobs_with(rows: Rows, finds: Finds, after: int, unread: list[str]) -> Iterator[str]:
    """Yield the hashes of the contents that hold a text; those that cannot be read are told in words."""
    for (name,) in rows.execute(_CONTENTS, (after, BUNDLE, SOURCED, MEMBER, PINNED)).fetchall():
        try:
            content = load_blob(rows, hash_of_name(name))
        except (DamagedBlob, MissingBlob) as problem:
            unread.append(f"blob {hash_of_name(name).hex}: {problem}")
        else:
            if finds(content.decode("utf-8", "surrogateescape")):
                yield hash_of_name(name).hex


def _evicted_with(rows: Rows, blobs: Sequence[str]) -> frozenset[str]:
    found: set[str] = set()
    for names in batches(blobs):
        some = [bytes.fromhex(one) for one in names]
        query = f"SELECT id FROM object WHERE hash IN ({question_marks(some)})"  # noqa: S608 -- question marks
        found.update(name for (name,) in rows.execute(query, some).fetchall())
    return frozenset(found)


def entries_with(rows: Rows, telling: EntryRedaction, unread: list[str], after: int = -1) -> list[tuple[int, str]]:
    """Return the places of the entries that may change. after: place behind which they are looked for"""
    places = [one for one in entry_places(rows) if one[0] > after]
    return [(number, name) for number, name, line in load_lines(rows, places, unread) if telling.concerns(line)]


def _versions_with(rows: Rows, telling: EntryRedaction, last: int) -> dict[int, str | None]:
    """Return the versions that hold a text in their records, or a content that was rewritten, by sequence with their sessions.

    last: sequence behind which they are looked for. Unreadable ones are left out.
    """
    contents = {bytes.fromhex(name) for name in telling.names}
    found: dict[int, str | None] = {}
    while page := rows.execute(_RECORDS, (last, _AT_ONCE)).fetchall():
        last = int(page[-1][0])
        for sequence, content, stored, session in with_records(rows, page, 0, 2):
            try:
                is_told = telling.concerns(unpack_record(stored).encode("utf-8", "surrogatepass"))
            except DamagedBlob:
                continue
            if is_told or (content is not None and bytes(content) in contents):
                found[int(sequence)] = None if session is None else decode_text(session)
    return found


def any_stored(rows: Rows, sequences: Sequence[int]) -> bool:
    """Return whether one of some versions is still stored."""
    for some in batches(sequences):
        query = f"SELECT 1 FROM version WHERE sequence IN ({question_marks(some)}) LIMIT 1"  # noqa: S608 -- question marks
        if rows.execute(query, some).fetchone() is not None:
            return True
    return False


def documents_of(rows: Rows, sequences: Collection[int]) -> list[int]:
    """Return the numbers of the objects of some versions, as far as these are stored."""
    return sorted(_numbers_where(rows, "SELECT DISTINCT document FROM version WHERE sequence IN", sequences))


def sessions_together(rows: Rows, names: Collection[str]) -> SessionGroup | None:
    """Return sessions with those that share objects with them or refer to one; None if a person or another writer has a part in these."""
    if rows.execute("SELECT 1 FROM version WHERE session IS NOT NULL LIMIT 1").fetchone() is not None:
        return None  # not yet brought up to date
    listed = rows.execute("SELECT number, name FROM writer_session").fetchall()
    known = {int(number): decode_text(name) for number, name in listed}
    sessions = _numbers_of(rows, names)
    documents: set[int] = set()
    while more := _objects_of(rows, sessions) - documents:
        if _have_other_writers(rows, more):
            return None
        documents |= more
        sessions |= _owners(rows, {*more, *_referrers(rows, more)})
    names = frozenset(known[one] for one in sessions)
    return SessionGroup(names, frozenset(_ids_of(rows, documents)), tuple(_ids_of(rows, documents, _NOTE)))


def objects_of_sessions(rows: Rows, names: Collection[str]) -> list[int]:
    """Return the numbers of the objects with a version of one of some sessions."""
    return sorted(_objects_of(rows, _numbers_of(rows, names)))


def _numbers_of(rows: Rows, names: Collection[str]) -> set[int]:
    wanted = {encode_text(name) for name in names}
    return {
        int(number)
        for number, name in rows.execute("SELECT number, name FROM writer_session").fetchall()
        if name in wanted
    }


def _objects_of(rows: Rows, sessions: Collection[int]) -> set[int]:
    return _numbers_where(rows, "SELECT DISTINCT document FROM version WHERE of_session IN", sessions)


def _have_other_writers(rows: Rows, documents: Collection[int]) -> bool:
    for some in batches(sorted(documents)):
        query = f"SELECT 1 FROM version WHERE document IN ({question_marks(some)}) AND (writer <> ? OR of_session IS NULL) LIMIT 1"  # noqa: S608 -- question marks
        if rows.execute(query, (*some, encode_text(INDEXER))).fetchone() is not None:
            return True
    return False


def _ids_of(rows: Rows, documents: Collection[int], kind: str | None = None) -> Iterator[str]:
    for some in batches(sorted(documents)):
        query = f"SELECT id FROM document WHERE type = coalesce(?, type) AND number IN ({question_marks(some)})"  # noqa: S608 -- question marks
        yield from (decode_text(name) for (name,) in rows.execute(query, (kind, *some)).fetchall())


def _owners(rows: Rows, documents: Collection[int]) -> set[int]:
    return _numbers_where(
        rows, "SELECT DISTINCT of_session FROM version WHERE of_session IS NOT NULL AND document IN", documents
    )


def _numbers_where(rows: Rows, query: str, numbers: Collection[int]) -> set[int]:
    """Return what a query finds that ends in IN, for some numbers."""
    found: set[int] = set()
    for some in batches(sorted(numbers)):
        found.update(int(number) for (number,) in rows.execute(f"{query} ({question_marks(some)})", some).fetchall())
    return found


def _referrers(rows: Rows, documents: Collection[int]) -> set[int]:
    """Return the objects that may refer to objects."""
    found: set[int] = set()
    for some in batches(sorted(documents)):
        ids = rows.execute(f"SELECT id FROM document WHERE number IN ({question_marks(some)})", some).fetchall()  # noqa: S608 -- question marks
        keys = [target_key(text) for (text,) in ids]
        query = f"SELECT DISTINCT document FROM reference WHERE target IN ({question_marks(keys)})"  # noqa: S608 -- question marks
        found.update(int(number) for (number,) in rows.execute(query, keys).fetchall())
        found.update(packed_referrers(rows, keys))
    return found
