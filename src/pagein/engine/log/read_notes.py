"""Reads, writes and refreshes of files in the journal, as events of their file."""

from pagein.model.entries import Body, CompactionEntry, NoteEntry
from pagein.model.journal_notes import ReadNote
from pagein.model.names import ContentHash
from pagein.model.read_events import CompactionEvent, MalformedRecord, ReadEvent


def event_of(body: Body) -> ReadEvent | None:
    """Return the event on files in an entry, or None."""
    match body:
        case CompactionEntry():
            return CompactionEvent()
        case NoteEntry(note=ReadNote(event=event)):
            return event
        case NoteEntry(note=MalformedRecord() as damaged):
            return damaged
        case _:
            return None


def trace_of(text: str) -> str:
    """Return the identifying hash of a text: of the UTF-8, 64 hexadecimal digits."""
    return ContentHash.of(text.encode("utf-8", "surrogatepass")).hex
