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
    # When a session was last heard of, so that retention can tell the ended ones. Triggers, so that no writer can forget it.
    (
        "life of sessions",
        (
            """CREATE TABLE life(session TEXT PRIMARY KEY, touched INTEGER NOT NULL, ended INTEGER NOT NULL DEFAULT 0)""",
            "INSERT INTO life(session, touched) SELECT name, strftime('%s') FROM session UNION SELECT session, strftime('%s') FROM object",
            *(
                f"""CREATE TRIGGER life_{number} AFTER {deed} BEGIN
                      INSERT INTO life(session, touched) VALUES(new.{name}, CAST(strftime('%s') AS INTEGER))
                      ON CONFLICT(session) DO UPDATE SET touched = excluded.touched, ended = 0; END"""
                for number, (deed, name) in enumerate(
                    (("INSERT ON session", "name"), ("UPDATE ON session", "name"), ("INSERT ON object", "session"))
                )
            ),
        ),
    ),
)
