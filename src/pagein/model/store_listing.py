"""What a store lists of itself, for those who look after it: sessions with their age, lines of journals."""

from dataclasses import dataclass

from pagein.model.entries import EntryId


@dataclass(frozen=True, slots=True)
class KeptSession:
    """A session that a store knows of.

    leaf: where it stands, None where only objects of it were kept. touched: when something was last kept of it, seconds since
    1970, None where the store does not tell. ended: somebody said that it has ended, and nothing was kept of it since.
    size: bytes that its journal takes as stored.
    """

    name: str
    leaf: EntryId | None
    touched: float | None
    ended: bool
    size: int = 0


@dataclass(frozen=True, slots=True)
class JournalLine:
    """An entry as its JSON line stands in the store.

    place: grows with every entry of the store; no place is given twice. damaged: the line could not be unpacked; then it is
    given as it lies there. id: of the entry, as it is kept beside the line.
    """

    place: int
    session: str
    line: bytes
    damaged: bool = False
    id: str = ""
