"""Reports of agents' hooks: the sessions in which a hook blocks calls that would write pagein's own text into a file.

A hook leaves a file in the user's data folder when it looks at the first file write of a session (`pagein hook`). A gateway masks
texts in the arguments of calls only in such sessions, and only if the hook looks into the gateway's own store.
"""

import contextlib
import os
import tempfile
from collections.abc import Callable
from hashlib import sha256
from pathlib import Path
from typing import Final

_KEPT: Final = 30 * 86_400.0
"""Seconds for which a report is kept. A longer session reports itself again."""


def default_folder() -> Path:
    """Return the default folder of reports. Creates nothing."""
    # imported here so that `import pagein` stays cheap
    from platformdirs import user_data_path

    return user_data_path("pagein", appauthor=False) / "guards"


class GuardReports:
    """The reports in a folder."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def is_reported(self, session: str) -> bool:
        """Return whether a hook has reported a session, for any store."""
        return self._file(session).is_file()

    def report(self, session: str, store: str, now: float) -> None:
        """Report that a hook checks the file writes of a session against a store, and remove old reports.

        now: seconds since 1970. Raises OSError if the report cannot be written.
        """
        self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        for one in self._folder.iterdir():
            with contextlib.suppress(OSError):
                if one.stat().st_mtime < now - _KEPT:
                    one.unlink()
        number, begun = tempfile.mkstemp(dir=self._folder, prefix="begun-")  # readable by the user alone
        with os.fdopen(number, "w", encoding="ascii") as opened:
            opened.write(_digest(store))
        Path(begun).replace(self._file(session))

    def is_guarded(self, session: str, store: str) -> bool:
        """Return whether a hook has reported a session for this store. An unreadable report counts as none."""
        try:
            return self._file(session).read_text(encoding="ascii") == _digest(store)
        except (OSError, ValueError):
            return False

    def _file(self, session: str) -> Path:
        return self._folder / _digest(session)


def guarded_sessions(store: str | None) -> Callable[[str], bool]:
    """Return whether a session is reported for this store, in the default folder. None, a store in memory, has no reports."""
    reports = GuardReports(default_folder())
    return lambda session: store is not None and reports.is_guarded(session, store)


def _digest(text: str) -> str:
    return sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
