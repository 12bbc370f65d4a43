"""Store the lookup keys of newest versions in a SQL database.

A key is stored as a number of 48 bits, so that millions of keys stay small. Two keys may have the same number, and a number may stay
behind when a damaged version is removed: whoever looks up verifies what is found (`model/writes.fields_match`).

Some keys would only take room, and are not stored: those of references, which are found by their targets, and of fields by which nobody looks up
objects (`is_stored`). A query for such a field still gets its answer, from all versions that meet the rest of it.
"""

import contextlib
import hashlib
from collections.abc import Collection
from typing import Final, TypeAlias

from pagein.errors import DamagedBlob
from pagein.model.writes import keys_of
from pagein.store.sql.lookup_pairs import drop_pair, drop_pairs, put_pairs
from pagein.store.sql.sql_rows import Rows, encode_text
from pagein.store.sql.sql_versions import select_versions, version_in
from pagein.store.sql.sqlite_schema import TEXT_NAMES

Keys: TypeAlias = Collection[tuple[str, str]]
"""Names of fields, with keys of their values: `model/writes.keys_of`."""
_BYTES: Final = 6
_UNUSED: Final = frozenset({"args_display", "place", "turn"})
_REFERENCES: Final = ('{"$ref":', '[{"$ref":')
_OBJECTS: Final = 100
_LEFT: Final = "store.keys"
"""Name of the row of `layer` with the last object of an older store that may have keys that are no longer stored."""


def is_stored(name: str, value: str) -> bool:
    """Return whether a key is stored.

    value: the key of the field's value (`model/writes.key_of`)
    """
    return name not in _UNUSED and not value.startswith(_REFERENCES)


def key_number(name: str, value: str) -> int:
    """Return the number of a key, given the stored form of its name."""
    return int.from_bytes(hashlib.sha256(f"{name}\1{value}".encode()).digest()[:_BYTES], "big")


def put_keys(rows: Rows, document: int, after: Keys, before: Keys) -> None:
    """Store the keys of an object's next version as changes."""
    old, new = (
        {(encode_text(name), value) for name, value in keys if is_stored(name, value)} for keys in (before, after)
    )
    drop_pairs(rows, [key_number(*one) for one in old - new], document)
    put_pairs(rows, [key_number(*one) for one in new - old], document)
    for name, value in sorted(old - new):
        if name in TEXT_NAMES:
            found = "DELETE FROM lookup_text WHERE document = ? AND name = ? AND value = ?"
            rows.execute(found, (document, name, value))
    for name, value in sorted(new - old):
        if name in TEXT_NAMES:
            rows.execute("INSERT INTO lookup_text(document, name, value) VALUES(?, ?, ?)", (document, name, value))


def drop_unused_keys(rows: Rows) -> int:
    """Drop keys of some objects of an older store that are no longer stored. Return the number of objects; 0 at the end."""
    found = rows.execute("SELECT place FROM layer WHERE name = ?", (_LEFT,)).fetchone()
    if found is None:
        return 0
    upto = int(found[0])
    heads = select_versions(
        rows, "sequence = head AND document.number > ? AND document.number <= ?", (upto - _OBJECTS, upto)
    )
    query = "SELECT head, number FROM document WHERE number > ? AND number <= ?"
    numbers: dict[int, int] = dict(rows.execute(query, (upto - _OBJECTS, upto)).fetchall())
    for row in heads:
        with contextlib.suppress(DamagedBlob):
            for name, value in keys_of(version_in(row)):
                if not is_stored(name, value):
                    drop_pair(rows, key_number(encode_text(name), value), numbers[row[0]])
    if upto > _OBJECTS:
        rows.execute("UPDATE layer SET place = ? WHERE name = ?", (upto - _OBJECTS, _LEFT))
    else:
        rows.execute("DELETE FROM layer WHERE name = ?", (_LEFT,))
    return _OBJECTS
