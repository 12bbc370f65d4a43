"""What the commands about stored objects share: the store that is meant, names of files, times, and output.

Heavy imports are inside the functions, as in `cli`.
"""

import json
import os
import re
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final, TypeAlias

import typer

from pagein.errors import BadSetting

if TYPE_CHECKING:
    from pagein.archive import Archive

Name: TypeAlias = Annotated[
    str,
    typer.Argument(
        metavar="NAME",
        help="An id, a nickname, the path of a file, or a session; @N for a version. May be abbreviated.",
    ),
]
GivenWorkspace: TypeAlias = Annotated[
    Path | None,
    typer.Option(
        "--workspace",
        "-w",
        metavar="DIR",
        help="The folder whose store is used.",
        show_default="the running gateway's store, else that of the current folder",
    ),
]
Since: TypeAlias = Annotated[
    str | None,
    typer.Option("--since", metavar="TIME", help="Stored at this time or later: 2026-11-21T10:00, or 2h, 3d ago."),
]
Until: TypeAlias = Annotated[str | None, typer.Option("--until", metavar="TIME", help="Stored at this time or before.")]
AsOf: TypeAlias = Annotated[
    str | None,
    typer.Option("--as-of", "--at", metavar="TIME", help="As it was then: 2026-11-21T10:00, or 2h, 3d ago."),
]

_AGO: Final = re.compile(r"([0-9]{1,9})\s*(s|min|m|h|d|w)")
_SECONDS: Final = {"s": 1, "min": 60, "m": 60, "h": 3600, "d": 86_400, "w": 604_800}


def in_archive(store: str | None, workspace: Path | None, work: "Callable[[Archive], Any]") -> Any:  # noqa: ANN401 - what work gives
    """Answer a question about the objects of the store that is meant. Tell on stderr if it is not the own folder's."""
    from rich.console import Console

    from pagein.archive import catch_up, find_store, open_archive
    from pagein.ui.figures import plain
    from pagein.ui.progress import step_bar

    place = find_store(store, workspace)
    if place.told:
        sys.stderr.write(f"pagein: {plain(place.told)}\n")
    with open_archive(place.store, workspace=place.workspace) as archive:
        with step_bar(Console(stderr=True), "following the journals") as tell:
            behind = catch_up(archive, tell)
        if behind:
            sys.stderr.write(f"pagein: the newest entries may be missing: {plain(behind)}\n")
        return work(archive)


def print_answer(answer: dict[str, Any], view: Callable[..., None], *, as_json: bool) -> None:
    """Print an answer as a JSON object, or with a view for people."""
    from pagein.ui.console import console

    if as_json:
        # ASCII, so that text in an unknown encoding is escaped, not refused
        sys.stdout.write(json.dumps(answer, allow_nan=False, separators=(",", ":")) + "\n")
    else:
        view(console(), answer)


def file_paths(name: str) -> Sequence[str]:
    """Return the paths that a name may mean in the current folder, the most likely first."""
    absolute = os.path.normpath(Path.cwd() / Path(name).expanduser())
    return tuple(dict.fromkeys((absolute, os.path.realpath(absolute), name)))


def moment(text: str | None) -> float | None:
    """Parse a moment, as seconds since 1970.

    text: a date with or without time (local without a zone), `2h` ago, or the seconds themselves.
    """
    import time
    from datetime import datetime

    if text is None:
        return None
    if ago := _AGO.fullmatch(text.strip()):
        return time.time() - int(ago[1]) * _SECONDS[ago[2]]  # noqa: TID251 - the rim reads the clock
    try:
        return float(text) if re.fullmatch(r"[0-9]+(\.[0-9]+)?", text) else datetime.fromisoformat(text).timestamp()
    except (ValueError, OverflowError, OSError):
        raise BadSetting(
            f"not a time: {text[:40]!r}; write 2026-11-21, 2026-11-21T10:00, or 30min, 2h, 3d, 1w ago"
        ) from None
