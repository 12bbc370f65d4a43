"""The commands for the objects that a session knows, registered by `cli`.

They write into the session's journal in the store; the agent's own process reads it at its next call. Heavy imports are
inside the commands, as in `cli`.
"""

from pathlib import Path
from typing import Annotated, TypeAlias

import typer

from pagein.cli.commands_pins import SessionName, print_answer
from pagein.cli.options import AsJson, Store, Workspace

Target: TypeAlias = Annotated[
    str, typer.Argument(metavar="OBJECT", help="An object's id, nickname or path; `pagein pool` lists them.")
]


def add_to(app: typer.Typer) -> None:
    """Add the commands of this module."""
    app.command(epilog="Examples:\n\npagein pool fix-login\n\npagein pool fix-login --json")(pool)
    app.command(epilog="Examples:\n\npagein activate fix-login src/auth.py\n\npagein activate fix-login toolu_01AbC")(
        activate
    )
    app.command(epilog="Example: pagein deactivate fix-login toolu_01AbC")(deactivate)


def pool(session: SessionName, *, workspace: Workspace = Path(), store: Store = None, as_json: AsJson = False) -> None:
    """List the files and outputs known to a session, with the active ones marked.

    A pooled window shows active objects whole, and the others as a line each.
    """
    from pagein import wiring
    from pagein.tools import pool_commands as commands

    with wiring.open_kept_session(session, store, workspace=workspace) as opened:
        print_answer(commands.pool(opened), as_json=as_json)


def activate(
    session: SessionName, target: Target, *, workspace: Workspace = Path(), store: Store = None, as_json: AsJson = False
) -> None:
    """Show an object whole in a session's window: a file, or the output of a call. A file is read again.

    It leaves some turns later, unless it is pinned (`pagein pin`).
    """
    from pagein import wiring
    from pagein.tools import pool_commands as commands

    with wiring.open_kept_session(session, store, workspace=workspace) as opened:
        print_answer(commands.activate(opened, target), as_json=as_json)


def deactivate(
    session: SessionName, target: Target, *, workspace: Workspace = Path(), store: Store = None, as_json: AsJson = False
) -> None:
    """Show an object only as a line in a session's window. It loses its pin, and can be activated again."""
    from pagein import wiring
    from pagein.tools import pool_commands as commands

    with wiring.open_kept_session(session, store, workspace=workspace) as opened:
        print_answer(commands.deactivate(opened, target), as_json=as_json)
