"""Store the names of sessions as numbers, and the ids of journal entries as bytes. As texts they took half of the room of a journal."""

import re
from functools import lru_cache
from typing import Final

from pagein.store.sql.sql_rows import Rows, encode_text, plain

OF_SESSION: Final = "session = (SELECT number FROM writer_session WHERE name = ?)"
"""The condition of the entries of a session, given by its `stored_name`."""
NOBODY: Final = 0
"""Number of no session: that of an entry that only holds a number (see `store.upkeep.sqlite_upkeep`)."""
_DIGEST: Final = re.compile("[0-9a-f]{32}")
_BYTES: Final = 16
_TEXT: Final = b"\0"
"""End of the bytes of a text that are as many as those of a digest. The texts of ids have no NUL themselves."""


@lru_cache(maxsize=64)
def stored_name(session: str) -> str:
    """Return the name of a journal's session as the table `writer_session` has it."""
    return encode_text(plain(session))


def session_number(rows: Rows, name: str) -> int:
    """Return the number of a session, which is stored now if it is new.

    name: its stored name
    """
    query = "SELECT number FROM writer_session WHERE name = ?"
    found = rows.execute(query, (name,)).fetchall()
    if not found:
        rows.execute("INSERT INTO writer_session(size, name) VALUES(?, ?) ON CONFLICT DO NOTHING", (len(name), name))
        found = rows.execute(query, (name,)).fetchall()
    return int(found[0][0])


def entry_key(name: str) -> bytes:
    """Return the stored form of an entry's id: of 32 hexadecimal digits their 16 bytes, of another id its text."""
    if _DIGEST.fullmatch(name):
        return bytes.fromhex(name)
    text = plain(name).encode()
    return text + _TEXT if len(text) == _BYTES else text


def entry_id(key: bytes) -> str:
    """Return the id of an entry from its stored form."""
    return key.hex() if len(key) == _BYTES else key.removesuffix(_TEXT).decode("utf-8", "replace")
