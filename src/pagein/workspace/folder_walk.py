"""The files of a folder, without what nobody means: version control, packages, caches. Links are not followed."""

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
"""Names of folders whose files are not looked through for one that moved. Files in them are followed all the same, once touched."""
_MOST: Final = 200_000


def walk(folder: str) -> Iterator[str]:
    """Paths of the regular files below, in no order that matters, at most a great many. What cannot be listed is passed over."""
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
    """The hash of a file's bytes, read piece by piece. Raises OSError."""
    with open(path, "rb") as file:  # noqa: PTH123  paths stay text here
        return hashlib.file_digest(file, "sha256").hexdigest()


def size_of(path: str) -> int | None:
    """How many bytes a regular file has; None for what is none, or cannot be asked."""
    try:
        about = os.stat(path)  # noqa: PTH116  paths stay text here
    except (OSError, ValueError):
        return None
    return about.st_size if stat.S_ISREG(about.st_mode) else None


def files_at(path: str) -> Iterator[str]:
    """The file at this path, or the files below the folder at it."""
    if size_of(path) is not None:
        yield path
    elif Path(path).is_dir():
        yield from walk(path)
