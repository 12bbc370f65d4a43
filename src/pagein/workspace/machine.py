"""Which machine this is, so that paths on several machines that share a store are told apart."""

import hashlib
import os
import uuid
from pathlib import Path
from typing import Final

_IDS: Final = ("/etc/machine-id", "/var/lib/dbus/machine-id")
_DIGITS: Final = 16


def home_of(folder: str | os.PathLike[str]) -> str:
    """Names a folder of this machine among all folders of all machines: a hash that stands for the machine, and the real path."""
    return f"{machine()}:{os.path.realpath(folder)}"


def machine() -> str:
    """A name for this machine that stays, and does not give its id away: containers with machine ids of their own are machines too."""
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
