"""Store the lookup keys of newest versions in a SQL database.

A key is stored as a number of 48 bits, so that millions of keys stay small. Two keys may have the same number, and a number may stay
behind when a damaged version is removed: whoever looks up verifies what is found (`model/writes.fields_match`).
"""

import hashlib
from collections.abc import Collection
from typing import Final, TypeAlias

from pagein.store.sql.sql_rows import Rows, encode_text
from pagein.store.sql.sqlite_schema import TEXT_NAMES

Keys: TypeAlias = Collection[tuple[str, str]]
"""Names of fields, with keys of their values: `model/writes.keys_of`."""
_BYTES: Final = 6


def key_number(name: str, value: str) -> int:
    """Return the number of a key, given the stored form of its name."""
    return int.from_bytes(hashlib.sha256(f"{name}\1{value}".encode()).digest()[:_BYTES], "big")


def put_keys(rows: Rows, document: int, after: Keys, before: Keys) -> None:
    """Store the keys of an object's next version as changes."""
    old, new = ({(encode_text(name), value) for name, value in keys} for keys in (before, after))
    for name, value in sorted(old - new):
        rows.execute("DELETE FROM lookup WHERE key = ? AND document = ?", (key_number(name, value), document))
        if name in TEXT_NAMES:
            found = "DELETE FROM lookup_text WHERE document = ? AND name = ? AND value = ?"
            rows.execute(found, (document, name, value))
    for name, value in sorted(new - old):
        rows.execute(
            "INSERT INTO lookup(key, document) VALUES(?, ?) ON CONFLICT DO NOTHING", (key_number(name, value), document)
        )
        if name in TEXT_NAMES:
            rows.execute("INSERT INTO lookup_text(document, name, value) VALUES(?, ?, ?)", (document, name, value))
