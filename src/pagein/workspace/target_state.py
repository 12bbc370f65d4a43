"""Tell what is at a path, for the error messages of reads: a file, a folder, nothing, or something unreadable."""

import difflib
import os
import stat
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Literal, TypeAlias

StateName: TypeAlias = Literal["file", "folder", "missing", "special", "unreadable"]

_MOST_NAMES: Final = 5
_MOST_LISTED: Final = 5_000


@dataclass(frozen=True, slots=True)
class TargetState:
    """What stands at a path.

    size: bytes of a file.
    names: for a folder, some files in it, or folders if it has no files; for a missing file, similar names in its folder.
    """

    name: StateName
    size: int = 0
    names: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class LinkPlace:
    """A symbolic link.

    path: absolute, with the links above its last part resolved. text: where it leads, as it is written in it.
    """

    path: str
    text: str


def link_at(path: str) -> LinkPlace | None:
    """Return the symbolic link at an absolute path, or None."""
    try:
        text = os.readlink(path)  # noqa: PTH115  paths stay text here
    except (OSError, ValueError):
        return None
    above, _, name = path.rstrip("/").rpartition("/")
    return LinkPlace(f"{os.path.realpath(above or '/').rstrip('/')}/{name}", text)


def state_of(path: str) -> TargetState:
    """Return what stands at an absolute path. Opens no file."""
    try:
        about = os.stat(path)  # noqa: PTH116  paths stay text here
    except (FileNotFoundError, NotADirectoryError):
        return TargetState("missing", names=_similar(os.path.realpath(path)))  # of a broken link, where it leads to
    except (OSError, ValueError):
        return TargetState("unreadable")
    if stat.S_ISDIR(about.st_mode):
        return TargetState("folder", names=_inside(Path(path)))
    return TargetState("file" if stat.S_ISREG(about.st_mode) else "special", about.st_size)


def root_of(folder: str) -> str:
    """Return the canonical path of a workspace."""
    return os.path.realpath(folder)


def is_inside(path: str, root: str) -> bool:
    """Return whether an absolute path lies in a folder, by its text alone."""
    flat = os.path.normpath(path)
    return flat == root or flat.startswith(f"{root.rstrip('/')}/")


def shown_path(path: str, root: str) -> str:
    """Return a path from the workspace on; the path itself outside of it."""
    return os.path.relpath(path, root) if is_inside(path, root) else path


def _inside(folder: Path) -> tuple[str, ...]:
    """Return some files of a folder, or its folders without files. Links may lead anywhere, and are left out."""
    names = [one for one in _names_in(folder) if not one.startswith(".") and not (folder / one).is_symlink()]
    files = [one for one in names if (folder / one).is_file()]
    return tuple(files or (f"{one}/" for one in names if (folder / one).is_dir()))[:_MOST_NAMES]


def _similar(path: str) -> tuple[str, ...]:
    here = Path(path)
    return tuple(difflib.get_close_matches(here.name, _names_in(here.parent), _MOST_NAMES))


def _names_in(folder: Path) -> list[str]:
    try:
        with os.scandir(folder) as entries:
            found = [entry.name for entry, _ in zip(entries, range(_MOST_LISTED), strict=False)]
    except (OSError, ValueError):
        return []
    return sorted(found)


def mode_of(path: str) -> int:
    """Return the mode of a file in git's notation; 0 for a missing file."""
    try:
        about = os.stat(path)  # noqa: PTH116  paths stay text here
    except (OSError, ValueError):
        return 0
    return 0o100755 if about.st_mode & stat.S_IXUSR else 0o100644
