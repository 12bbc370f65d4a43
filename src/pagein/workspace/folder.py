"""The folder an agent works in: where its relative paths begin, and what of it must not be stored."""

from collections.abc import Iterable
from dataclasses import dataclass

from pagein.model.documents import Document, LocatedFile
from pagein.policy.privacy.exclusions import EXCLUDED, is_excluded
from pagein.ports import Signal
from pagein.workspace import paths
from pagein.workspace.files import MAX_FILE_BYTES, load_document
from pagein.workspace.hardlinks import names_an_excluded


@dataclass(frozen=True, slots=True)
class Folder:
    """A working folder on this machine. It keeps nothing: every question is asked of the disk.

    path: absolute. excluded: patterns of names whose content is never stored. max_bytes: files beyond are refused.

    Reads are not confined to the folder: an agent that reads through pagein may read what it may read without it, no
    less and no more. Hosts that lend pagein's own rights to a model confine before they call.
    """

    path: str
    excluded: tuple[str, ...] = EXCLUDED
    max_bytes: int = MAX_FILE_BYTES

    def locate(self, path: str, *, offset: float | None = None, limit: float | None = None) -> LocatedFile:
        """The file that a read call means. Raises BadInput for a malformed line suffix; the file may be missing."""
        asked = paths.parse_path(path, self.path, offset=offset, limit=limit)
        key = paths.path_key(asked.absolute)
        names = paths.names_leading_to(asked.absolute, key)
        excluded = any(is_excluded(name, self.excluded) for name in names)
        excluded = excluded or names_an_excluded(key, self.path, self.excluded)
        return LocatedFile(asked.given, asked.absolute, key, asked.offset, asked.limit, excluded)

    def read(self, located: LocatedFile, signal: Signal | None = None) -> Document:
        """Read the file once. Raises BadInput in the host's words, and Aborted."""
        return load_document(located.absolute, located.key, signal, max_bytes=self.max_bytes)

    def same_file(self, located: LocatedFile, among: Iterable[str]) -> str | None:
        """The key among these that is a hard link to the same file, if any."""
        return paths.same_file(located.absolute, among)
