"""The commands for pins on a running session, registered by `cli`.

They write into the session's journal in the store; the agent's own process reads the pins at its next call. Heavy
imports are inside the commands, as in `cli`.
"""

import sys
from pathlib import Path
from typing import Annotated, Any, TypeAlias

import typer

from pagein.cli.options import AsJson, Store, Workspace
from pagein.cli.standard_streams import print_json
from pagein.errors import BadSetting, StoreError

SessionName: TypeAlias = Annotated[
    str, typer.Argument(metavar="SESSION", help="The session's name or its beginning, as `pagein sessions` lists it.")
]
Target: TypeAlias = Annotated[
    str,
    typer.Argument(
        metavar="OBJECT",
        help="An object's id (pg-...), that of the tool call, or the name of a file; `pagein window` lists both ids.",
    ),
]
OptionalTarget: TypeAlias = Annotated[
    str | None,
    typer.Argument(metavar="[OBJECT]", help="An object's id (pg-...), that of the tool call, or the name of a file."),
]
Now: TypeAlias = Annotated[bool, typer.Option("--now", help="Open an epoch with the next call.")]


def add_to(app: typer.Typer) -> None:
    """Add the commands of this module."""
    app.command(
        epilog="Examples:\n\npagein window fix-login\n\npagein window fix-login --why\n\npagein window fix-login --json"
    )(window)
    app.command(
        epilog="Examples:\n\npagein pin fix-login pg-01234567-89abcdef\n\npagein pin fix-login toolu_01AbC\n\npagein pin fix-login src/app.py\n\n"
        'pagein pin fix-login --text "Never touch the migrations."'
    )(pin)
    app.command(
        epilog="Examples:\n\npagein unpin fix-login toolu_01AbC\n\npagein unpin fix-login --text text-0a1b2c3d"
    )(unpin)
    app.command(epilog="Example: pagein drop fix-login toolu_01AbC --now")(drop)
    app.command(epilog="Example: pagein restore fix-login pg-01234567-89abcdef --now")(restore)
    app.command(epilog="Example: pagein veto fix-login toolu_01AbC")(veto)
    app.command(epilog="Examples:\n\npagein epoch fix-login\n\npagein epoch fix-login --cancel")(epoch)


def window(
    session: SessionName,
    *,
    why: Annotated[bool, typer.Option("--why", help="Show what left with each epoch, and why.")] = False,
    workspace: Workspace = Path(),
    store: Store = None,
    as_json: AsJson = False,
) -> None:
    """List the tool results in a session's window: whole, as a preview or as a stub, with the orders about them."""
    from pagein import wiring
    from pagein.tools import pin_commands as commands

    with wiring.open_kept_session(session, store, workspace=workspace) as opened:
        print_answer(commands.departures(opened) if why else commands.window(opened), as_json=as_json)


def pin(
    session: SessionName,
    target: OptionalTarget = None,
    *,
    text: Annotated[
        str | None, typer.Option("--text", metavar="TEXT", help="A text that every window shows, verbatim.")
    ] = None,
    now: Now = False,
    workspace: Workspace = Path(),
    store: Store = None,
    as_json: AsJson = False,
) -> None:
    """Keep a result in the window whatever its age, or a text through every epoch and compaction.

    An evicted result comes back with the next epoch. A file name means every result that shows the file.
    """
    from pagein import wiring
    from pagein.tools import pin_commands as commands

    wanted = _either(target, text)
    with wiring.open_kept_session(session, store, workspace=workspace) as opened:
        done = commands.say(opened, wanted) if target is None else commands.touch(opened, "pin", wanted, now=now)
        print_answer(done, as_json=as_json)


def unpin(
    session: SessionName,
    target: OptionalTarget = None,
    *,
    text: Annotated[
        str | None, typer.Option("--text", metavar="NAME", help="The name of a pinned text, or the text itself.")
    ] = None,
    workspace: Workspace = Path(),
    store: Store = None,
    as_json: AsJson = False,
) -> None:
    """Take back a pin or a veto: the result may leave again, or the text is no longer shown."""
    from pagein import wiring
    from pagein.tools import pin_commands as commands

    wanted = _either(target, text)
    with wiring.open_kept_session(session, store, workspace=workspace) as opened:
        done = commands.unsay(opened, wanted) if target is None else commands.touch(opened, "unpin", wanted)
        print_answer(done, as_json=as_json)


def drop(
    session: SessionName,
    target: Target,
    *,
    now: Now = False,
    workspace: Workspace = Path(),
    store: Store = None,
    as_json: AsJson = False,
) -> None:
    """Evict a result with the next epoch, whatever its age. It can be recalled."""
    _touch("drop", session, target, now=now, workspace=workspace, store=store, as_json=as_json)


def restore(
    session: SessionName,
    target: Target,
    *,
    now: Now = False,
    workspace: Workspace = Path(),
    store: Store = None,
    as_json: AsJson = False,
) -> None:
    """Replace a stub or preview by the result's full text with the next epoch."""
    _touch("restore", session, target, now=now, workspace=workspace, store=store, as_json=as_json)


def veto(
    session: SessionName, target: Target, *, workspace: Workspace = Path(), store: Store = None, as_json: AsJson = False
) -> None:
    """Never evict this result again."""
    _touch("veto", session, target, now=False, workspace=workspace, store=store, as_json=as_json)


def epoch(
    session: SessionName,
    *,
    cancel: Annotated[
        bool, typer.Option("--cancel", help="Cancel the order, if no call has opened the epoch yet.")
    ] = False,
    workspace: Workspace = Path(),
    store: Store = None,
    as_json: AsJson = False,
) -> None:
    """Open an epoch with the next call, if any result can leave or return. It opens even if it does not pay."""
    from pagein import wiring
    from pagein.tools import pin_commands as commands

    with wiring.open_kept_session(session, store, workspace=workspace) as opened:
        print_answer(commands.cancel_epoch(opened) if cancel else commands.epoch(opened), as_json=as_json)


def _touch(
    act: str, session: str, target: str, *, now: bool, workspace: Path, store: str | None, as_json: bool
) -> None:
    from pagein import wiring
    from pagein.tools import pin_commands as commands

    with wiring.open_kept_session(session, store, workspace=workspace) as opened:
        print_answer(commands.touch(opened, act, target, now=now), as_json=as_json)


def _either(target: str | None, text: str | None) -> str:
    if (target is None) == (text is None):
        raise BadSetting("name an OBJECT or give --text, one of the two")
    return target if target is not None else text or ""


def print_answer(answer: dict[str, Any], *, as_json: bool) -> None:
    """Print the answer of a command. Raises StoreError for one that is not stored."""
    if answer["failure"] is not None:
        raise StoreError(f"the store could not be written, so nothing is changed: {answer['failure']}")
    if as_json:
        print_json(answer)
    else:
        sys.stdout.write(f"{answer['text']}\n")
