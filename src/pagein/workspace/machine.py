"""Identify this machine, to distinguish equal paths on several machines that share a store."""

import hashlib
import os
import uuid
from pathlib import Path
from typing import Final

from pagein.model.file_homes import home_of_folder

_IDS: Final = ("/etc/machine-id", "/var/lib/dbus/machine-id")
_DIGITS: Final = 16


def home_of(folder: str | os.PathLike[str]) -> str:
    """Return an id of a folder on this machine, unique among machines: a hash for the machine, and the real path."""
    return home_of_folder(machine(), os.path.realpath(folder))


def machine() -> str:
    """Return a stable id of this machine that does not reveal the system's machine id.

    A container with its own machine id counts as a machine.
    """
    return hashlib.sha256(f"pagein machine {_machine_name()}".encode()).hexdigest()[:_DIGITS]


def _machine_name() -> str:
    for place in _IDS:
        try:
            found = Path(place).read_text(encoding="ascii").strip()
        except (OSError, UnicodeDecodeError):
            continue
        if found:
            return found
    return f"{uuid.getnode():012x}"
