"""A file that appears, or takes the place of another, once it is complete.

Rules of this file
------------------
1. A new file is made under another name in the nearest folder that is there, on the same disk, so that renaming it is one step.
2. It is on the disk before it has its name. What was not completed is taken away, folders that were made for it too.
"""

import contextlib
import os
import tempfile
from collections.abc import Iterator
from pathlib import Path

from pagein.errors import BadInput
from pagein.store.database import make_folder


@contextlib.contextmanager
def appearing(path: Path) -> Iterator[Path]:
    """A place to make a file in, which gets its name when the context ends well. Raises BadInput where it cannot be made, or is there by then."""
    nearest = next(folder for folder in path.absolute().parents if folder.is_dir())
    try:
        made_in = tempfile.TemporaryDirectory(prefix=f".{path.name}.", dir=nearest)
    except OSError as problem:
        raise BadInput(f"{path}: {problem.strerror}; nothing was made") from problem
    with made_in as folder:
        made = Path(folder) / path.name
        yield made
        if made.exists():
            synced(made)
            make_folder(path.absolute().parent)
            _named(made, path)


def synced(path: Path) -> None:
    """Wait until the disk has a file, or the names in a folder."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def _named(made: Path, path: Path) -> None:
    try:
        # a link and no renaming: who came first keeps the name
        path.hardlink_to(made)
    except FileExistsError:
        raise BadInput(f"{path} was made by somebody else meanwhile; nothing was imported, do it again") from None
    except OSError:  # a disk without links
        made.replace(path)
    synced(path.absolute().parent)
