"""Kill switch: while pagein is off, the gateway forwards every byte unchanged.

`pagein off` writes a file into the user's data folder, and every gateway of this user checks for the file on each request;
`PAGEIN_OFF=1` does the same for one process, and the header `x-pagein: off` for one request. `pagein off --leaving` marks the file to
announce that the user leaves: then compressed requests are read, too, and sessions that cannot leave yet are reported.
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
    """Return the path of the switch file. Creates nothing."""
    # imported here so that `import pagein` stays cheap
    from platformdirs import user_data_path

    return user_data_path("pagein", appauthor=False) / _NAME


def turn_off(file: Path, *, leaving: bool = False) -> None:
    """Switch every gateway of this user to passthrough. Raises BadSetting if the file cannot be created.

    leaving: agents are about to continue without the gateway
    """
    try:
        file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        with os.fdopen(os.open(file, os.O_CREAT | os.O_WRONLY | os.O_TRUNC, 0o600), "wb") as opened:
            opened.write(_LEAVING if leaving else b"")
    except OSError as problem:
        raise BadSetting(
            f"cannot switch off: {file}: {problem.strerror or problem}; PAGEIN_OFF=1 does it for one process"
        ) from problem


def turn_on(file: Path) -> None:
    """Switch the gateways on again. Raises BadSetting if the file cannot be removed."""
    try:
        file.unlink(missing_ok=True)
    except OSError as problem:
        raise BadSetting(f"cannot switch on: {file}: {problem.strerror or problem}") from problem


class Switch:
    """The switch as seen by a process: a single file system call per request."""

    def __init__(self, file: Path, environment: Mapping[str, str]) -> None:
        self._file = os.fspath(file)
        self._always = is_set(environment.get(VARIABLE))

    def is_off(self) -> bool:
        """Return whether the gateway must forward everything unchanged.

        An inaccessible switch file counts as missing.
        """
        if self._always:
            return True
        try:
            os.stat(self._file)  # noqa: PTH116 -- a path object costs several times as much, on each request
        except OSError:
            return False
        return True

    def is_leaving(self) -> bool:
        """Return whether the gateway is off because agents will continue without it."""
        try:
            with open(self._file, "rb") as opened:  # noqa: PTH123 -- as above
                return opened.read(len(_LEAVING)) == _LEAVING
        except OSError:
            return False

    def why(self) -> str:
        """Return the reason for being off, "" while on."""
        if self._always:
            return f"{VARIABLE} is set"
        if self.is_leaving():
            return f"pagein off --leaving ({self._file} is there)"
        return f"pagein off ({self._file} is there)" if self.is_off() else ""
