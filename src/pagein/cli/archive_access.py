"""Shared by the commands about stored objects: the chosen store, names of files, times, and output.

Heavy imports are inside the functions, as in `cli`.
"""

import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeAlias

import typer

from pagein.cli.standard_streams import print_json, warn
from pagein.errors import StoreError

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
    typer.Option(
        "--since", metavar="TIME", help="Stored at this time or later: 2026-11-21T10:00, yesterday, 2h, 3d ago."
    ),
]
Until: TypeAlias = Annotated[str | None, typer.Option("--until", metavar="TIME", help="Stored at this time or before.")]
Limit: TypeAlias = Annotated[
    int, typer.Option("--limit", "-n", metavar="N", min=1, max=100_000, help="Maximum number of rows.")
]
AsOf: TypeAlias = Annotated[
    str | None,
    typer.Option("--as-of", "--at", metavar="TIME", help="As it was then: 2026-11-21T10:00, or 2h, 3d ago."),
]


def in_archive(store: str | None, workspace: Path | None, work: "Callable[[Archive], Any]") -> Any:  # noqa: ANN401 - what work gives
    """Answer a question about the objects of the store that is meant. Tell on stderr if it is not the own folder's."""
    from pagein.engine.log.gc_pause import pause_collection

    with pause_collection():  # modules are no garbage
        from rich.console import Console

        from pagein.archive import catch_up, find_store, open_archive
        from pagein.ui.progress import step_bar

    place = find_store(store, workspace)
    if place.told:
        warn(place.told)
    with open_archive(place.store, workspace=place.workspace) as archive:
        with step_bar(Console(stderr=True), "following the journals") as tell:
            behind = catch_up(archive, tell)
        try:
            with pause_collection():
                return work(archive)
        except StoreError as problem:
            behind = "" if str(problem) == behind else behind  # the store failed again, and tells so itself
            raise
        finally:
            if behind:
                warn(f"the newest entries may be missing: {behind}")


def print_answer(answer: dict[str, Any], view: Callable[..., None], *, as_json: bool) -> None:
    """Print an answer as a JSON object, or with a view for people."""
    from pagein.ui.console import console

    if as_json:
        print_json(answer)
    else:
        view(console(), answer)


def file_paths(name: str) -> Sequence[str]:
    """Return the paths that a name may mean in the current folder, the most likely first."""
    absolute = os.path.normpath(Path.cwd() / Path(name).expanduser())
    return tuple(dict.fromkeys((absolute, os.path.realpath(absolute), name)))


def moment(text: str | None) -> float | None:
    """Parse a moment that a person wrote, as seconds since 1970."""
    import time

    from pagein.tools import moments

    return None if text is None else moments.moment(text, time.time())  # noqa: TID251 - the rim reads the clock
