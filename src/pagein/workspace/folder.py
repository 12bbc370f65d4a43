"""The folder an agent works in: base of relative paths, with the rules about content that must not be stored."""

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
    """A working folder on this machine. Stateless: every question goes to the disk.

    path: absolute
    excluded: name patterns of files whose content is never stored
    max_bytes: larger files are refused

    Reads are not confined to the folder: an agent may read through pagein exactly the files it may read without pagein.
    Hosts that lend pagein's own rights to a model must confine paths before the call.
    """

    path: str
    excluded: tuple[str, ...] = EXCLUDED
    max_bytes: int = MAX_FILE_BYTES

    def locate(self, path: str, *, offset: float | None = None, limit: float | None = None) -> LocatedFile:
        """Return the file named by a read call.

        The file may be missing. Raises BadInput for a malformed line suffix.
        """
        asked = paths.parse_path(path, self.path, offset=offset, limit=limit)
        key = paths.path_key(asked.absolute)
        names = paths.names_leading_to(asked.absolute, key)
        excluded = any(is_excluded(name, self.excluded) for name in names)
        excluded = excluded or names_an_excluded(key, self.path, self.excluded)
        return LocatedFile(asked.given, asked.absolute, key, asked.offset, asked.limit, excluded)

    def read(self, located: LocatedFile, signal: Signal | None = None) -> Document:
        """Read the file once. Raises BadInput in the host's words, and AbortedOperation."""
        return load_document(located.absolute, located.key, signal, max_bytes=self.max_bytes)

    def same_file(self, located: LocatedFile, among: Iterable[str]) -> str | None:
        """Return the key in `among` of a hard link to the same file, or None."""
        return paths.same_file(located.absolute, among)
