"""Build a new store file from a damaged file: copy readable rows, and recompute derived rows.

Rules of this file
------------------
1. Derived rows are not copied but recomputed: heads, nicknames and lookup keys of objects, references if their table was damaged, the count
   of versions, the life of sessions, the places of evicted objects.
2. Rows keep their numbers, because readers remember their positions by number.
"""

import contextlib
import mmap
import os
import sqlite3
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from pagein.errors import BadInput, CallerError, DamagedBlob, MissingBlob, StoreError
from pagein.model.version_hash import SealedDraft, value_of
from pagein.model.versions import Version
from pagein.model.writes import keys_of
from pagein.store.sql.packed_bytes import FRAMED
from pagein.store.sql.packed_references import unpack_all_references
from pagein.store.sql.short_names import NOBODY, entry_key, stored_name
from pagein.store.sql.sql_blobs import load_blob
from pagein.store.sql.sql_journals import note_texts
from pagein.store.sql.sql_lines import IN_SEGMENT, with_lines
from pagein.store.sql.sql_lookups import put_keys
from pagein.store.sql.sql_references import put_references, reference_in
from pagein.store.sql.sql_rows import decode_text, encode_text
from pagein.store.sql.sql_versions import RECORD, VERSION, version_in, with_records
from pagein.store.sql.sqlite_schema import APPLICATION_ID, MOVED_ENTRIES
from pagein.store.sql.target_keys import target_key
from pagein.store.sqlite.readonly_file import LOG
from pagein.store.sqlite.sqlite_database import add_functions
from pagein.store.upkeep.salvage import (
    LOG_TORN,
    MissingRow,
    SalvageReport,
    count_of,
    make_empty_tables,
    salvage,
    tables_of,
)
from pagein.store.upkeep.sqlite_pages import MAGIC, Bytes, Pages

_AT_ONCE = 500


def rebuilt(damaged: Path, made: Path) -> SalvageReport:
    """Build a store file from the readable rows of a damaged file.

    Raises BadInput if no row is readable, and StoreError for disk errors.
    """
    try:
        with _map_file(damaged) as file, _map_file(damaged.with_name(damaged.name + LOG)) as log:
            return _fill_store(Pages(file, log), damaged, made)
    except (sqlite3.Error, OSError) as problem:
        raise StoreError(f"store {damaged.name}: {problem}") from problem


def rows_in(path: Path) -> dict[str, int]:
    """Return the number of rows of a store's file, by table."""
    with contextlib.closing(sqlite3.connect(path)) as rows:
        return {name: count_of(rows, name) for name in tables_of(rows)}


def fault_of_log(path: Path) -> str | None:
    """Return why the last writes are unreadable, or None.

    SQLite ignores commits after a damaged frame of the write-ahead log.
    """
    try:
        with _map_file(path) as file, _map_file(path.with_name(path.name + LOG)) as log:
            return LOG_TORN if Pages(file[:100], log).late else None
    except OSError:
        return None


@contextlib.contextmanager
def _map_file(path: Path) -> Iterator[Bytes]:
    """Map the bytes of a file into memory; empty for a missing file."""
    try:
        handle = os.open(path, os.O_RDONLY)
    except FileNotFoundError:
        yield b""
        return
    try:
        yield mmap.mmap(handle, 0, access=mmap.ACCESS_READ) if os.fstat(handle).st_size else b""
    finally:
        os.close(handle)


