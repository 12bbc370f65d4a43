"""The trigram index: which stored things may hold what a pattern needs.

Rules of this file
------------------
1. The index is derived. It may be missing, damaged or thrown away at any time; then more is scanned, and it is built anew.
2. It is kept where building it never keeps a writer of the store waiting: in a file, or a schema with a lock, of its own.
3. It knows whose it is: it notes a hash of the last thing it has seen, and believes itself only while the store agrees.
4. Texts go in folded (`policy/recall/patterns.py`), so that no answer depends on what a database knows of Unicode.
5. It keeps no texts and no positions. So a need is asked for gram by gram, and a thing is never taken out again.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final, Protocol

from pagein.errors import StoreError
from pagein.policy.recall.patterns import Need
from pagein.store.search.shelves import Shelf
from pagein.store.sql.sql_rows import Rows, SqlDatabase

SHELVES: Final = ("v", "p")
"""The names of all shelves that there are."""
STATE: Final = (
    # begun: how often the index of this shelf was begun anew
    "CREATE TABLE shelf(name TEXT PRIMARY KEY, upto INTEGER NOT NULL, mark TEXT NOT NULL, begun INTEGER NOT NULL)",
    *(f"INSERT INTO shelf(name, upto, mark, begun) VALUES('{name}', 0, '', 0)" for name in SHELVES),
)
"""What makes the table that tells how far an index has come."""
_FIRST: Final = 64
_PAGE: Final = 4_096


class Grams(Protocol):
    """How one kind of database keeps grams by place, a table for each shelf."""

    def put(self, rows: Rows, shelf: str, texts: Sequence[tuple[int, str]]) -> None:
        """Keep the grams of these folded texts."""
        ...

    def clear(self, rows: Rows, shelf: str) -> None:
        """Forget all of a shelf."""
        ...

    def merge(self, rows: Rows, shelf: str) -> bool:
        """Put a little in order. False when all is in order."""
        ...

    def places(self, rows: Rows, shelf: str, need: Need, below: int, size: int) -> list[int]:
        """The highest places under `below` that meet a need, highest first, at most `size`."""
        ...


@dataclass(frozen=True, slots=True)
class _IndexState:
    """How far the index of a shelf has come. mark: of the thing there. begun: how often it was begun anew."""

    upto: int
    mark: str
    begun: int


_NOWHERE: Final = _IndexState(0, "", -1)


class TrigramIndex:
    """An Index that can be added to. Raises StoreError from `known`, `add`, `forget` and `tidy` alone."""

    def __init__(self, database: SqlDatabase, grams: Grams) -> None:
        self._database, self._grams = database, grams

    def covered_place(self, shelf: Shelf) -> int:
        """Up to which place it knows this very shelf."""
        try:
            state = self._state(shelf.name)
            return state.upto if state.upto and shelf.mark(state.upto) == state.mark else 0
        except StoreError:
            return 0

    def candidates(self, shelf: Shelf, need: Need, below: int) -> Iterator[int]:
        """Covered places under `below` whose texts may meet the need, highest first. None is left out that does."""
        size, begun = _FIRST, None
        while below > 1:
            try:
                state, places = self._page(shelf.name, need, below, size)
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

    def known_place(self, shelf: Shelf) -> int:
        """Up to which place it has come, whoever's that is."""
        return self._state(shelf.name).upto

    def add(self, shelf: Shelf, above: int, texts: Sequence[tuple[int, str]], upto: int) -> bool:
        """Take in the folded texts of the things above a place and up to another. False where that was not the next to come."""
        mark = shelf.mark(upto)
        with self._database.open_writer() as rows:
            if _state(rows, shelf.name).upto != above:
                return False
            self._grams.put(rows, shelf.name, texts)
            rows.execute("UPDATE shelf SET upto = ?, mark = ? WHERE name = ?", (upto, mark, shelf.name))
        return True

    def forget(self, shelf: Shelf) -> None:
        """Begin anew: what it knows is of another store."""
        with self._database.open_writer() as rows:
            self._grams.clear(rows, shelf.name)
            rows.execute("UPDATE shelf SET upto = 0, mark = '', begun = begun + 1 WHERE name = ?", (shelf.name,))

    def tidy(self, shelf: Shelf) -> bool:
        """Put a little in order of what was added, so that asking stays fast. False when all is in order."""
        with self._database.open_writer() as rows:
            return self._grams.merge(rows, shelf.name)

    def close(self) -> None:
        """Let go of the database."""
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
