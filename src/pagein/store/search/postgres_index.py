"""Trigram index in PostgreSQL: arrays of numbers under a GIN index, in a schema beside the store's.

No extension is needed, and the pattern dialect is the same as in other stores, because the database only names candidates. A trigram is
stored as 32 bits of a hash; a collision adds a candidate, and never loses a candidate.
"""

import contextlib
import zlib
from collections.abc import Sequence
from typing import Final

from pagein.policy.recall.patterns import Every, Gram, Need, grams
from pagein.store.postgres.postgres_database import PostgresDatabase
from pagein.store.postgres.postgres_schema import dialect
from pagein.store.search.trigram_index import AGAIN, ANEW, SHELVES, STATE, TrigramIndex
from pagein.store.sql.sql_rows import Rows

_SIGN: Final = 1 << 31
_HOLDS: Final = "grams @> ?::integer[]"
_STEPS: Final = (
    (
        "grams by place",
        (
            *map(dialect, STATE),
            *(f"CREATE TABLE grams_{name}(place BIGINT NOT NULL, grams INTEGER[] NOT NULL)" for name in SHELVES),
            *(f"CREATE INDEX grams_{name}_by_gram ON grams_{name} USING GIN (grams)" for name in SHELVES),
        ),
    ),
    *((step, (*(f"TRUNCATE grams_{name}" for name in SHELVES), AGAIN)) for step in ANEW),
)


class PostgresIndex(TrigramIndex):
    """The index in a separate schema, named after the store's schema."""

    def __init__(self, store: PostgresDatabase) -> None:
        super().__init__(store.beside("search", _STEPS), _ArrayGrams())


def empty_postgres_index(store: PostgresDatabase) -> None:
    """Empty a store's index, to be rebuilt from the stored content. Raises StoreError."""
    database = store.beside("search", _STEPS)
    with contextlib.closing(database), database.open_writer() as rows:
        for name in SHELVES:
            rows.execute(f"TRUNCATE grams_{name}")
        rows.execute(AGAIN)


class _ArrayGrams:
    def put(self, rows: Rows, shelf: str, texts: Sequence[tuple[int, str]]) -> None:
        for place, text in texts:
            numbers = sorted({_number(gram) for gram in grams(text)})
            rows.execute(f"INSERT INTO grams_{shelf}(place, grams) VALUES(?, ?::integer[])", (place, numbers))

    def clear(self, rows: Rows, shelf: str) -> None:
        rows.execute(f"TRUNCATE grams_{shelf}")

    def merge(self, rows: Rows, shelf: str) -> bool:
        rows.execute(f"SELECT gin_clean_pending_list('grams_{shelf}_by_gram')")
        return False

    def places(self, rows: Rows, shelf: str, need: Need, below: int, size: int) -> list[int]:
        condition, values = _condition(need)
        # the planner counts only the small table, not the arrays stored outside of it, and would choose to read every array
        query = f"""WITH met AS MATERIALIZED (SELECT place FROM grams_{shelf} WHERE {condition})
            SELECT place FROM met WHERE place < ? ORDER BY place DESC LIMIT ?"""  # noqa: S608 -- a table name of pagein's own schema
        rows.execute("BEGIN")
        try:
            rows.execute("SET LOCAL enable_seqscan = off")
            found = rows.execute(query, (*values, below, size)).fetchall()
        finally:
            rows.execute("ROLLBACK")
        return [place for (place,) in found]


def _condition(need: Need) -> tuple[str, list[object]]:
    """Return a WHERE condition for a need, with its values. Trigrams needed together go into a single condition."""
    if isinstance(need, Gram):
        return _HOLDS, [[_number(need.text)]]
    together: list[object] = [[_number(part.text) for part in need.needs if isinstance(part, Gram)]]
    pairs = [_condition(part) for part in need.needs if not (isinstance(need, Every) and isinstance(part, Gram))]
    if isinstance(need, Every) and together != [[]]:
        pairs.append((_HOLDS, together))
    word = " AND " if isinstance(need, Every) else " OR "
    return "(" + word.join(text for text, _ in pairs) + ")", [value for _, values in pairs for value in values]


def _number(gram: str) -> int:
    return zlib.crc32(gram.encode()) - _SIGN
