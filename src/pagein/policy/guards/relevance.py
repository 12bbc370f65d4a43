"""Judge whether the target of a read is relevant to the session's searches.

Rules of this file
------------------
1. Paths are compared as path keys, so that `./x`, an absolute path and a link are one file.
2. Only a whole file and a diff of it can be unrelated: a symbol or a snippet was searched for by its own words.
3. Without a search, or after one without files, nothing is unrelated. Nor is anything after a search that found more
   files than it keeps: the file may be among the others.
4. Only the first reads after a search are about it (`RECENT`), and a file that was read before needs no search. Both rules
   are measured: without them every fourth recorded read would be called unrelated, mostly in error.
"""

from collections.abc import Container
from typing import Final

from pagein.model.guard_notes import ReadMode, SearchMeasureNote
from pagein.policy.guards.budgets import TOP_PATHS

EXCLUDED_FOLDERS: Final = frozenset({"vendor", "node_modules", ".git", "dist"})
"""Names of folders with content that nobody in the workspace wrote."""
MOST_ALTERNATIVES: Final = 3
RECENT: Final = 3
"""Number of reads after a search that are compared with it."""
_JUDGED: Final = frozenset({"file", "diff_preview"})


def is_unrelated(
    mode: ReadMode, path: str, search: SearchMeasureNote | None, *, since: int = 0, known: Container[str] = ()
) -> bool:
    """Return whether a file is outside the places of the last search.

    path: path key of the file; "" if it has none.
    since: reads since that search.
    known: path keys of the files that were read before.
    """
    if mode not in _JUDGED or not path or search is None or since >= RECENT:
        return False
    return 0 < len(search.paths) < TOP_PATHS and path not in search.paths and path not in known


def alternatives(search: SearchMeasureNote | None) -> tuple[str, ...]:
    """Return the path keys to read instead, the best first."""
    return () if search is None else search.paths[:MOST_ALTERNATIVES]


def excluded_folder(path: str, root: str) -> str | None:
    """Return the name of the excluded folder around a file, or None.

    root: the workspace. The folders above it do not count.
    """
    parts = shown_path(path, root).split("/")[:-1]
    return next((part for part in parts if part in EXCLUDED_FOLDERS), None)


def shown_path(path: str, root: str) -> str:
    """Return a path key as the model may write it: relative to the workspace, absolute outside of it."""
    top = root.rstrip("/") + "/"
    return path.removeprefix(top) if path.startswith(top) else path
