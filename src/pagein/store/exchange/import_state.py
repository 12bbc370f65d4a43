"""The knowledge of an import about each object and session, from the store and from the file so far."""

from dataclasses import dataclass, field
from typing import Final

from pagein.errors import BadInput
from pagein.model.entries import Entry, EntryId
from pagein.model.names import ContentHash
from pagein.store.exchange.export_redaction import ExportRedaction
from pagein.store.exchange.import_bounds import count

NO_EXPORT: Final = (
    "this is no export of pagein; `pagein export` writes one, `pagein remember` takes in recorded sessions"
)
"""Why a file is not read at all."""
_LAST_PLACE: Final = 1 << 40
"""Highest place in a file: numbers of entries have room for millions of such imports."""


@dataclass(slots=True)
class ImportReport:
    """Result of an import.

    counts: records by type
    added: newly stored records, by type
    withheld: records changed or left out by law 9
    forgotten: records rewritten without a text erased from this store
    lost: expected records that could not be taken from the source, in words
    unburied: texts that were erased from the source, and can come again here, in words
    """

    counts: dict[str, int] = field(default_factory=dict)
    added: dict[str, int] = field(default_factory=dict)
    withheld: int = 0
    forgotten: int = 0
    lost: list[str] = field(default_factory=list)
    unburied: list[str] = field(default_factory=list)


@dataclass(slots=True)
class KnownHistory:
    """Known versions of an object, compared with the versions in the file.

    The file may lack some: it counts only its own.

    name: id of the object in the store
    known: numbers and hashes in the store
    place: position in `known` reached by the file
    told: number of versions of the object in the file so far
    left_out: number of the last requested version, if missing here between existing neighbours
    """

    name: str
    known: list[tuple[int, ContentHash]]
    place: int = 0
    told: int = 0
    left_out: int | None = None

    def is_next(self, version: ContentHash, *, derived: bool = False) -> bool:
        """Return whether the file's next version is new here.

        derived: the version follows from a journal, so that others may have been made between it and its predecessor

        Raises BadInput for a conflict with the stored history.
        """
        self.left_out = None
        if self.place >= len(self.known):
            return True
        found = next((place for place in range(self.place, len(self.known)) if self.known[place][1] == version), None)
        if found is not None:
            self.place = found + 1
            return False
        before = self.known[self.place - 1][0] if self.place else 0
        if self.known[self.place][0] == before + 1:
            if derived:
                return True
            raise BadInput(f"version {before + 1} of this object is another one here: the histories have parted")
        self.left_out = before + 1
        return False


@dataclass(slots=True)
class ImportedSession:
    """Import state of a session.

    here: leaf of the stored session of this name; None for a new session
    ended: whether to mark the session as ended
    known: entries already stored
    bridged: entries of which the store only has a bridge
    withholding: redactor of the entries
    parents: parent of each entry read so far
    place: of the last entry read so far, in the file's order over all sessions
    """

    name: str
    leaf: EntryId | None
    here: EntryId | None
    ended: bool
    known: set[EntryId]
    bridged: set[EntryId]
    withholding: ExportRedaction
    parents: dict[EntryId, EntryId | None] = field(default_factory=dict)
    place: int = 0
    waiting: list[tuple[int | None, Entry]] = field(default_factory=list)

    def next_place(self, value: object, taken: set[int]) -> int:
        """Return the place of the file's next entry, checked. Raises BadInput for a place out of order.

        taken: places of all entries of the file so far
        """
        place = count(value, "place", 1)
        if place > _LAST_PLACE or place <= self.place or place in taken:
            raise BadInput(
                f"the place {place} is out of order: places count up in a session, and no two entries have one"
            )
        taken.add(place)
        self.place = place
        return place

    def stands_at(self) -> EntryId:
        """Return the session's leaf after the import."""
        leaf = self.leaf if self.leaf in self.parents else next(reversed(self.parents))
        if self.here is None:
            return str(leaf)
        above: EntryId | None = leaf
        while above is not None and above != self.here:
            above = self.parents[above]
        return str(leaf) if above == self.here else self.here
