"""The trigram index of an embedded store: a SQLite file of its own, beside the store's.

Rules of this file
------------------
1. The index is derived. It may be missing, damaged or thrown away at any time; then more is scanned, and it is built anew.
2. It has a file of its own, so that building it never keeps a writer of the store waiting.
3. It knows whose it is: it notes a hash of the last thing it has seen, and believes itself only while the store agrees.
4. Texts go in folded (`policy/patterns.py`), with case told apart, so that no answer depends on what SQLite knows of Unicode.
5. It is contentless and keeps no positions. So a need is asked for gram by gram, and a text is never taken out again.
"""

import contextlib
import sqlite3
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from pagein.errors import StoreError
from pagein.policy.patterns import Every, Gram, Need
from pagein.store.database import Database
from pagein.store.schema import Schema
from pagein.store.search_shelves import Shelf

SUFFIX: Final = "-search"
"""What the index's file name has behind the store's."""
_SCHEMA: Final = Schema(
    0x50474932,
    "a search index",
    (
        (
            "grams by place",
            (
                # begun: how often the index of this shelf was begun anew
                """CREATE TABLE shelf(
                     name TEXT PRIMARY KEY, upto INTEGER NOT NULL DEFAULT 0, mark TEXT NOT NULL DEFAULT '',
                     begun INTEGER NOT NULL DEFAULT 0)""",
                "INSERT INTO shelf(name) VALUES('v'), ('p')",
                *(
                    f"CREATE VIRTUAL TABLE grams_{name} USING fts5(body, content='', detail=none, columnsize=0, "
                    "tokenize='trigram case_sensitive 1')"
                    for name in "vp"
                ),
            ),
        ),
    ),
)
_FIRST: Final = 64
_PAGE: Final = 4_096
_MERGED: Final = 500


@dataclass(frozen=True, slots=True)
class _State:
    """How far the index of a shelf has come. mark: of the thing there. begun: how often it was begun anew."""

    upto: int
    mark: str
    begun: int


_NOWHERE: Final = _State(0, "", -1)


class SqliteIndex:
    """An Index that can be added to, in one file. Raises StoreError from `add` and `tidy` alone."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._database = Database(path, _SCHEMA)

    def covered(self, shelf: Shelf) -> int:
        try:
            state = self._state(shelf.name)
            return state.upto if state.upto and shelf.mark(state.upto) == state.mark else 0
        except StoreError:
            return 0

    def candidates(self, shelf: Shelf, need: Need, below: int) -> Iterator[int]:
        expression, size, begun = matching(need), _FIRST, None
        while below > 1:
            try:
                state, places = self._page(shelf.name, expression, below, size)
            except StoreError:
                state, places = _NOWHERE, []
            begun = state.begun if begun is None else begun
            if state.upto < below - 1 or state.begun != begun:  # damaged, or begun anew meanwhile
                yield from range(below - 1, 0, -1)
                return
            yield from places
            if len(places) < size:
                return
            below, size = places[-1], min(4 * size, _PAGE)

    def add(self, shelf: Shelf, above: int, texts: Sequence[tuple[int, str]], upto: int) -> bool:
        """Take in the folded texts of the things above a place and up to another. False where that was not the next to come."""
        mark = shelf.mark(upto)
        with self._database.writing() as connection:
            if _state(connection, shelf.name).upto != above:
                return False
            connection.executemany(f"INSERT INTO {_table(shelf.name)}(rowid, body) VALUES(?, ?)", texts)
            connection.execute("UPDATE shelf SET upto = ?, mark = ? WHERE name = ?", (upto, mark, shelf.name))
        return True

    def forget(self, shelf: Shelf) -> None:
        """Begin anew: what it knows is of another store."""
        with self._database.writing() as connection:
            table = _table(shelf.name)
            connection.execute(f"INSERT INTO {table}({table}) VALUES('delete-all')")
            connection.execute("UPDATE shelf SET upto = 0, mark = '', begun = begun + 1 WHERE name = ?", (shelf.name,))

    def known(self, shelf: Shelf) -> int:
        """Up to which place it has come, whoever's that is."""
        return self._state(shelf.name).upto

    def tidy(self, shelf: Shelf) -> bool:
        """Merge a little of what was added, so that asking stays fast. False when there is nothing left to merge."""
        table = _table(shelf.name)
        with self._database.writing() as connection:
            before = connection.total_changes
            connection.execute(f"INSERT INTO {table}({table}, rank) VALUES('merge', ?)", (_MERGED,))
            return connection.total_changes - before > 1

    def close(self) -> None:
        """Let go of the file."""
        self._database.close()

    def _state(self, name: str) -> _State:
        with self._database.reading() as connection:
            return _state(connection, name)

    def _page(self, name: str, expression: str, below: int, size: int) -> tuple[_State, list[int]]:
        table = _table(name)
        query = f"SELECT rowid FROM {table} WHERE {table} MATCH ? AND rowid < ? ORDER BY rowid DESC LIMIT ?"  # noqa: S608 -- ours
        with self._database.reading() as connection:
            found = connection.execute(query, (expression, below, size)).fetchall()
            return _state(connection, name), [place for (place,) in found]


def _table(name: str) -> str:
    return f"grams_{name}"


def _state(connection: sqlite3.Connection, name: str) -> _State:
    found = connection.execute("SELECT upto, mark, begun FROM shelf WHERE name = ?", (name,)).fetchone()
    return _NOWHERE if found is None else _State(*found)


def matching(need: Need) -> str:
    """A need in FTS5's words: every gram is a term of its own, since without positions there are no phrases."""
    if isinstance(need, Gram):
        return '"' + need.text.replace('"', '""') + '"'
    word = " AND " if isinstance(need, Every) else " OR "
    return "(" + word.join(matching(part) for part in need.needs) + ")"


def usable() -> bool:
    """Whether the SQLite at hand has trigrams (3.34 and FTS5); without, everything is scanned."""
    with contextlib.closing(sqlite3.connect(":memory:")) as connection:
        try:
            connection.execute(
                "CREATE VIRTUAL TABLE t USING fts5(b, content='', detail=none, tokenize='trigram case_sensitive 1')"
            )
        except sqlite3.Error:
            return False
    return True
