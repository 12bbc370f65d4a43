"""Store which objects have a lookup key, as pairs of numbers in the table `lookup`.

Rules of this file
------------------
1. A row has a key, an object, and further objects with the key, in the order of their numbers: most pairs share their key with others, and
   a row for each took three times the room.
2. The ranges of two rows with one key never overlap, so a pair is looked up in one step.
3. In an older store a row has one object. Such rows are joined in the pauses between calls (`join_pairs`).
"""

import itertools
from collections.abc import Collection, Iterable, Sequence
from typing import Any, Final

import msgspec

from pagein.errors import DamagedBlob
from pagein.store.sql.sql_rows import Row, Rows, batches, question_marks

MOST: Final = 256
"""Objects in a row, at most. A change writes the row again."""
_AT_ONCE: Final = 500
_LEFT: Final = "store.pairs"
"""Name of the row of `layer` with the last key of an older store whose rows are joined."""
_OF_KEY: Final = """SELECT * FROM (SELECT key, document, further FROM lookup WHERE key = ? AND document <= ?
  ORDER BY document DESC LIMIT 1) AS found"""
_KEYS: Final = 16
"""Keys looked up by one statement, at most."""
_distances: Final = msgspec.msgpack.Decoder(list[int])


def put_pairs(rows: Rows, keys: Collection[int], document: int) -> None:
    """Store that an object has some keys, unless it is stored already."""
    found = _rows_around(rows, keys, document)
    for key in sorted(set(keys)):
        _put_pair(rows, key, document, found.get(key))


def put_pair(rows: Rows, key: int, document: int) -> None:
    """Store that an object has a key, unless it is stored already."""
    put_pairs(rows, (key,), document)


def _put_pair(rows: Rows, key: int, document: int, row: Sequence[Any] | None) -> None:
    if row is None:
        _insert(rows, key, (document,))
        return
    documents = _documents(row)
    if documents[-1] < document:
        if len(documents) >= MOST:
            _insert(rows, key, (document,))
        else:
            _replace(rows, key, row[0], (*documents, document))
    elif document not in documents:
        more = sorted((*documents, document))
        _replace(rows, key, row[0], more[:MOST])
        if len(more) > MOST:
            _insert(rows, key, more[MOST:])


def drop_pairs(rows: Rows, keys: Collection[int], document: int) -> None:
    """Forget that an object has some keys. Of a damaged row only the first object stays, so that `pagein reindex` can mend it."""
    for key, row in sorted(_rows_around(rows, keys, document).items()):
        try:
            documents = _documents(row)
        except DamagedBlob:
            _replace(rows, key, row[0], [one for one in row[:1] if one != document])
            continue
        if document in documents:
            _replace(rows, key, row[0], [one for one in documents if one != document])


def drop_pair(rows: Rows, key: int, document: int) -> None:
    """Forget that an object has a key, as `drop_pairs` does."""
    drop_pairs(rows, (key,), document)


def _rows_around(rows: Rows, keys: Collection[int], document: int) -> dict[int, Row]:
    """Return the row of each key whose range has an object in it, or ends before it, as far as there is one."""
    found: dict[int, Row] = {}
    wanted = sorted(set(keys))
    for first in range(0, len(wanted), _KEYS):
        some = wanted[first : first + _KEYS]
        query = " UNION ALL ".join([_OF_KEY] * len(some))
        values = [value for key in some for value in (key, document)]
        found.update((int(key), tuple(row)) for key, *row in rows.execute(query, values).fetchall())
    return found


def documents_with(rows: Rows, keys: Sequence[int]) -> set[int]:
    """Return the objects that have one of some keys."""
    found: set[int] = set()
    for some in batches(keys):
        query = f"SELECT document, further FROM lookup WHERE key IN ({question_marks(some)})"  # noqa: S608 -- question marks
        for row in rows.execute(query, some).fetchall():
            found.update(_documents(row))
    return found


def join_pairs(rows: Rows) -> int:
    """Join some rows of an older store. Return the number of rows; 0 at the end."""
    left = rows.execute("SELECT place FROM layer WHERE name = ?", (_LEFT,)).fetchone()
    if left is None:
        return 0
    query = "SELECT key, document, further FROM lookup WHERE key > ? ORDER BY key, document LIMIT ?"
    found = rows.execute(query, (left[0], _AT_ONCE)).fetchall()
    for key, group in itertools.groupby(found, key=lambda row: row[0]):
        # the page may end within the last key
        listed = list(group) if key != found[-1][0] else _rows_of(rows, key)
        if len(listed) > 1:
            rows.execute("DELETE FROM lookup WHERE key = ?", (key,))
            documents = [document for _, *row in listed for document in _documents(row)]
            for first in range(0, len(documents), MOST):
                _insert(rows, key, documents[first : first + MOST])
    if found:
        rows.execute("UPDATE layer SET place = ? WHERE name = ?", (found[-1][0], _LEFT))
    else:
        rows.execute("DELETE FROM layer WHERE name = ?", (_LEFT,))
    return len(found)


def _rows_of(rows: Rows, key: int) -> list[Row]:
    return rows.execute("SELECT key, document, further FROM lookup WHERE key = ? ORDER BY document", (key,)).fetchall()


def _documents(row: Sequence[object]) -> Sequence[int]:
    """Return the objects of a row, given its first object and the further ones. Raises DamagedBlob."""
    first, further = row
    try:
        distances = () if further is None else _distances.decode(bytes(further))  # type: ignore[call-overload]
    except msgspec.DecodeError as problem:
        raise DamagedBlob("the objects with a key cannot be read; pagein reindex mends it") from problem
    return tuple(itertools.accumulate((first, *distances)))


def _replace(rows: Rows, key: int, first: int, documents: Sequence[int]) -> None:
    """Store the row of a key that begins with an object anew."""
    if documents and documents[0] == first:
        values = (_further(documents), key, first)
        rows.execute("UPDATE lookup SET further = ? WHERE key = ? AND document = ?", values)
        return
    rows.execute("DELETE FROM lookup WHERE key = ? AND document = ?", (key, first))
    if documents:
        _insert(rows, key, documents)


def _insert(rows: Rows, key: int, documents: Sequence[int]) -> None:
    values = (key, documents[0], _further(documents))
    rows.execute("INSERT INTO lookup(key, document, further) VALUES(?, ?, ?)", values)


def _further(documents: Iterable[int]) -> bytes | None:
    """Return the stored form of the objects behind the first of a row: the distances, which are small."""
    distances = [after - before for before, after in itertools.pairwise(documents)]
    return msgspec.msgpack.encode(distances) if distances else None
