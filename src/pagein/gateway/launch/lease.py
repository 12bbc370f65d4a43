"""A lease: the lock by which running agents keep a gateway running.

Each launcher of an agent holds a shared lock on the gateway's lease file. The gateway ends when it gets the exclusive lock. The kernel
frees the locks of a killed process, so that no gateway stays behind.
"""

import contextlib
import fcntl
import os
from pathlib import Path
from typing import Final

_SUFFIX: Final = ".lease"


class Lease:
    """A share in a gateway, held until `release`."""

    def __init__(self, number: int) -> None:
        self._number = number

    def release(self) -> None:
        """Give the share back."""
        os.close(self._number)


def lease_file(folder: Path, port: int) -> Path:
    """Return the lease file of the gateway at a port of this machine. Creates nothing."""
    return folder / f"{port}{_SUFFIX}"


def take(file: Path) -> Lease | None:
    """Take a share; None if the gateway is about to end. Raises OSError if the file cannot be opened."""
    file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    number = os.open(file, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o600)
    try:
        fcntl.flock(number, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(number)
        return None
    return Lease(number)


class LeaseWatch:
    """A gateway's look at its own lease file."""

    def __init__(self, file: Path) -> None:
        self._number: int | None = None
        with contextlib.suppress(OSError):  # a file that is gone or unreadable has no holders
            self._number = os.open(file, os.O_RDWR | os.O_NOFOLLOW)

    def is_over(self) -> bool:
        """Return whether the last lease is released. Afterwards, no process can take a lease until this process ends."""
        if self._number is None:
            return True
        try:
            fcntl.flock(self._number, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        return True
