"""A file that appears, or takes the place of a store's file, once it is complete.

Rules of this file
------------------
1. A new file is made under another name in the nearest folder that is there, on the same disk, so that renaming it is one step.
2. It is on the disk before it has its name. What was not completed is taken away, folders that were made for it too.
3. A store's file is only exchanged while nobody has it open. SQLite locks a byte range of the file for as long as a connection is open
   in WAL mode, whatever the file holds; whoever gets all of that range is alone. Such locks end when the process closes any handle of the
   file, so nothing else may be opened and closed on it meanwhile.
4. What was there keeps its bytes under another name, log included.
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

# SQLite's file format: the pending byte, the reserved byte and the shared range behind it.
_LOCKED: Final = 0x40000000
_LOCKS: Final = 512
_SHARED_INDEX: Final = "-shm"
DAMAGED: Final = ".damaged-"
"""What the name of an exchanged file has behind that of the store, before its number."""


@contextlib.contextmanager
def place_file(path: Path) -> Iterator[Path]:
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
            sync_file(made)
            make_folder(path.absolute().parent)
            _name_file(made, path)


def sync_file(path: Path) -> None:
    """Wait until the disk has a file, or the names in a folder."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def _name_file(made: Path, path: Path) -> None:
    try:
        # a link and no renaming: who came first keeps the name
        path.hardlink_to(made)
    except FileExistsError:
        raise BadInput(f"{path} was made by somebody else meanwhile; nothing was imported, do it again") from None
    except OSError:  # a disk without links
        made.replace(path)
    sync_file(path.absolute().parent)


@contextlib.contextmanager
def alone(path: Path) -> Iterator[None]:
    """A time in which no other process has this store open. Raises BadInput where one has, or where the file may not be written."""
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
        except OSError:  # a disk that knows no locks
            pass
        yield
    finally:
        os.close(handle)


def exchange(path: Path, made: Path) -> Path:
    """Put a finished file in the place of a store's, and give the name under which the old one is kept. Within `alone`."""
    sync_file(made)
    aside = next(
        one for number in itertools.count(1) if not (one := path.with_name(f"{path.name}{DAMAGED}{number}")).exists()
    )
    log, log_aside = (one.with_name(one.name + LOG) for one in (path, aside))
    for old, kept in ((path, aside), (log, log_aside)):
        with contextlib.suppress(FileNotFoundError):
            kept.hardlink_to(old)
    sync_file(path.parent)
    # the old log must not be taken for the new file's
    for beside in (log, *(path.with_name(path.name + end) for end in (_SHARED_INDEX, *_of_index()))):
        beside.unlink(missing_ok=True)
    made.replace(path)
    sync_file(path.parent)
    return aside


def _of_index() -> tuple[str, ...]:
    """The search index is made anew: it knows texts by the places of the old file."""
    return (INDEX, INDEX + LOG, INDEX + _SHARED_INDEX)
