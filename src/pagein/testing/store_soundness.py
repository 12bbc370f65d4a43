"""The findings of `pagein check` about the stores left behind by a test."""

import contextlib
import sqlite3
from pathlib import Path

from pagein.store.sql.sqlite_schema import APPLICATION_ID
from pagein.store.upkeep.sqlite_upkeep import SqliteUpkeep
from pagein.upkeep import check_store


def unsound_stores(folder: Path) -> dict[str, list[str]]:
    """Return the faults of each unsound store below this folder, by its name."""
    found = {str(path.relative_to(folder)): faults_of(path) for path in sorted(folder.rglob("*")) if is_store(path)}
    return {name: faults for name, faults in found.items() if faults}


def is_store(path: Path) -> bool:
    """Return whether this file is a store of pagein."""
    if path.is_symlink() or not path.is_file() or path.name.endswith(("-wal", "-shm")):
        return False
    with contextlib.closing(sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True)) as connection:
        try:
            (mark,) = connection.execute("PRAGMA application_id").fetchone()
        except sqlite3.DatabaseError:
            return False
    return bool(mark == APPLICATION_ID)


def faults_of(path: Path) -> list[str]:
    """Return the findings of a check of this store."""
    store = SqliteUpkeep(path)
    try:
        return [f"{one.kind} {one.where}: {one.why}" for one in check_store(store).findings]
    finally:
        store.close()
