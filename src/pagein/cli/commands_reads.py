"""The commands for reads in a session named on the command line, registered by `cli`.

Heavy imports are inside the commands, as in `cli`.
"""

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from pagein.cli.options import AsJson, SessionName, Store, Workspace
from pagein.errors import BadInput, StoreError

if TYPE_CHECKING:
    from pagein.engine.session import Session


def add_to(app: typer.Typer) -> None:
    """Add the commands of this module."""
    app.command(
        epilog="Examples:\n\npagein read src/app.py --session fix-login\n\npagein read src/app.py:10-40 --session fix-login"
    )(read)
    app.command(epilog="Example: pagein refresh src/app.py 10-40 --session fix-login")(refresh)
    app.command(epilog="Example: pagein reads --session fix-login --json")(reads)


def read(  # noqa: PLR0913 - a command has as many options as it has
    path: Annotated[str, typer.Argument(metavar="PATH[:A-B]", help="The file; :A-B selects lines.")],
    *,
    session: SessionName,
    offset: Annotated[int | None, typer.Option("--offset", metavar="LINE", help="First line, from 1.")] = None,
    limit: Annotated[int | None, typer.Option("--limit", metavar="N", help="How many lines.")] = None,
    bypass_cache: Annotated[bool, typer.Option("--bypass-cache", help="Show the text whatever is known.")] = False,
    workspace: Workspace = Path(),
    store: Store = None,
    as_json: AsJson = False,
) -> None:
    """Read a file as the model of a session would, or see what it is told instead.

    What is printed counts as seen by that model from then on.
    """
    from pagein.tools import read_commands as commands

    answer = _in_session(
        session,
        workspace,
        store,
        lambda opened: commands.read_file(opened, path, offset=offset, limit=limit, bypass=bypass_cache),
    )
    _print(answer, as_json=as_json)


def refresh(
    path: Annotated[str, typer.Argument(metavar="PATH[:A-B]", help="The file; :A-B selects lines.")],
    lines: Annotated[str | None, typer.Argument(metavar="[A-B]", help="Only these lines.", show_default="all")] = None,
    *,
    session: SessionName,
    workspace: Workspace = Path(),
    store: Store = None,
    as_json: AsJson = False,
) -> None:
    """Have a session's next read of a file, or of some of its lines, show the text itself."""
    from pagein.tools import read_commands as commands

    answer = _in_session(session, workspace, store, lambda opened: commands.refresh(opened, path, lines))
    _print(answer, as_json=as_json, needs_store=True)


def reads(
    *,
    session: Annotated[
        str, typer.Option("--session", "-s", metavar="NAME", envvar="PAGEIN_SESSION", help="The session's name.")
    ],
    workspace: Workspace = Path(),
    store: Store = None,
    as_json: AsJson = False,
) -> None:
    """Show which files a session's model has read, and how many tokens shorter answers saved."""
    from pagein import wiring
    from pagein.tools import read_commands as commands

    try:
        with wiring.open_kept_session(session, store, workspace=workspace) as kept:
            answer = commands.reads(kept)
    except StoreError:  # the figures report this error, too
        answer = _in_session(session, workspace, store, commands.reads)
    _print(answer, as_json=as_json)


def _in_session(
    name: str, workspace: Path, store: str | None, work: "Callable[[Session], dict[str, Any]]"
) -> dict[str, Any]:
    from pagein import wiring

    if not name.strip():
        raise BadInput("a session needs a name; give one with --session")
    with wiring.open(store, workspace=workspace) as engine:
        return work(engine.session(name, workspace=workspace))


def _print(answer: dict[str, Any], *, as_json: bool, needs_store: bool = False) -> None:
    if as_json:
        # ASCII, so that text in an unknown encoding is escaped, not refused
        sys.stdout.write(json.dumps(answer, allow_nan=False, separators=(",", ":")) + "\n")
    if answer.get("is_error"):
        raise BadInput(str(answer["text"]))
    if (
        needs_store and answer.get("failure") is not None
    ):  # without a store the refresh is lost at the end of this process
        raise StoreError(f"nothing was refreshed: {answer['failure']}")
    if not as_json:
        text = str(answer["text"])
        sys.stdout.write(text if text.endswith("\n") else text + "\n")
    if answer.get("failure") is not None:
        sys.stderr.write(f"pagein: answered as if there were no store: {answer['failure']}\n")
