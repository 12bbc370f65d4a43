"""Files below a folder, as input of ingest."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class TreeFile:
    """A file below a folder.

    path: relative to the folder, with slashes.
    key: canonical real path.
    size: bytes at the time of the listing.
    excluded: the content must not be stored (law 9).
    """

    path: str
    key: str
    size: int
    excluded: bool = False


@dataclass(frozen=True, slots=True)
class TreeMatches:
    """The files matching some patterns, each file once, in the order of paths.

    left: named paths that cannot be ingested, with the reason.
    ignored: number of files and folders skipped because the workspace ignores them.
    """

    files: tuple[TreeFile, ...]
    left: tuple[tuple[str, str], ...] = ()
    ignored: int = 0
