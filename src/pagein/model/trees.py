"""Files below a folder, as ingest is told of them."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class TreeFile:
    """A file below the folder. path: from the folder, with slashes. key: canonical real path. size: bytes, as it was when found.

    excluded: its content must not be stored (law 9).
    """

    path: str
    key: str
    size: int
    excluded: bool = False


@dataclass(frozen=True, slots=True)
class TreeMatches:
    """What patterns matched, each file once, in the order of paths.

    left: what was named and cannot be taken, with the reason. ignored: how many files and folders were passed over on the way
    because the workspace ignores them.
    """

    files: tuple[TreeFile, ...]
    left: tuple[tuple[str, str], ...] = ()
    ignored: int = 0
