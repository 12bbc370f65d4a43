"""Sightings of followed files on the disk: journaled first, then written as versions of the files' objects.

Rules of this file
------------------
1. All sightings of a store are in the journal `FILES`, each with its text under its hash. Versions follow from the journal alone.
2. A sighting continues the object that is at its path, or was: a moved file stays the same object.
3. A file without an object was never touched by a session, and gets no object here.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final, Protocol

from pagein.engine.log.journal import entry_name
from pagein.errors import DamagedBlob, MissingBlob
from pagein.memory.object_writer import Cause, IndexedStore, ObjectWriter
from pagein.memory.session_machines import SessionMachines
from pagein.model.derived_versions import FILES
from pagein.model.entries import Entry, NoteEntry
from pagein.model.memory_notes import FileSightingNote, SessionPlaceNote
from pagein.model.names import ContentHash
from pagein.model.object_names import request_name
from pagein.model.versions import Draft, Provenance, Version
from pagein.ports import BlobStore, JournalStore
from pagein.workspace.file_description import file_type, note_facts

_PERSON: Final = "human"
_NOBODY: Final = "system"


class NoteStore(BlobStore, JournalStore, Protocol):
    """A store with journals."""


@dataclass(frozen=True, slots=True)
class NewNote:
    """A note to be journaled.

    text: the text that its hash means; None for none. at: seconds since 1970.
    """

    note: FileSightingNote | SessionPlaceNote
    at: float
    text: str | None = None


def journal_notes(store: NoteStore, notes: Sequence[NewNote]) -> None:
    """Append notes to the journal of files with their texts, all or none. Raises StoreError."""
    if not notes:
        return
    with store.exclusive():
        parent = store.leaf(FILES)
        entries: list[Entry] = []
        for one in notes:
            note = one.note
            if one.text is not None and isinstance(note, FileSightingNote):
                note = replace(note, content=store.put(one.text.encode()).hex)
            body = NoteEntry.of(note)
            entries.append(Entry(entry_name(parent, body), parent, body, one.at))
            parent = entries[-1].id
        store.append(FILES, entries)


def write_sighting(writer: ObjectWriter, machines: SessionMachines, place: int, entry: Entry) -> Version | None:
    """Write the version of a sighting; None for another entry, for a file without an object, or for old news.

    machines: of the sessions. place: of the entry.

    Raises StoreError.
    """
    note = _sighting_in(entry)
    if note is None:
        return None
    text, request = _text_of(writer.store, note), _request(entry)
    known = writer.answered(request, text)
    if known is not None:
        return known
    there = machines.file_at(writer, note.machine, note.path, place)
    moved = machines.file_at(writer, note.machine, note.before, place) if note.before else None
    current = moved if moved is not None and (there is None or there.deleted) else there
    if current is None or (moved is None and _is_told(note, current)):
        return None
    cause = Cause(FILES, entry.id, entry.at or 0.0, note.op)
    return writer.write(request, _draft(writer, note, text, current), cause)


def _is_told(note: FileSightingNote, current: Version) -> bool:
    """Return whether another gateway that follows the same folder journaled the same finding."""
    if current.writer.session != FILES:
        return False
    if note.op == "delete":
        return current.deleted
    known = current.metadata
    return (known.get("path"), known.get("file_hash")) == (note.path, note.digest)


def verify_sighting(writer: ObjectWriter, entry: Entry) -> None:
    """Compare the version made from a sighting with the journal entry. writer: a writer that only compares."""
    note = _sighting_in(entry)
    if note is not None:
        writer.answered(_request(entry), _text_of(writer.store, note))


def _draft(writer: ObjectWriter, note: FileSightingNote, text: str | None, current: Version) -> Draft:
    is_gone = note.op == "delete"
    metadata: dict[str, object] = {
        "path": None if is_gone else note.path,
        **({"last_path": note.path} if is_gone else {}),
        **({"before": before} if (before := note.before or current.metadata.get("before")) else {}),
        "home": note.machine,
        "file_type": file_type(note.path),
        "op": note.op,
        "known": "name" if text is None else "whole",
        **({} if text is None else {"proof": "disk", "lines": text.count("\n") + 1}),
        **({} if is_gone else {"file_hash": note.digest, "size": note.size}),
    }
    if current.type == "note" and text is not None:
        metadata |= note_facts(text, note.path, writer.target_of(note.machine))
    return Draft(
        id=current.id,
        type=current.type,
        content=text,
        metadata=metadata,
        provenance=Provenance(note.path, _PERSON if note.is_by_person else _NOBODY),
        deleted=is_gone,
    )


def _sighting_in(entry: Entry) -> FileSightingNote | None:
    note = entry.body.note if isinstance(entry.body, NoteEntry) else None
    return note if isinstance(note, FileSightingNote) else None


def _text_of(store: IndexedStore, note: FileSightingNote) -> str | None:
    try:
        return store.get(ContentHash.parse(note.content)).decode() if note.content else None
    except (MissingBlob, DamagedBlob, UnicodeDecodeError):
        return None


def _request(entry: Entry) -> str:
    return request_name("sighting", entry.id)
