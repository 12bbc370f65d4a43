"""Searches of the files of a workspace: the question, and the hits."""

from dataclasses import dataclass
from typing import Literal, TypeAlias

SearchEngine: TypeAlias = Literal["rg", "re2"]
"""What looked through the files: ripgrep with pagein's own engine on the files that it found, or only pagein's own."""


@dataclass(frozen=True, slots=True)
class CodeQuery:
    """A search of the files of a workspace.

    pattern: a literal text, or `/expression/flags`. An expression is matched line by line.
    path: a file, folder or glob that restricts the search; None for all files.
    limit: most hits to show.
    per_file: most hits to show of one file.
    seconds: time after which no further file is searched.
    bytes: most bytes of files to search.
    skipped: names of folders that are left out.
    """

    pattern: str
    path: str | None = None
    limit: int = 50
    per_file: int = 10
    seconds: float = 5.0
    bytes: int = 256 * 1024 * 1024
    skipped: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class CodeHit:
    """A place in a file.

    path: relative to the workspace. key: canonical real path.
    first, last: its lines, from 1.
    column: first character of the match in its line, from 1.
    text: the first of the lines, shortened around the match.
    total: lines of the file.
    is_shortened: whether the text is a part of its line.
    """

    path: str
    key: str
    first: int
    last: int
    column: int
    text: str
    total: int
    is_shortened: bool = False


@dataclass(frozen=True, slots=True)
class CodeFile:
    """A file with hits.

    path: relative to the workspace. key: canonical real path.
    hits: number of lines where a match begins. lines: lines of the file; 0 if it has no hits.
    """

    path: str
    key: str
    hits: int
    lines: int


@dataclass(frozen=True, slots=True)
class CodeResults:
    """The result of a search.

    files: the files with hits, the best first.
    hits: places to show, file by file in the same order.
    engine: what looked through the files.
    named: files without hits whose path has the text, the best first; none for an expression.
    searched: number of searched files.
    not_text: number of files that were not searched because they are no text in UTF-8.
    unsearched: named files that were not searched, with the reason.
    ignored: number of files and folders that git ignores, and that were left out.
    is_partial: whether time or bytes ran out before the last file.
    notice: why an expression was taken literally.
    """

    files: tuple[CodeFile, ...] = ()
    hits: tuple[CodeHit, ...] = ()
    engine: SearchEngine = "re2"
    named: tuple[CodeFile, ...] = ()
    searched: int = 0
    not_text: int = 0
    unsearched: tuple[tuple[str, str], ...] = ()
    ignored: int = 0
    is_partial: bool = False
    notice: str | None = None

    @property
    def total(self) -> int:
        """Number of hits, shown or not."""
        return sum(one.hits for one in self.files)
