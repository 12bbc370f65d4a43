"""The machines on which sessions work, as the journal of files tells them."""

from collections.abc import Sequence

from pagein.memory.object_orders import is_order
from pagein.memory.object_writer import ObjectWriter
from pagein.model.derived_versions import FILES
from pagein.model.entries import Entry, NoteEntry
from pagein.model.memory_notes import SessionPlaceNote
from pagein.model.versions import Version
from pagein.ports import JournalStore


class SessionMachines:
    """What the journal of files tells of sessions, up to any place. Not thread-safe; raises StoreError."""

    def __init__(self, store: JournalStore) -> None:
        self._store = store
        self._read = 0
        self._told: dict[str, list[tuple[int, SessionPlaceNote]]] = {}

    def catch_up(self) -> None:
        """Read the entries that are new."""
        for place, entry in self._store.news(FILES, self._read):
            self._read = place
            note = entry.body.note if isinstance(entry, Entry) and isinstance(entry.body, NoteEntry) else None
            if isinstance(note, SessionPlaceNote):
                self._told.setdefault(note.session, []).append((place, note))

    def of(self, session: str, place: int) -> SessionPlaceNote | None:
        """Return what was told of a session last before a place of the journals; None if nothing was."""
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
        """Return whether all versions of a file are of sessions on a machine."""
        notes = (self.of(one.writer.session or "", place) for one in versions if not is_order(one))
        return all(note is not None and note.machine == machine for note in notes)

    def newest(self, session: str) -> SessionPlaceNote | None:
        """Return what was told of a session last; None if nothing was."""
        told = self._told.get(session)
        return told[-1][1] if told else None
