"""Leave out the recordings of sessions that ran behind pagein, where a command finds the recordings itself.

Heavy imports are inside the function, as in `cli`.
"""

import shlex
from collections.abc import Sequence
from pathlib import Path

from pagein.cli.standard_streams import warn
from pagein.errors import BadInput


def leave_out_journaled(paths: Sequence[Path], most: int, command: str) -> list[Path]:
    """Return the files without those before the first `most` that ran behind pagein, and tell on stderr of these.

    Raises BadInput if none stays.
    """
    from pagein.archive import open_own_stores
    from pagein.past_sessions.journaled_sessions import JournaledSessions
    from pagein.ui.figures import plural

    left: list[Path] = []
    with open_own_stores() as stores:
        journaled = JournaledSessions(stores)
        for place, path in enumerate(paths):
            if place - len(left) == most:
                break
            if journaled.have(path):
                left.append(path)
    kept = [path for path in paths if path not in left]
    if not left:
        return kept
    told = (
        f"{plural(len(left), 'recording')} left out, of sessions that ran behind pagein: the recorded usage is the smaller one already, "
        f"and pagein status has the costs; to include one, name it: pagein {command} {shlex.quote(str(left[0]))}"
    )
    if not kept:
        raise BadInput(told)
    warn(told)
    return kept
