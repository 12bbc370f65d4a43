"""Whether a file is an excluded one under another name that no link tells of: a hard link (law 9).

Rules of this file
------------------
1. Only a file with several names is looked into: most have one, and cost nothing.
2. Its other names are looked for where they may be expected: in its own folder, in the user's home and the folders of keys there, and in
   the working folder and below, the folders of packages left out.
3. A search that would take too many steps ends, and the file counts as excluded: not storing costs a saving, storing a secret more.
4. Names elsewhere on the disk cannot be found: no system tells the names of a file. What nothing here names is not excluded.
"""

import os
import stat
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Final

from pagein.policy.privacy.exclusions import is_excluded
from pagein.workspace.folder_walk import IGNORED

_MOST: Final = 20_000
"""Names that are looked at before a search gives up."""
_KEYS: Final = ("", ".ssh", ".aws", ".gnupg", ".docker", ".kube", ".config")
"""Folders of the home folder where excluded files usually lie."""


def names_an_excluded(path: str, root: str, patterns: Iterable[str], most: int = _MOST) -> bool:
    """Whether the file at this path, in the working folder `root`, also has an excluded name."""
    try:
        about = Path(path).stat()
    except (OSError, ValueError):
        return False
    if about.st_nlink < 2 or not stat.S_ISREG(about.st_mode):  # noqa: PLR2004 -- one name is the one it is asked by
        return False
    excluded = tuple(patterns)
    for steps, entry in enumerate(_entries(path, root)):
        if steps >= most:
            return True
        # the number alone is free, but for a file of another disk with the same one
        if entry.inode() == about.st_ino and is_excluded(entry.name, excluded) and _is_same(entry, about):
            return True
    return False


def _entries(path: str, root: str) -> "Iterator[os.DirEntry[str]]":
    """What may be another name of the file, the likeliest first."""
    home = os.path.expanduser("~")  # noqa: PTH111 -- where there is no home the text stays as it is
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
