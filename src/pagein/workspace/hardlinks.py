"""Detect a hard link to an excluded file: the same file under a name that is not excluded (law 9).

Rules of this file
------------------
1. Only a file with several names is checked: most files have a single name, and cost nothing.
2. Other names are searched in likely places: the file's own folder, the user's home with its key folders, and the working folder with
   its subfolders, without package folders.
3. A search with too many steps stops, and the file counts as excluded: not storing loses some savings, storing a secret does harm.
4. Names elsewhere on the disk cannot be found: no operating system lists the names of a file. A file without an excluded name in these
places is not excluded.
"""

import os
import stat
from collections.abc import Iterable, Iterator
from typing import Final

from pagein.policy.privacy.exclusions import is_excluded
from pagein.workspace.folder_walk import IGNORED

_MOST: Final = 20_000
"""Number of names checked before a search gives up."""
_KEYS: Final = ("", ".ssh", ".aws", ".gnupg", ".docker", ".kube", ".config")
"""Subfolders of the home folder that usually contain excluded files."""


def names_an_excluded(path: str, root: str, patterns: Iterable[str], most: int = _MOST) -> bool:
    """Return whether the file at this path, with working folder `root`, also has an excluded name."""
    try:
        about = os.stat(path)  # noqa: PTH116  paths stay text here
    except (OSError, ValueError):
        return False
    if about.st_nlink < 2 or not stat.S_ISREG(about.st_mode):  # noqa: PLR2004 -- a single name is `path` itself
        return False
    excluded = tuple(patterns)
    for steps, entry in enumerate(_entries(path, root)):
        if steps >= most:
            return True
        # the inode number is free to read, but a file of another disk may have the same number
        if entry.inode() == about.st_ino and is_excluded(entry.name, excluded) and _is_same(entry, about):
            return True
    return False


def _entries(path: str, root: str) -> "Iterator[os.DirEntry[str]]":
    """Yield directory entries that may be another name of the file, the likeliest first."""
    home = os.path.expanduser("~")  # noqa: PTH111 -- without a home folder the text stays unchanged
    near = dict.fromkeys((os.path.dirname(path), *(os.path.join(home, name) for name in _KEYS)))  # noqa: PTH118, PTH120  paths stay text here
    for folder in near:
        yield from _list_folder(folder)
    waiting = [root]
    while waiting:
        for entry in _list_folder(waiting.pop()):
            if _is_folder(entry) and entry.name not in IGNORED:
                waiting.append(entry.path)
            yield entry


def _list_folder(folder: str) -> "list[os.DirEntry[str]]":
    try:
        with os.scandir(folder) as entries:
            return list(entries)
    except (OSError, ValueError):
        return []


def _is_folder(entry: "os.DirEntry[str]") -> bool:
    try:
        return entry.is_dir(follow_symlinks=False)
    except OSError:
        return False


def _is_same(entry: "os.DirEntry[str]", about: os.stat_result) -> bool:
    try:
        return os.path.samestat(entry.stat(follow_symlinks=False), about)
    except OSError:
        return False
