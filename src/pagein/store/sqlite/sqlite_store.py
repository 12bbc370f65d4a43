"""Embedded store: blobs, objects and journals in a single SQLite file."""

import sqlite3
from pathlib import Path

from pagein.model.objects import ObjectId
from pagein.store.sql.sql_journals import SqlJournals
from pagein.store.sql.sql_layers import SqlLayers
from pagein.store.sql.sql_objects import SqlObjects
from pagein.store.sql.sqlite_schema import APPLICATION_ID
from pagein.store.sqlite.sqlite_database import SqliteDatabase


class SqliteStore(SqlJournals, SqlObjects, SqlLayers):
    """A BlobStore, JournalStore, ObjectStore and LayerStore in a single file, created on first use together with its folder.

    patience: seconds to wait for other processes
    looks: never write (see `SqliteDatabase`)
    """

    _database: SqliteDatabase

    def __init__(self, path: Path, patience: float | None = None, *, looks: bool = False) -> None:
        super().__init__(SqliteDatabase(path, patience=patience, looks=looks))

    def elsewhere(self, object_id: ObjectId) -> bool:
        here = self._database.path
        try:
            neighbours = sorted(path for path in here.parent.glob(f"*{here.suffix}") if path.name != here.name)
        except OSError:
            return False
        return any(_knows(path, object_id) for path in neighbours)


def _knows(path: Path, object_id: ObjectId) -> bool:
    """Return whether another store has this object. Failures of the other store are ignored."""
    try:
        connection = sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True)
        try:
            (mark,) = connection.execute("PRAGMA application_id").fetchone()
            if mark != APPLICATION_ID:
                return False
            return connection.execute("SELECT 1 FROM object WHERE id = ?", (str(object_id),)).fetchone() is not None
        finally:
            connection.close()
    except (sqlite3.Error, OSError):
        return False