def _fill_store(pages: Pages, damaged: Path, made: Path) -> SalvageReport:
    with contextlib.closing(sqlite3.connect(made, isolation_level=None)) as rows:
        add_functions(rows)
        rows.execute("PRAGMA journal_mode=OFF")
        rows.execute("PRAGMA synchronous=OFF")
        rows.execute(f"PRAGMA application_id={APPLICATION_ID}")
        rows.execute("BEGIN")
        begins, triggers = make_empty_tables(rows)
        done = salvage(pages, rows)
        if not any(done.rows.values()):
            raise BadInput(
                f"nothing in {damaged.name} can be read as part of a store; it stays as it is. Move it away, and bring back a backup "
                "with pagein import"
            )
        for table, statement in begins.items():
            if not count_of(rows, table):
                rows.execute(statement)
        _mark_missing_entries(rows, done)
        for statement in MOVED_ENTRIES:
            rows.execute(statement)
        _name_sessions(rows)
        if not unpack_all_references(rows) or "reference_segment" in done.torn:
            done.torn.add("reference")
            rows.execute("DELETE FROM reference_segment")
        _derive(rows, done.torn)
        _note_texts(rows)
        _note_targets(rows)
        for statement in triggers:
            rows.execute(statement)
        rows.execute("COMMIT")
        done.missing = [_by_id(rows, one) for one in done.missing]
        head = pages.page(1)
        if head is None or bytes(head[:16]) != MAGIC:
            done.untold.append("the first page is damaged, and with it the file's own list of what it holds")
    return done


def _mark_missing_entries(rows: sqlite3.Connection, done: SalvageReport) -> None:
    """Mark the places of missing entries, and restore the names of sessions, which an index has too."""
    for one in done.missing:
        if one.table in ("entry", "journal"):
            rows.execute(
                # its line may be in a segment
                f"INSERT OR IGNORE INTO {one.table}(number, session, id, codec, line) VALUES(?, ?, ?, ?, ?)",
                (one.row, one.key["session"], one.key["id"], FRAMED, IN_SEGMENT),
            )
        elif one.table == "writer_session":
            name = str(one.key["name"])
            rows.execute("INSERT OR IGNORE INTO writer_session VALUES(?, ?, ?)", (one.row, len(name), name))


def _name_sessions(rows: sqlite3.Connection) -> None:
    """Name the sessions of entries whose names are lost: by the leaf of a session, which is one of its entries, or by the number."""
    query = (
        "SELECT DISTINCT session FROM journal WHERE session NOT IN (SELECT number FROM writer_session) AND session <> ?"
    )
    lost = [int(number) for (number,) in rows.execute(query, (NOBODY,)).fetchall()]
    leaves = rows.execute("SELECT name, leaf FROM session").fetchall() if lost else []
    for number in lost:
        own = {bytes(key) for (key,) in rows.execute("SELECT id FROM journal WHERE session = ?", (number,)).fetchall()}
        names = [str(name) for name, leaf in leaves if entry_key(leaf) in own]
        for name in map(stored_name, (*names, f"session {number}, whose name is lost")):
            taken = "INSERT OR IGNORE INTO writer_session(number, size, name) VALUES(?, ?, ?)"
            rows.execute(taken, (number, len(name), name))


def _note_texts(rows: sqlite3.Connection) -> None:
    query = "SELECT number, codec, line FROM journal WHERE number > ? ORDER BY number LIMIT ?"
    page: Sequence[tuple[int, int, bytes]] = rows.execute(query, (-1, _AT_ONCE)).fetchall()
    while page:
        for number, codec, line in with_lines(rows, page):
            with contextlib.suppress(DamagedBlob):
                note_texts(rows, number, codec, line)
        page = rows.execute(query, (page[-1][0], _AT_ONCE)).fetchall()


def _note_targets(rows: sqlite3.Connection) -> None:
    """Store the lookup keys of targets anew: a file of an older schema has them in another form."""
    query = "SELECT number, target, reference, version FROM reference"
    for number, target, text, version in rows.execute(query).fetchall():
        with contextlib.suppress(DamagedBlob):
            key = target_key(encode_text(reference_in(rows, text, version).target))
            if key != target:
                rows.execute("UPDATE reference SET target = ? WHERE number = ?", (key, number))


