"""The kill switch: while it is off, everything passes byte for byte.

`pagein off` writes a file into the user's data folder, which every gateway of that user looks for on each request;
`PAGEIN_OFF=1` does the same for one process, and the header `x-pagein: off` for one request. `pagein off --leaving` writes into the file
that the user is about to leave: then packed requests are looked into, too, and sessions that cannot leave yet are told of.
"""

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from pagein.errors import BadSetting
from pagein.gateway.settings import is_set

VARIABLE: Final = "PAGEIN_OFF"
_NAME: Final = "gateway.off"
_LEAVING: Final = b"leaving\n"


def default_switch() -> Path:
    """Where the file stands while the switch is off. Nothing is made."""
    # imported here: `pagein` itself starts without it
    from platformdirs import user_data_path

    return user_data_path("pagein", appauthor=False) / _NAME


def turn_off(file: Path, *, leaving: bool = False) -> None:
    """Make every gateway of this user pass through. leaving: as agents are about to go on without it. Raises BadSetting where the
    file cannot be made.
    """
    try:
        file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        with os.fdopen(os.open(file, os.O_CREAT | os.O_WRONLY | os.O_TRUNC, 0o600), "wb") as opened:
            opened.write(_LEAVING if leaving else b"")
    except OSError as problem:
        raise BadSetting(f"cannot switch off: {problem}; PAGEIN_OFF=1 does it for one process") from problem


def turn_on(file: Path) -> None:
    """Let them work again. Raises BadSetting where the file cannot be removed."""
    try:
        file.unlink(missing_ok=True)
    except OSError as problem:
        raise BadSetting(f"cannot switch on: {problem}") from problem


class Switch:
    """What one process asks on each request: one look at the file system."""

    def __init__(self, file: Path, environment: Mapping[str, str]) -> None:
        self._file = os.fspath(file)
        self._always = is_set(environment.get(VARIABLE))

    def is_off(self) -> bool:
        """Whether everything must pass through now. A file that cannot be looked for is not there."""
        if self._always:
            return True
        try:
            os.stat(self._file)  # noqa: PTH116 -- a path object costs several times as much, on each request
        except OSError:
            return False
        return True

    def is_leaving(self) -> bool:
        """Whether it is off because agents are to go on without us."""
        try:
            with open(self._file, "rb") as opened:  # noqa: PTH123 -- as above
                return opened.read(len(_LEAVING)) == _LEAVING
        except OSError:
            return False

    def why(self) -> str:
        """Who turned it off, "" while it is on."""
        if self._always:
            return f"{VARIABLE} is set"
        if self.is_leaving():
            return f"pagein off --leaving ({self._file} is there)"
        return f"pagein off ({self._file} is there)" if self.is_off() else ""
