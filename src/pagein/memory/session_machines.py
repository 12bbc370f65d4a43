"""The machines on which sessions work, as the journal of files tells them."""

from pagein.model.derived_versions import FILES
from pagein.model.entries import Entry, NoteEntry
from pagein.model.memory_notes import SessionPlaceNote
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

    def newest(self, session: str) -> SessionPlaceNote | None:
        """Return what was told of a session last; None if nothing was."""
        told = self._told.get(session)
        return told[-1][1] if told else None
