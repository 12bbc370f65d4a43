"""The remembered files, in a journal of their own in the store: an unchanged file is not read again.

Rules of this file
------------------
1. A file is noted after all its sessions are stored. If the process dies before, the file is read again, and adds what
   is missing.
2. Losing the journal costs time, never content.
"""

from contextlib import suppress
from pathlib import Path
from typing import Final

from pagein.engine.log.journal import entry_name
from pagein.errors import BadInput
from pagein.model.entries import Entry, NoteEntry
from pagein.model.memory_notes import RememberedNote
from pagein.ports import JournalStore
from pagein.replay.readers.opencode import database_sessions

REMEMBERED: Final = "pagein.remembered"
"""Name of the session whose journal holds the files."""


class SeenFiles:
    """The files that were remembered, with their stamps.

    journals: the store with the journal of files.
    """

    def __init__(self, journals: JournalStore) -> None:
        self._journals = journals
        self._stamps: dict[tuple[str, str], str] = {}
        self._held: dict[tuple[str, str], RememberedNote] = {}
        for entry in journals.entries(REMEMBERED):
            if isinstance(entry, Entry) and isinstance(entry.body, NoteEntry):
                note = entry.body.note
                if isinstance(note, RememberedNote):
                    self._stamps[note.file, note.member] = note.stamp

    def has(self, path: Path, stamp: str, member: str = "") -> bool:
        """Return whether this file was remembered with this stamp."""
        return self._stamps.get((_named(path), member)) == stamp

    def add(self, path: Path, stamp: str, sessions: tuple[str, ...], member: str = "", *, holds: bool = False) -> None:
        """Note a file. holds: keep the note in memory until `flush`, because the file may change again soon."""
        note = RememberedNote(_named(path), member, stamp, sessions)
        self._stamps[note.file, member] = stamp
        self._held[note.file, member] = note
        if not holds:
            self.flush()

    def pass_over(self, path: Path, stamp: str) -> None:
        """Do not read this file again in this process while its stamp is the same. Nothing is stored."""
        self._stamps[_named(path), ""] = stamp

    def flush(self) -> None:
        """Store the notes in memory. Raises StoreError."""
        if not self._held:
            return
        parent = self._journals.leaf(REMEMBERED)
        entries: list[Entry] = []
        for note in self._held.values():
            body = NoteEntry.of(note)
            entries.append(Entry(entry_name(parent, body), parent, body))
            parent = entries[-1].id
        self._journals.append(REMEMBERED, entries)
        self._held.clear()


def stamp_of(path: Path) -> str:
    """Return size and time of the last change of a file, and of what a database or an OpenCode session has beside it.

    "" for an unreadable file, which is never taken for known.
    """
    try:
        stamps = [_stamp(path)]
    except OSError:
        return ""
    beside = (path.with_name(f"{path.name}-wal"), *_messages_beside(path))
    for other in beside:
        with suppress(OSError):
            stamps.append(_stamp(other))
    return " ".join(stamps)


def member_stamps(path: Path) -> dict[str, str]:
    """Return the time of the last change of each session in a database; nothing for another file."""
    try:
        return {row[0]: repr(row[3]) for row in database_sessions(path)}
    except BadInput:
        return {}


def _messages_beside(path: Path) -> tuple[Path, ...]:
    """Return the folder with the messages of a session in OpenCode's storage folder."""
    folders = path.parents
    is_info = len(folders) > 2 and folders[1].name == "session" and path.suffix == ".json"  # noqa: PLR2004 - of storage/session/PROJECT
    return (folders[2] / "message" / path.stem,) if is_info else ()


def _stamp(path: Path) -> str:
    about = path.stat()
    return f"{about.st_size}-{about.st_mtime_ns}"


def _named(path: Path) -> str:
    # A path may contain bytes that are not valid text. Stores keep names as text, so these bytes are escaped.
    return str(path.absolute()).encode("utf-8", "backslashreplace").decode()
