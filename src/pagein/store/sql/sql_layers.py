"""Store the places of derived layers, and read journals across sessions, in a SQL database."""

from collections.abc import Sequence
from typing import Final

from pagein.store.sql.sql_blobs import SqlBlobs
from pagein.store.sql.sql_rows import encode_text

NOBODY: Final = "\0dropped"
"""Session of an entry that only holds a number (see `store.upkeep.sqlite_upkeep`)."""


class SqlLayers(SqlBlobs):
    """A LayerStore in a SQL database."""

    def layer(self, name: str) -> tuple[int, str] | None:
        with self._database.open_reader() as rows:
            found = rows.execute("SELECT place, version FROM layer WHERE name = ?", (encode_text(name),)).fetchone()
        return None if found is None else (int(found[0]), str(found[1]))

    def set_layer(self, name: str, place: int, version: str) -> None:
        with self._database.open_writer() as rows:
            rows.execute(
                "INSERT INTO layer(name, place, version) VALUES(?, ?, ?) "
                "ON CONFLICT(name) DO UPDATE SET place = excluded.place, version = excluded.version",
                (encode_text(name), place, version),
            )

    def places(self, after: int, most: int) -> Sequence[tuple[int, str]]:
        query = "SELECT number, session FROM entry WHERE number > ? ORDER BY number LIMIT ?"
        while True:
            with self._database.open_reader() as rows:
                found = rows.execute(query, (after, most)).fetchall()
            told = [(int(place), str(session)) for place, session in found if session != NOBODY]
            if told or len(found) < most:
                return told
            after = found[-1][0]

    def last_place(self) -> int:
        with self._database.open_reader() as rows:
            found = rows.execute("SELECT max(number) FROM entry").fetchone()
        return 0 if found is None or found[0] is None else int(found[0])
