"""Markers and hints in the answers of a store's latest sessions, for the comparison by the echo guard."""

from collections.abc import Iterator
from typing import Final

from pagein.model.entries import Entry, NoteEntry
from pagein.model.journal_notes import ReadNote, RecallNote
from pagein.policy.reads.echo_guard import Facts, facts_of_read, facts_of_recall
from pagein.ports import JournalStore

_SESSIONS: Final = 16
"""Sessions that are looked at, those that were written last."""


def served_markers(journals: JournalStore) -> frozenset[Facts]:
    """Return the markers and hints of the latest sessions, on all branches. Raises StoreError."""
    return frozenset(facts for session in journals.latest(_SESSIONS) for facts in _of_session(journals, session))


def _of_session(journals: JournalStore, session: str) -> Iterator[Facts]:
    for entry in journals.entries(session):
        match entry:
            case Entry(body=NoteEntry(note=ReadNote(event=event))):
                yield from facts_of_read(event)
            case Entry(body=NoteEntry(note=RecallNote() as recall)):
                yield from facts_of_recall(recall)
