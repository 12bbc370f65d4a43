"""The name of a file among all files of a store: its home and its path.

Rules of this file
------------------
1. A path is a name on one machine only. The home of a file is therefore the id of its machine, or "" where the machine cannot
   be known. So equal paths on two machines are two files.
2. A relative path without a known folder means a file of its session alone: the session is its home.
3. A program that follows a folder of its own with `archive.watch` adds the folder to the home.
"""

import re
from typing import Final

_DRIVE: Final = re.compile(r"[A-Za-z]:[\\/]")
_OF_SESSION: Final = "session:"


def is_absolute(path: str) -> bool:
    """Return whether a path means the same file in every folder."""
    return path.startswith("/") or _DRIVE.match(path) is not None


def home_of_path(path: str, session: str, machine: str = "") -> str:
    """Return the home of a file that a session touched.

    machine: id of the session's machine; "" if it is unknown.
    """
    return machine if is_absolute(path) else f"{_OF_SESSION}{session}"


def home_of_folder(machine: str, folder: str) -> str:
    """Return the home of the files of a folder that a program follows."""
    return f"{machine}:{folder}"


def machine_in(home: object) -> str:
    """Return the id of the machine in a file's home; "" if the machine is unknown."""
    return home.partition(":")[0] if isinstance(home, str) and not home.startswith(_OF_SESSION) else ""


def may_be_on(home: object, machine: str) -> bool:
    """Return whether a file with this home may be one of a machine."""
    return machine_in(home) in ("", machine)
