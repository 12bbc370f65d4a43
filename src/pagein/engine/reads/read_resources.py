"""The resources of reads outside of a session."""

from collections.abc import Callable
from dataclasses import dataclass

from pagein.errors import BadName, StoreError
from pagein.model.names import ContentHash
from pagein.policy.reads.read_request import DEFAULTS, ReadingSettings
from pagein.ports import BlobStore, Files, SymbolSource


@dataclass(frozen=True, slots=True)
class Outside:
    """External resources of reads.

    blobs: the store.
    folder: returns the files as seen from a working folder.
    home: folder of sessions without their own.
    now: returns seconds since 1970.
    settings: settings of read answers.
    witness: True to check each answer by the witness first.
    symbols: finds definitions by name; None without symbols.
    """

    blobs: BlobStore
    folder: Callable[[str], Files]
    home: str
    now: Callable[[], float]
    settings: ReadingSettings = DEFAULTS
    witness: bool = False
    symbols: SymbolSource | None = None

    @property
    def witness_source(self) -> Callable[[ContentHash], bytes | None] | None:
        """Returns stored versions for the witness; None to skip the witness."""
        return self.version if self.witness else None

    def version(self, name: ContentHash) -> bytes | None:
        """Return a stored version; None for a lost version or a failed store."""
        try:
            return self.blobs.get(name)
        except StoreError:
            return None

    def text(self, version: str) -> str | None:
        """Return the text of a stored version, named by its digits; None for no text, a lost version or a failed store."""
        try:
            return self.blobs.get(ContentHash.parse(version)).decode()
        except (StoreError, BadName, UnicodeDecodeError):
            return None
