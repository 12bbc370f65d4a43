"""Place a complete file atomically, under a new name or in exchange for a store's file.

Rules of this file
------------------
1. A new file is written under another name in the nearest existing folder, on the same disk, so that renaming is a single step.
2. The file is synced to the disk before it gets its name. An incomplete file is removed, together with folders created for it.
3. A store's file is exchanged only while no other process has it open. SQLite locks a byte range of the file while a connection is
   open in WAL mode, whatever the content; a process that gets a lock on the whole range is alone. These locks end when the process
   closes any handle of the file, so the process must not open and close the file meanwhile.
4. The old file stays under another name, log included.
"""

import contextlib
import fcntl
import itertools
import os
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from pagein.errors import BadInput
from pagein.store.search.sqlite_index import SUFFIX as INDEX
from pagein.store.sqlite.readonly_file import LOG
from pagein.store.sqlite.sqlite_database import make_folder

# SQLite's file format: the pending byte, the reserved byte and the shared range after them.
_LOCKED: Final = 0x40000000
_LOCKS: Final = 512
_SHARED_INDEX: Final = "-shm"
DAMAGED: Final = ".damaged-"
"""Suffix of an exchanged file's name, between the store's name and a number."""


@contextlib.contextmanager
def place_file(path: Path) -> Iterator[Path]:
    """Yield a temporary path whose file gets the name `path` if the context ends without exception.

    Raises BadInput if impossible, or if `path` exists by then.
    """
    nearest = next(folder for folder in path.absolute().parents if folder.is_dir())
    try:
        made_in = tempfile.TemporaryDirectory(prefix=f".{path.name}.", dir=nearest)
    except OSError as problem:
        raise BadInput(f"{path}: {problem.strerror}; nothing was made") from problem
    with made_in as folder:
        made = Path(folder) / path.name
        yield made
        if made.exists():
            sync_file(made)
            make_folder(path.absolute().parent)
            _name_file(made, path)


def sync_file(path: Path) -> None:
    """Wait until the content of a file, or the names in a folder, are on the disk."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def _name_file(made: Path, path: Path) -> None:
    try:
        # a link instead of a rename: the first process keeps the name
        path.hardlink_to(made)
    except FileExistsError:
        raise BadInput(f"{path} was made by somebody else meanwhile; nothing was imported, do it again") from None
    except OSError:  # a file system without links
        made.replace(path)
    sync_file(path.absolute().parent)


@contextlib.contextmanager
def alone(path: Path) -> Iterator[None]:
    """Yield a context in which no other process has this store open.

    Raises BadInput if the store is in use or not writable.
    """
    try:
        handle = os.open(path, os.O_RDWR)
    except OSError as problem:
        raise BadInput(
            f"{path}: {problem.strerror}; a repair needs a file and a folder that this user may write, so copy it to one"
        ) from problem
    try:
        try:
            fcntl.lockf(handle, fcntl.LOCK_EX | fcntl.LOCK_NB, _LOCKS, _LOCKED)
        except (BlockingIOError, PermissionError):
            raise BadInput(f"{path} is in use; end what uses it (agents, pagein serve), then repair it") from None
        except OSError:  # a file system without locks
            pass
        yield
    finally:
        os.close(handle)


def exchange(path: Path, made: Path) -> Path:
    """Put a finished file in the place of a store's file, within `alone`. Return the path of the old file."""
    sync_file(made)
    aside = next(
        one for number in itertools.count(1) if not (one := path.with_name(f"{path.name}{DAMAGED}{number}")).exists()
    )
    log, log_aside = (one.with_name(one.name + LOG) for one in (path, aside))
    for old, kept in ((path, aside), (log, log_aside)):
        with contextlib.suppress(FileNotFoundError):
            kept.hardlink_to(old)
    sync_file(path.parent)
    # the old log must not be applied to the new file
    for beside in (log, *(path.with_name(path.name + end) for end in (_SHARED_INDEX, *_of_index()))):
        beside.unlink(missing_ok=True)
    made.replace(path)
    sync_file(path.parent)
    return aside


def _of_index() -> tuple[str, ...]:
    """Return the suffixes of the search index, to be rebuilt: it refers to the places in the old file."""
    return (INDEX, INDEX + LOG, INDEX + _SHARED_INDEX)
