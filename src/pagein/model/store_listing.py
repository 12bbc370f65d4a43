"""Listings of a store for maintenance: sessions with their age, and lines of journals."""

from dataclasses import dataclass
from typing import Final

from pagein.model.entries import EntryId
from pagein.model.names import ContentHash

OWN_JOURNALS: Final = "pagein."
"""Beginning of the names of pagein's own journals, which are no sessions and never end."""


@dataclass(frozen=True, slots=True)
class KeptSession:
    """A session in a store.

    leaf: last entry of its journal; None if the store has only objects of the session.
    touched: time of the last write in seconds since 1970; None if the store does not record it.
    ended: the session was marked as ended, and nothing was written since.
    size: stored bytes of the journal.
    """

    name: str
    leaf: EntryId | None
    touched: float | None
    ended: bool
    size: int = 0

    @property
    def is_own(self) -> bool:
        """Whether it is a journal of pagein's own, and no session."""
        return self.name.startswith(OWN_JOURNALS)


@dataclass(frozen=True, slots=True)
class JournalLine:
    """An entry as a JSON line of the store.

    place: position in the store; it grows with every entry and is never reused.
    damaged: the line could not be unpacked and is returned as stored.
    id: of the entry, stored beside the line.
    texts: content that the store shares with this line, and that it needs.
    """

    place: int
    session: str
    line: bytes
    damaged: bool = False
    id: str = ""
    texts: tuple[ContentHash, ...] = ()
