"""The resources of recall beyond the store, and the limits of recalled answers."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, Protocol

from pagein.engine.log.trajectory import Trajectory
from pagein.engine.recall.delegated_questions import Delegate
from pagein.engine.recall.ingest import WIDE, IngestLimits, IngestTree
from pagein.engine.recall.stored_objects import StoredObjects
from pagein.errors import BadSetting
from pagein.model.read_caps import DEFAULT_CAPS, ReadCaps
from pagein.model.search_query import Results, Search
from pagein.ports import CodeSearcher


@dataclass(frozen=True, slots=True)
class Bounds:
    """Limits of recall. Raises BadSetting for a limit below 1.

    caps: most text of one answer.
    matches: most matches of one search answer.
    per_object: most matches in one object.
    seconds: time after which a search opens no further object.
    """

    caps: ReadCaps = DEFAULT_CAPS
    matches: int = 50
    per_object: int = 100
    seconds: float = 5.0

    def __post_init__(self) -> None:
        if min(self.caps.lines, self.caps.bytes, self.matches, self.per_object) < 1 or not self.seconds > 0:
            raise BadSetting("bounds of recall and search must be 1 or more, and the seconds of a search above 0")


USUAL: Final = Bounds()


class TextArchive(Protocol):
    """Stored texts outside of session holdings: versions of files, notes, chats, with their own ids. Called from any
    thread.
    """

    def search(self, asked: Search, /) -> Results:
        """Return a page of hits in the versions of objects. Raises BadInput for an unusable pattern or filter, and StoreError."""
        ...

    def text(self, name: str, turns: tuple[int, int] | None = None, /) -> str | None:
        """Return the text of an object, or of some turns of a chat; None if absent.

        name: id or nickname, for an older version with `@` and its number.

        Raises NotRecallable for an object without such a version or without turns, and StoreError.
        """
        ...

    def close(self) -> None:
        """Close files. Further calls do nothing."""
        ...


@dataclass(frozen=True, slots=True)
class RecallResources:
    """External resources of recall and ingest, besides the store of evicted content.

    tree: returns the files below a folder; None for sessions without ingest.
    code: returns the search of the files below a folder; None for sessions without one.
    archive: other stored texts; None if unavailable.
    objects: the stored objects; None if unavailable.
    trajectory: log of operations; None for no log.
    bounds: limits of recall.
    limits: limits of one ingest.
    delegate: asks child models; None for sessions without.
    """

    tree: Callable[[str], IngestTree] | None = None
    archive: TextArchive | None = None
    objects: StoredObjects | None = None
    trajectory: Trajectory | None = None
    bounds: Bounds = USUAL
    limits: IngestLimits = WIDE
    code: Callable[[str], CodeSearcher] | None = None
    delegate: Delegate | None = None

    def close(self) -> None:
        """Close the archive."""
        if self.archive is not None:
            self.archive.close()
