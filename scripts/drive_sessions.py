"""Send recorded sessions over HTTP, directly to a simulated provider and through the gateway, and compare both with a replay.

    python scripts/drive_sessions.py FILE|DIR...

Prints per session the bill through pagein as a part of the bill without, over HTTP and as replayed. Both count tokens alike, for
the replay reads a log of what was sent. All happens at the recorded times; nothing is waited for. Re-reads are answered and
nothing is recalled, here and there.
Exit status 1 where a request was refused or something of pagein's failed.
"""

import sys
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

from pagein.replay.readers import Source, find, read_source
from pagein.testing.recorded_drive import Bills, drive_and_bill


def row(name: str, found: Bills) -> str:
    """One line about a session."""
    http, replayed = found.ratios
    agree = found.replayed[0] / found.direct if found.direct else 1.0
    wrong = f"  refused {found.refused}, failed {found.failed}" if found.refused or found.failed else ""
    return f"{name[-60:]:60} {found.requests:5} calls  http {http:.3f}  replay {replayed:.3f}  (append over http, as replayed: {agree:.4f}){wrong}"


def main(arguments: Sequence[str]) -> int:
    """Drive all sessions that are found."""
    wrong = 0
    for source in find([Path(one) for one in arguments]):
        if not isinstance(source, Source):
            continue
        for session in read_source(source):
            with TemporaryDirectory(prefix="pagein-drive-") as folder:
                found = drive_and_bill(list(session.entries), Path(folder))
            wrong += found.refused + found.failed
            print(row(session.head.file, found), flush=True)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
