"""Trigram index in SQLite: a separate file beside the store's file, with FTS5's trigram tokenizer.

Contentless, without positions (`detail=none`: a twelfth of the size) and case-sensitive, because the texts are folded already.
"""

import contextlib
import sqlite3
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from pagein.policy.recall.patterns import Every, Gram, Need
from pagein.store.search.trigram_index import AGAIN, ANEW, SHELVES, STATE, TrigramIndex
from pagein.store.sql.sql_rows import Rows
from pagein.store.sql.sqlite_schema import Schema
from pagein.store.sqlite.sqlite_database import SqliteDatabase

SUFFIX: Final = "-search"
"""Suffix of the index's file name after the store's file name."""
_TABLE: Final = "fts5(body, content='', detail=none, columnsize=0, tokenize='trigram case_sensitive 1')"
_SCHEMA: Final = Schema(
    0x50474932,
    "a search index",
    (
        ("grams by place", (*STATE, *(f"CREATE VIRTUAL TABLE grams_{name} USING {_TABLE}" for name in SHELVES))),
        *(
            (step, (*(f"INSERT INTO grams_{name}(grams_{name}) VALUES('delete-all')" for name in SHELVES), AGAIN))
            for step in ANEW
        ),
    ),
)
_MERGED: Final = 500


class SqliteIndex(TrigramIndex):
    """The index in a single file."""

    def __init__(self, path: Path) -> None:
        self.path = path
        super().__init__(SqliteDatabase(path, _SCHEMA), _FtsGrams())


class _FtsGrams:
    def put(self, rows: Rows, shelf: str, texts: Sequence[tuple[int, str]]) -> None:
        for place, text in texts:
            rows.execute(f"INSERT INTO grams_{shelf}(rowid, body) VALUES(?, ?)", (place, text))

    def clear(self, rows: Rows, shelf: str) -> None:
        rows.execute(f"INSERT INTO grams_{shelf}(grams_{shelf}) VALUES('delete-all')")

    def merge(self, rows: Rows, shelf: str) -> bool:
        before = _changes(rows)
        rows.execute(f"INSERT INTO grams_{shelf}(grams_{shelf}, rank) VALUES('merge', ?)", (_MERGED,))
        return _changes(rows) - before > 1

    def places(self, rows: Rows, shelf: str, need: Need, below: int, size: int) -> list[int]:
        query = f"SELECT rowid FROM grams_{shelf} WHERE grams_{shelf} MATCH ? AND rowid < ? ORDER BY rowid DESC LIMIT ?"  # noqa: S608 -- a table name of pagein's own schema
        return [place for (place,) in rows.execute(query, (fts_query(need), below, size)).fetchall()]


def empty_sqlite_index(path: Path) -> None:
    """Empty an index with its freed pages and its log, to be rebuilt from the stored content. Raises sqlite3.Error."""
    with contextlib.closing(sqlite3.connect(path, isolation_level=None, timeout=5.0)) as connection:
        connection.execute("BEGIN IMMEDIATE")
        for name in SHELVES:
            connection.execute(f"INSERT INTO grams_{name}(grams_{name}) VALUES('delete-all')")
        connection.execute(AGAIN)
        connection.execute("COMMIT")
        connection.execute("VACUUM")
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()


def _changes(rows: Rows) -> int:
    found = rows.execute("SELECT total_changes()").fetchone()
    return 0 if found is None else int(found[0])


def fts_query(need: Need) -> str:
    """Translate a need into an FTS5 query.

    Each trigram is a separate term, because there are no phrases without positions.
    """
    if isinstance(need, Gram):
        return '"' + need.text.replace('"', '""') + '"'
    word = " AND " if isinstance(need, Every) else " OR "
    return "(" + word.join(fts_query(part) for part in need.needs) + ")"


def usable() -> bool:
    """Return whether the installed SQLite has trigrams (3.34 and FTS5).

    Without trigrams, every search is a full scan.
    """
    with contextlib.closing(sqlite3.connect(":memory:")) as connection:
        try:
            connection.execute(f"CREATE VIRTUAL TABLE t USING {_TABLE}")
        except sqlite3.Error:
            return False
    return True
