"""The commands `off` and `on`, registered by `cli`: the switch for all gateways of a user, or for one session.

Heavy imports are inside the commands, as in `cli`.
"""

import os
import sys
from pathlib import Path
from typing import Annotated, TypeAlias

import typer

from pagein.cli.options import Store, Workspace
from pagein.errors import BadSetting, StoreError

SessionName: TypeAlias = Annotated[
    str | None,
    typer.Option("--session", "-s", metavar="NAME", help="Only for this session; `pagein sessions` lists the names."),
]


def add_to(app: typer.Typer) -> None:
    """Add the commands of this module."""
    app.command(epilog="Examples:\n\npagein off\n\npagein off --session fix-login\n\npagein off --leaving")(off)
    app.command(epilog="Examples:\n\npagein on\n\npagein on --session fix-login")(on)


def off(
    *,
    leaving: Annotated[
        bool,
        typer.Option(
            "--leaving",
            help="For agents that will continue without the gateway: print how to avoid refused calls.",
        ),
    ] = False,
    session: SessionName = None,
    workspace: Workspace = Path(),
    store: Store = None,
) -> None:
    """Make all your gateways pass every request through unchanged, until `pagein on`.

    With --session: no further result leaves the window of this session. Evicted results stay out, and can be recalled.
    """
    if session is not None:
        if leaving:
            raise BadSetting("--leaving is for all sessions; give it without --session")
        _switch_session(session, store, workspace, is_on=False)
        return
    from pagein.gateway.farewell import WHAT_IS_DROPPED
    from pagein.gateway.kill_switch import default_switch, turn_off

    turn_off(default_switch(), leaving=leaving)
    sys.stdout.write(f"off: {WHAT_IS_DROPPED if leaving else 'requests pass through as they are'}\n")


def on(*, session: SessionName = None, workspace: Workspace = Path(), store: Store = None) -> None:
    """Let gateways work again after `pagein off`; with --session, let this session's results leave again."""
    if session is not None:
        _switch_session(session, store, workspace, is_on=True)
        return
    from pagein.gateway.kill_switch import VARIABLE, default_switch, turn_on
    from pagein.gateway.settings import is_set

    turn_on(default_switch())
    sys.stdout.write("on\n")
    if is_set(os.environ.get(VARIABLE)):
        sys.stderr.write(f"pagein: {VARIABLE} is set here; a gateway that is started so stays off\n")


def _switch_session(name: str, store: str | None, workspace: Path, *, is_on: bool) -> None:
    from pagein import wiring

    with wiring.open_kept_session(name, store, workspace=workspace) as opened:
        failure = opened.hand.on() if is_on else opened.hand.off()
    if failure is not None:
        raise StoreError(f"the store could not be written, so nothing is changed: {failure}")
    sys.stdout.write(f"{'on' if is_on else 'off'} for {name}, from its next call on\n")
