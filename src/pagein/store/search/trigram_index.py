"""Trigram index: names the stored items that may match a pattern.

Rules of this file
------------------
1. The index is derived. It may be missing, damaged or deleted at any time; then searches scan more, and the index is rebuilt.
2. The index has a separate file, or a schema with a separate lock, so that building it never blocks a writer of the store.
3. The index records a hash of the last indexed item, and counts as valid only while the store has the same item there.
4. Texts are indexed folded (`policy/recall/patterns.py`), so that no answer depends on a database's knowledge of Unicode.
5. The index stores no texts and no positions. So a need is queried trigram by trigram, and an item is never removed.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final, Protocol

from pagein.errors import StoreError
from pagein.policy.recall.patterns import Need
from pagein.store.search.shelves import Shelf
from pagein.store.sql.sql_rows import Rows, SqlDatabase

SHELVES: Final = ("v", "p")
"""The names of every shelf."""
STATE: Final = (
    # begun: number of rebuilds of this shelf's index
    "CREATE TABLE shelf(name TEXT PRIMARY KEY, upto INTEGER NOT NULL, mark TEXT NOT NULL, begun INTEGER NOT NULL)",
    *(f"INSERT INTO shelf(name, upto, mark, begun) VALUES('{name}', 0, '', 0)" for name in SHELVES),
)
"""Statements that create the table with the index's progress."""
AGAIN: Final = "UPDATE shelf SET upto = 0, mark = '', begun = begun + 1"
"""Statement that begins every shelf's index again, after its trigrams are deleted."""
ANEW: Final = ("names of sessions", "types of items", "items with half of a surrogate pair in a name", "chats of items")
"""What an index of an older form lacks, so that it is begun again."""
_FIRST: Final = 64
_PAGE: Final = 4_096


class Grams(Protocol):
    """Storage of trigrams by place in a kind of database, in a table per shelf."""

    def put(self, rows: Rows, shelf: str, texts: Sequence[tuple[int, str]]) -> None:
        """Store the trigrams of folded texts by place."""
        ...

    def clear(self, rows: Rows, shelf: str) -> None:
        """Delete every trigram of a shelf."""
        ...

    def merge(self, rows: Rows, shelf: str) -> bool:
        """Merge a few segments. Return False if there is nothing left to merge."""
        ...

    def places(self, rows: Rows, shelf: str, need: Need, below: int, size: int) -> list[int]:
        """Return the highest places below `below` that meet a need, highest first, at most `size`."""
        ...


@dataclass(frozen=True, slots=True)
class _IndexState:
    """Progress of the index of a shelf.

    upto: the last indexed place
    mark: hash of the item there
    begun: number of rebuilds
    """

    upto: int
    mark: str
    begun: int


_NOWHERE: Final = _IndexState(0, "", -1)


class TrigramIndex:
    """An Index with build operations. Only `known_place`, `add`, `forget` and `tidy` raise StoreError."""

    def __init__(self, database: SqlDatabase, grams: Grams) -> None:
        self._database, self._grams = database, grams

    def covered_place(self, shelf: Shelf) -> int:
        """Return the place up to which the index covers this very shelf."""
        try:
            state = self._state(shelf.name)
            return state.upto if state.upto and shelf.mark(state.upto) == state.mark else 0
        except StoreError:
            return 0

    def candidates(self, shelf: Shelf, need: Need, below: int) -> Iterator[int]:
        """Yield covered places below `below` whose texts may meet the need, highest first.

        Complete: no matching place is missing.
        """
        size, begun = _FIRST, None
        while below > 1:
            try:
                state, places = self._page(shelf.name, need, below, size)
            except StoreError:
                state, places = _NOWHERE, []
            begun = state.begun if begun is None else begun
            if state.upto < below - 1 or state.begun != begun:  # damaged, or rebuilt meanwhile
                yield from range(below - 1, 0, -1)
                return
            yield from places
            if len(places) < size:
                return
            below, size = places[-1], min(4 * size, _PAGE)

    def known_place(self, shelf: Shelf) -> int:
        """Return the place reached by the index, whether or not the shelf still matches."""
        return self._state(shelf.name).upto

    def add(self, shelf: Shelf, above: int, texts: Sequence[tuple[int, str]], upto: int) -> bool:
        """Add the folded texts of the items between two places.

        Return False if the range does not continue the index.
        """
        mark = shelf.mark(upto)
        with self._database.open_writer() as rows:
            if _state(rows, shelf.name).upto != above:
                return False
            self._grams.put(rows, shelf.name, texts)
            rows.execute("UPDATE shelf SET upto = ?, mark = ? WHERE name = ?", (upto, mark, shelf.name))
        return True

    def forget(self, shelf: Shelf) -> None:
        """Clear the index of a shelf, because it belongs to another store."""
        with self._database.open_writer() as rows:
            self._grams.clear(rows, shelf.name)
            rows.execute("UPDATE shelf SET upto = 0, mark = '', begun = begun + 1 WHERE name = ?", (shelf.name,))

    def tidy(self, shelf: Shelf) -> bool:
        """Merge a few of the added segments to keep queries fast. Return False if there is nothing left to merge."""
        with self._database.open_writer() as rows:
            return self._grams.merge(rows, shelf.name)

    def close(self) -> None:
        """Close the database."""
        self._database.close()

    def _state(self, name: str) -> _IndexState:
        with self._database.open_reader() as rows:
            return _state(rows, name)

    def _page(self, name: str, need: Need, below: int, size: int) -> tuple[_IndexState, list[int]]:
        with self._database.open_reader() as rows:
            return _state(rows, name), self._grams.places(rows, name, need, below, size)


def _state(rows: Rows, name: str) -> _IndexState:
    found = rows.execute("SELECT upto, mark, begun FROM shelf WHERE name = ?", (name,)).fetchone()
    return _NOWHERE if found is None else _IndexState(*found)
