"""The knowledge of an import about each object and session, from the store and from the file so far."""

from dataclasses import dataclass, field

from pagein.errors import BadInput
from pagein.model.entries import Entry, EntryId
from pagein.model.names import ContentHash
from pagein.store.exchange.export_redaction import ExportRedaction


@dataclass(slots=True)
class KnownHistory:
    """Known versions of an object, compared with the versions in the file.

    The file may lack some: it counts only its own.

    known: numbers and hashes in the store
    place: position in `known` reached by the file
    told: number of versions of the object in the file so far
    left_out: number of the last requested version, if missing here between existing neighbours
    """

    known: list[tuple[int, ContentHash]]
    place: int = 0
    told: int = 0
    left_out: int | None = None

    def is_next(self, version: ContentHash) -> bool:
        """Return whether the file's next version is new here.

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
    """

    name: str
    leaf: EntryId | None
    here: EntryId | None
    ended: bool
    known: set[EntryId]
    bridged: set[EntryId]
    withholding: ExportRedaction = field(default_factory=ExportRedaction)
    parents: dict[EntryId, EntryId | None] = field(default_factory=dict)
    waiting: list[Entry] = field(default_factory=list)

    def stands_at(self) -> EntryId:
        """Return the session's leaf after the import."""
        leaf = self.leaf if self.leaf in self.parents else next(reversed(self.parents))
        if self.here is None:
            return str(leaf)
        above: EntryId | None = leaf
        while above is not None and above != self.here:
            above = self.parents[above]
        return str(leaf) if above == self.here else self.here
