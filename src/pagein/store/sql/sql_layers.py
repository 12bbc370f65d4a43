"""Store the places of derived layers, and read journals across sessions, in a SQL database."""

from collections.abc import Collection, Sequence
from typing import Final

from pagein.model.text_removal import SessionGroup
from pagein.store.sql.sql_blobs import SqlBlobs
from pagein.store.sql.sql_holders import objects_of_sessions, sessions_together
from pagein.store.sql.sql_removal import drop_documents, drop_versions
from pagein.store.sql.sql_rows import decode_text, encode_text, question_marks
from pagein.store.sql.sql_versions import SESSION

_PLACES: Final = """SELECT journal.number, name FROM journal JOIN writer_session ON writer_session.number = session
  WHERE journal.number > ? ORDER BY journal.number LIMIT ?"""


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
        with self._database.open_reader() as rows:
            found = rows.execute(_PLACES, (after, most)).fetchall()
        return [(int(place), decode_text(name)) for place, name in found]

    def last_place(self) -> int:
        with self._database.open_reader() as rows:
            found = rows.execute("SELECT max(number) FROM journal").fetchone()
        return 0 if found is None or found[0] is None else int(found[0])

    def sessions_together(self, sessions: Collection[str]) -> SessionGroup | None:
        with self._database.open_reader() as rows:
            return sessions_together(rows, sessions)

    def drop_objects_of_sessions(self, sessions: Collection[str], most: int) -> int:
        with self._database.open_writer() as rows:
            numbers = objects_of_sessions(rows, sessions)[:most]
            drop_documents(rows, numbers)
        return len(numbers)

    def drop_objects_of(self, *writers: tuple[str, str | None]) -> int:
        meant = " OR ".join("writer = ?" if reason is None else "(writer = ? AND reason = ?)" for _, reason in writers)
        names = [encode_text(name) for writer in writers for name in writer if name is not None]
        with self._database.open_writer() as rows:
            found = rows.execute(
                f"SELECT document FROM version GROUP BY document HAVING min(CASE WHEN ({meant})"  # noqa: S608 -- constants and question marks
                f" AND ({SESSION} IS NULL OR {SESSION} IN (SELECT name FROM session)) THEN 1 ELSE 0 END) = 1",
                names,
            ).fetchall()
            drop_documents(rows, [int(document) for (document,) in found])
            kinds = [encode_text(kind) for kind, reason in writers if reason is None]
            parts = rows.execute(
                f"SELECT document, sequence FROM version WHERE writer IN ({question_marks(kinds)})"  # noqa: S608 -- question marks
                f" AND {SESSION} IN (SELECT name FROM session)",
                kinds,
            ).fetchall()
            by_document: dict[int, list[int]] = {}
            for document, sequence in parts:
                by_document.setdefault(int(document), []).append(int(sequence))
            for document, sequences in by_document.items():
                drop_versions(rows, document, sequences)
        return len(found)
