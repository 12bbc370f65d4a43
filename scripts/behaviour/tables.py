"""The content of a store's file: each table's rows in order, and the lines of the journals."""

import sqlite3
from collections.abc import Iterator
from hashlib import sha256
from pathlib import Path
from typing import Final

import zstandard
from scripts.behaviour.records import lines

# The database itself tells the time here, by its own clock.
_TIMES: Final = {("life", "touched"), ("paged", "at")}
# A memory of what the journal says, bound to the very code that took it.
_MEMORIES: Final = {"snapshot"}
_LONG: Final = 400


def tables(store: Path) -> Iterator[tuple[str, bytes]]:
    """Each table by name, its rows in order as JSON lines; the schema; and the journals' lines, decompressed, as `journal`."""
    with sqlite3.connect(f"file:{store}?mode=ro", uri=True) as connection:
        schema = connection.execute(
            "SELECT type, name, sql FROM sqlite_schema WHERE name NOT LIKE 'sqlite_%' ORDER BY name"
        )
        yield "schema", lines([[*row] for row in schema])
        names = [
            row[0] for row in connection.execute("SELECT name FROM sqlite_schema WHERE type = 'table' ORDER BY name")
        ]
        for name in names:
            if name.startswith("sqlite_") or name in _MEMORIES:
                continue
            columns = [row[1] for row in connection.execute(f"PRAGMA table_info({name})")]
            kept = [one for one in columns if (name, one) not in _TIMES]
            rows = connection.execute(f"SELECT {', '.join(kept)} FROM {name}")  # noqa: S608 -- its own names
            yield name, lines(sorted(([*map(_shown, row)] for row in rows), key=str))
        entries = connection.execute(
            "SELECT name, codec, line FROM journal JOIN writer_session ON writer_session.number = session ORDER BY journal.number"
        )
        yield "journal", lines([[session, *_line(codec, line)] for session, codec, line in entries])


def objects(store: Path) -> list[str]:
    """Ids of all that was paged out."""
    with sqlite3.connect(f"file:{store}?mode=ro", uri=True) as connection:
        return [row[0] for row in connection.execute("SELECT id FROM object ORDER BY id")]


def sessions(store: Path) -> list[str]:
    """Names of all sessions."""
    with sqlite3.connect(f"file:{store}?mode=ro", uri=True) as connection:
        return [row[0] for row in connection.execute("SELECT name FROM session ORDER BY name")]


def _shown(value: object) -> object:
    return f"{len(value)} bytes {sha256(value).hexdigest()}" if isinstance(value, bytes) else value


def _line(codec: int, line: bytes) -> list[object]:
    """A line's digest and its beginning."""
    text = zstandard.ZstdDecompressor().decompressobj().decompress(line) if codec == 1 else line
    return [sha256(text).hexdigest(), text[:_LONG].decode("utf-8", "replace")]
