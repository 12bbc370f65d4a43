"""The tables of the SQLite store, as the list of steps that make them.

A step is never edited once it has been released: a change is a new step. The table `migration` says which steps a file has seen.
"""

from typing import Final

APPLICATION_ID: Final = 0x50474931
"""Marks a SQLite file as ours, in its header."""

MIGRATIONS: Final[tuple[tuple[str, tuple[str, ...]], ...]] = (
    (
        "blobs, objects, journal",
        (
            # codec: 0 as it is, 1 zstd with checksum. Blobs stand alone, so that questions about objects touch no content.
            """CREATE TABLE blob(
                 number INTEGER PRIMARY KEY, hash BLOB NOT NULL UNIQUE, codec INTEGER NOT NULL, data BLOB NOT NULL)""",
            """CREATE TABLE object(
                 id TEXT PRIMARY KEY, hash BLOB NOT NULL, kind TEXT NOT NULL, workspace TEXT NOT NULL, session TEXT NOT NULL,
                 call_id TEXT NOT NULL, description TEXT NOT NULL, tokens INTEGER NOT NULL, chars INTEGER NOT NULL)""",
            "CREATE INDEX object_of_session ON object(session)",
            """CREATE TABLE entry(
                 number INTEGER PRIMARY KEY, session TEXT NOT NULL, id TEXT NOT NULL, codec INTEGER NOT NULL,
                 line BLOB NOT NULL, UNIQUE(session, id))""",
            # leaf: where each session stands.
            "CREATE TABLE session(name TEXT PRIMARY KEY, leaf TEXT NOT NULL)",
            "CREATE TABLE secret(number INTEGER PRIMARY KEY CHECK(number = 1), key BLOB NOT NULL)",
        ),
    ),
    # what a session gained since a number is asked for before every read
    ("news of a session", ("CREATE INDEX entry_of_session ON entry(session)",)),
)