def _by_id(rows: sqlite3.Connection, one: MissingRow) -> MissingRow:
    """Return a missing version with the id of its object in place of the row number; other rows unchanged."""
    if one.table != "version":
        return one
    found = rows.execute("SELECT id FROM document WHERE number = ?", (one.key["document"],)).fetchone()
    return one if found is None else replace(one, key={**one.key, "document": decode_text(found[0])})


def _derive(rows: sqlite3.Connection, torn: set[str]) -> None:
    versions: dict[int, list[Version]] = defaultdict(list)
    heads: dict[int, int] = {}
    query = f"SELECT document, {VERSION} FROM version ORDER BY document, version.number"  # noqa: S608 -- constants
    for document, *row in with_records(rows, rows.execute(query).fetchall(), 1, 1 + RECORD):
        heads[document] = row[0]
        with contextlib.suppress(DamagedBlob):
            versions[document].append(version_in(tuple(row)))
    read = [document for document in heads if versions[document]]
    for document in read:
        rows.execute("DELETE FROM document WHERE number = ? OR head = ?", (document, heads[document]))
    for document in sorted(read, key=lambda one: -heads[one]):
        _derive_object(rows, document, heads[document], versions[document], torn)
    # a document without versions must not block a nickname
    rows.execute("UPDATE document SET nickname = NULL WHERE number NOT IN (SELECT document FROM version)")
    (last,) = rows.execute("SELECT coalesce(max(sequence), 0) FROM version").fetchone()
    rows.execute("UPDATE tally SET sequence = max(sequence, ?)", (last,))
    # evicted objects of a dropped session stay, so an object does not prove that its session exists
    known = "SELECT name FROM session"
    if "life" in torn:
        known += " UNION SELECT session FROM object"
    names = {str(name) for (name,) in rows.execute(known).fetchall()}
    of_entries = "SELECT name FROM writer_session WHERE number IN (SELECT session FROM journal)"
    names.update(decode_text(name) for (name,) in rows.execute(of_entries).fetchall())
    rows.executemany(
        "INSERT OR IGNORE INTO life(session, touched) VALUES(?, CAST(strftime('%s') AS INTEGER))",
        [(name,) for name in sorted(names)],
    )
    rows.execute(
        """INSERT INTO paged(id, at) SELECT id, CAST(strftime('%s') AS INTEGER) FROM object
           WHERE id NOT IN (SELECT id FROM paged) ORDER BY rowid"""
    )


def _derive_object(
    rows: sqlite3.Connection, document: int, head: int, versions: Sequence[Version], torn: set[str]
) -> None:
    newest = versions[-1]
    nickname = None if newest.nickname is None else encode_text(newest.nickname)
    # a damaged document may have taken the nickname
    for name in dict.fromkeys((nickname, None)):
        rows.execute(
            "INSERT OR IGNORE INTO document(number, id, type, nickname, deleted, head) VALUES(?, ?, ?, ?, ?, ?)",
            (document, encode_text(newest.id), newest.type, name, int(newest.deleted), head),
        )
    if newest.sequence == head:
        rows.execute("DELETE FROM lookup_text WHERE document = ?", (document,))
    put_keys(rows, document, keys_of(newest), ())
    pinned_to_lost = """SELECT 1 FROM reference WHERE document = ? AND version IS NOT NULL
                        AND version NOT IN (SELECT sequence FROM version) LIMIT 1"""
    is_torn = "reference" in torn or rows.execute(pinned_to_lost, (document,)).fetchone() is not None
    if is_torn and [version.number for version in versions] == list(range(1, newest.number + 1)):
        with contextlib.suppress(DamagedBlob, MissingBlob, CallerError):
            sealed = [(version.sequence, _seal_version(rows, version)) for version in versions]
            rows.execute("DELETE FROM reference WHERE document = ?", (document,))
            for sequence, one in sealed:
                put_references(rows, document, sequence, one)


def _seal_version(rows: sqlite3.Connection, version: Version) -> SealedDraft:
    additional = {name: value_of(load_blob(rows, one)) for name, one in version.additional.items()}
    return SealedDraft.of(version.draft(None, additional))
