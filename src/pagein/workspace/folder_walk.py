"""Walk the files of a folder, without version control, packages and caches. Links are not followed."""

import hashlib
import os
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import Final

IGNORED: Final = frozenset(
    [
        ".git",
        ".hg",
        ".svn",
        ".jj",
        "node_modules",
        "__pycache__",
        ".venv",
        "venv",
        ".tox",
        ".nox",
        ".mypy_cache",
        ".pytest_cache",
        ".ruff_cache",
        ".hypothesis",
        ".idea",
        ".gradle",
        ".cache",
        ".next",
        ".turbo",
        "target",
        "dist",
        "build",
        ".eggs",
        "site-packages",
    ]
)
"""Names of folders excluded from the search for a moved file. Files in them are followed nevertheless, once touched."""
_MOST: Final = 200_000


def walk(folder: str) -> Iterator[str]:
    """Yield paths of the regular files below a folder, unordered, up to a large limit.

    Unlistable folders are skipped.
    """
    left = _MOST
    waiting = [folder]
    while waiting and left > 0:
        try:
            with os.scandir(waiting.pop()) as entries:
                for entry in entries:
                    if entry.is_dir(follow_symlinks=False):
                        if entry.name not in IGNORED:
                            waiting.append(entry.path)
                    elif entry.is_file(follow_symlinks=False):
                        left -= 1
                        yield entry.path
        except OSError:
            continue


def digest_of(path: str) -> str:
    """Return the hash of a file's bytes, read in chunks. Raises OSError."""
    with open(path, "rb") as file:  # noqa: PTH123  paths stay text here
        return hashlib.file_digest(file, "sha256").hexdigest()


def size_of(path: str) -> int | None:
    """Return the size of a regular file in bytes, or None for anything else and for an inaccessible path."""
    try:
        about = os.stat(path)  # noqa: PTH116  paths stay text here
    except (OSError, ValueError):
        return None
    return about.st_size if stat.S_ISREG(about.st_mode) else None


def files_at(path: str) -> Iterator[str]:
    """Yield the file at this path, or the files below the folder at this path."""
    if size_of(path) is not None:
        yield path
    elif Path(path).is_dir():
        yield from walk(path)
