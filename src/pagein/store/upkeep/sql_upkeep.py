"""Maintenance operations of a SQL store: listing, checking, collecting.

Rules of this file
------------------
1. Numbers of blobs and entries are never reused, because readers remember their positions by number.
2. An object with an id of this store's own key is deleted completely: the tag in its id still proves that it existed. An imported object
   has another key's tag; its bare record stays, so that recall reports *expired* and not *never existed*.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any, Final

from pagein.errors import DamagedBlob
from pagein.model.codec import encode_entry
from pagein.model.derived_versions import ARCHIVED, INDEXER
from pagein.model.entries import Entry, EntryId, is_bridge
from pagein.model.links import LastingLink
from pagein.model.names import ContentHash
from pagein.model.objects import EXPIRED, ObjectId, StoredObject
from pagein.model.store_inventory import JournalLine, KeptSession
from pagein.store.sql.packed_bytes import BRIDGE, BUNDLE, MEMBER, PINNED, PackedLine, pack_line, texts_in
from pagein.store.sql.short_names import OF_SESSION, entry_id, entry_key, session_number, stored_name
from pagein.store.sql.sql_answers import answers_in_numbers, answers_in_texts
from pagein.store.sql.sql_blobs import OBJECT_COLUMNS, SqlBlobs, hash_of_name, is_shared, object_of_row
from pagein.store.sql.sql_bundles import BLOBS, DATA
from pagein.store.sql.sql_journals import load_line, put_texts, remove_blob
from pagein.store.sql.sql_lines import LINES, free_heads, line_sizes, with_lines
from pagein.store.sql.sql_references import lasting_links
from pagein.store.sql.sql_rows import Row, Rows, decode_text, encode_text, plain
from pagein.store.sql.sql_versions import SESSION

_PAGE: Final = 500
_LINES: Final = """SELECT journal.number, codec, line, name, id FROM journal JOIN writer_session ON writer_session.number = session
  WHERE journal.number > ? ORDER BY journal.number LIMIT ?"""
# a member of a bundle takes its share of the bundle
_MEMBERS: Final = """SELECT member.hash, length(bundle.data) / share.members
  FROM (SELECT base, count(*) AS members FROM blob WHERE codec IN (?, ?) GROUP BY base) AS share
  JOIN blob AS bundle ON bundle.number = share.base
  JOIN blob AS member ON member.base = bundle.number AND member.codec IN (?, ?)"""


class SqlUpkeep(SqlBlobs):
    """The maintenance half of a WholeStore, except for the parts that depend on the database."""

    def sessions(self) -> Sequence[KeptSession]:
        with self._database.open_reader() as rows:
            known = rows.execute("SELECT number, name FROM writer_session").fetchall()
            taken = line_sizes(rows)
            sizes = {decode_text(name): taken[number] for number, name in known if number in taken}
            leaves = _table(rows, "SELECT name, leaf FROM session")
            touched = _table(rows, "SELECT session, touched FROM life")
            ended = _table(rows, "SELECT session, ended FROM life")
        names = sorted({*sizes, *leaves, *touched})
        return tuple(
            KeptSession(
                name,
                leaves.get(name),
                float(touched[name]) if name in touched else None,
                bool(ended.get(name)),
                int(sizes.get(name, 0)),
            )
            for name in names
        )

    def paged_objects(self) -> Iterator[StoredObject]:
        last = ""
        while page := self._page(f"SELECT {OBJECT_COLUMNS} FROM object WHERE id > ? ORDER BY id LIMIT ?", last):  # noqa: S608 -- a constant
            last = page[-1][0]
            yield from map(object_of_row, page)

    def blob_sizes(self) -> Mapping[ContentHash, int]:
        with self._database.open_reader() as rows:
            found = rows.execute(f"SELECT hash, length({DATA}) FROM {BLOBS} WHERE codec < ?", (BUNDLE,)).fetchall()  # noqa: S608 -- constants
            members = rows.execute(_MEMBERS, (MEMBER, PINNED, MEMBER, PINNED)).fetchall()
        return {hash_of_name(name): int(size) for name, size in (*found, *members)}

    def journal_lines(self, after: int = 0) -> Iterator[JournalLine]:
        while True:
            with self._database.open_reader() as rows:
                page = with_lines(rows, rows.execute(_LINES, (after, _PAGE)).fetchall())
                lines = [_line(rows, *row) for row in page]
            yield from lines
            if not page:
                return
            after = page[-1][0]

    def adopt_secret(self, secret: bytes) -> bool:
        with self._database.open_writer() as rows:
            rows.execute("INSERT INTO secret(number, key) VALUES(1, ?) ON CONFLICT DO NOTHING", (secret,))
        return self.secret() == secret

    def end_session(self, name: str) -> None:
        with self._database.open_writer() as rows:
            rows.execute("UPDATE life SET ended = 1 WHERE session = ?", (plain(name),))

    def stand(self, session: str, leaf: EntryId) -> None:
        with self._database.open_writer() as rows:
            rows.execute(
                "INSERT INTO session(name, leaf) VALUES(?, ?) ON CONFLICT(name) DO UPDATE SET leaf = excluded.leaf",
                (plain(session), plain(leaf)),
            )

    def put_entry(self, session: str, place: int, entry: Entry) -> None:
        line = encode_entry(entry)
        with self._database.open_writer() as rows:
            shared = partial(is_shared, rows)
            packed = PackedLine(BRIDGE, line, {}) if is_bridge(entry) else pack_line(line, shared)
            taken = (place, session_number(rows, stored_name(session)), entry_key(entry.id))
            _drop_entries(rows, "number = ? OR (session = ? AND id = ?)", taken, whole=False)
            self._take_number(rows, place)
            rows.execute(
                "INSERT INTO journal(number, session, id, codec, line) VALUES(?, ?, ?, ?, ?)",
                (*taken, packed.codec, packed.data),
            )
            put_texts(rows, place, packed)

    def requests(self) -> Iterator[tuple[str, int]]:
        for page_behind in (answers_in_texts, answers_in_numbers):
            last = ""
            while page := self._answers(page_behind, last):
                last = page[-1][0]
                yield from page

    def lasting_links(self, object_id: str) -> Sequence[LastingLink]:
        with self._database.open_reader() as rows:
            found = rows.execute("SELECT number FROM document WHERE id = ?", (encode_text(object_id),)).fetchone()
            return () if found is None else tuple(lasting_links(rows, int(found[0])))

    def drop_sessions(self, names: Sequence[str]) -> None:
        with self._database.open_writer() as rows:
            self._hold_numbers(rows)
            for name in map(plain, names):
                _drop_entries(rows, OF_SESSION, (stored_name(name),))
                rows.execute("DELETE FROM session WHERE name = ?", (name,))
                rows.execute("DELETE FROM life WHERE session = ?", (name,))
                made = f"UPDATE version SET writer = ? WHERE {SESSION} = ? AND writer = ?"  # noqa: S608 -- a constant
                rows.execute(made, (ARCHIVED, name, INDEXER))

    def drop_objects(self, object_ids: Sequence[ObjectId]) -> None:
        secret = self.secret()
        with self._database.open_writer() as rows:
            for one in object_ids:
                if one.is_made_with(secret):
                    rows.execute("DELETE FROM object WHERE id = ?", (str(one),))
                else:
                    bare = "UPDATE object SET kind = ?, description = '' WHERE id = ?"
                    rows.execute(bare, (EXPIRED, str(one)))

    def drop_blobs(self, names: Sequence[ContentHash]) -> int:
        with self._database.open_writer() as rows:
            self._hold_blob_numbers(rows)
            return sum(remove_blob(rows, name) for name in dict.fromkeys(names))

    def _take_number(self, rows: Rows, place: int) -> None:
        """Prevent the use of a number, and of smaller ones, for further entries."""

    def _hold_numbers(self, rows: Rows) -> None:
        """Prevent the reuse of the numbers of entries about to be deleted."""

    def _hold_blob_numbers(self, rows: Rows) -> None:
        """Prevent the reuse of the numbers of blobs about to be deleted."""

    def _answers(
        self, page_behind: Callable[[Rows, str, int], list[tuple[str, int]]], last: str
    ) -> list[tuple[str, int]]:
        with self._database.open_reader() as rows:
            return page_behind(rows, last, _PAGE)

    def _page(self, query: str, after: str | int) -> list[Row]:
        with self._database.open_reader() as rows:
            return rows.execute(query, (after, _PAGE)).fetchall()


def _table(rows: Rows, query: str) -> dict[str, Any]:
    return {str(name): value for name, value in rows.execute(query).fetchall()}


def _drop_entries(rows: Rows, wanted: str, values: Sequence[object], *, whole: bool = True) -> None:
    """Delete the entries that meet a condition, with their lines. whole: whether they are all entries of their session"""
    found = rows.execute(f"SELECT number FROM journal WHERE {wanted}", values).fetchall()  # noqa: S608 -- constants
    numbers = [int(number) for (number,) in found]
    if not whole:
        free_heads(rows, numbers)
    LINES.drop(rows, numbers)
    rows.execute(f"DELETE FROM journal WHERE {wanted}", values)  # noqa: S608 -- constants


def _line(rows: Rows, number: int, codec: int, data: bytes, name: str, key: bytes) -> JournalLine:
    session, entry = decode_text(name), entry_id(bytes(key))
    try:
        line = load_line(rows, codec, bytes(data))
        return JournalLine(number, session, line, id=entry, texts=tuple(texts_in(codec, bytes(data))))
    except DamagedBlob:
        return JournalLine(number, session, bytes(data), damaged=True, id=entry)
