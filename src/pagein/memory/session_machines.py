"""The machines on which sessions work, from the journal of files."""

from collections.abc import Sequence

from pagein.memory.object_orders import is_order
from pagein.memory.object_writer import ObjectWriter
from pagein.model.derived_versions import FILES
from pagein.model.entries import Entry, NoteEntry
from pagein.model.memory_notes import SessionPlaceNote
from pagein.model.versions import Version
from pagein.ports import JournalStore


class SessionMachines:
    """The notes about sessions in the journal of files, up to any place. Not thread-safe; raises StoreError."""

    def __init__(self, store: JournalStore) -> None:
        self._store = store
        self._read = 0
        self._told: dict[str, list[tuple[int, SessionPlaceNote]]] = {}

    def catch_up(self) -> None:
        """Read the new entries."""
        for place, entry in self._store.news(FILES, self._read):
            self._read = place
            note = entry.body.note if isinstance(entry, Entry) and isinstance(entry.body, NoteEntry) else None
            if isinstance(note, SessionPlaceNote):
                self._told.setdefault(note.session, []).append((place, note))

    def of(self, session: str, place: int) -> SessionPlaceNote | None:
        """Return the last note about a session before a place of the journals, or None."""
        return next((note for at, note in reversed(self._told.get(session, [])) if at < place), None)

    def file_at(self, writer: ObjectWriter, machine: str, path: str, place: int) -> Version | None:
        """Return the file of a machine at a path, or the last deleted file there, as of a place of the journals.

        A file that sessions met before their machine was known is a file of their machine.
        """
        found = writer.file_at(machine, path)
        if found is not None or not machine:
            return found
        loose = writer.file_at("", path)
        return loose if loose is not None and self.is_on(writer.store.history(loose.id), machine, place) else None

    def is_on(self, versions: Sequence[Version], machine: str, place: int) -> bool:
        """Return whether every version of a file is of a session on a machine."""
        notes = (self.of(one.writer.session or "", place) for one in versions if not is_order(one))
        return all(note is not None and note.machine == machine for note in notes)

    def newest(self, session: str) -> SessionPlaceNote | None:
        """Return the last note about a session, or None."""
        told = self._told.get(session)
        return told[-1][1] if told else None
