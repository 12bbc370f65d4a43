"""The inventory of a store for maintenance: sessions with their age, and lines of journals."""

from collections.abc import Collection
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Final

from pagein.errors import BadInput
from pagein.model.entries import EntryId
from pagein.model.names import ContentHash

OWN_JOURNALS: Final = "pagein."
"""Beginning of the names of pagein's own journals, which are no sessions and never end."""
OWN_JOURNAL: Final = "own journal"
"""As what such a journal is counted."""
_SHORTEST: Final = 4
_MOST: Final = 7


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


def session_name(told: str, names: Collection[str]) -> str:
    """Return the session that is meant: by its name, or by at least four characters from the beginning of the name.

    names: all sessions of the store. Pagein's own journals count only by their full names. The sub-agents of a session
    are named `SESSION/AGENT`; the beginning of all these names means the session.

    Raises BadInput if there is no such session, or if there are several.
    """
    if told in names:
        return told
    there = sorted(name for name in names if name and not name.startswith(OWN_JOURNALS))
    found = [name for name in there if len(told) >= _SHORTEST and name.startswith(told)]
    for name in found:
        if all(other == name or other.startswith(f"{name}/") for other in found):
            return name
    if found:
        listed = ", ".join(map(repr, found[:_MOST])) + ("" if len(found) <= _MOST else ", and more")
        raise BadInput(f"{told[:80]!r} may be one of several sessions: {listed}; give more of the name")
    near = ", ".join(map(repr, get_close_matches(told, there, cutoff=0.0)))
    short = f"a beginning needs {_SHORTEST} characters or more; " if len(told) < _SHORTEST else ""
    raise BadInput(
        f"there is no session {told[:80]!r} in this store; "
        + (f"{short}nearest are {near}" if near else "it holds none")
    )
