"""The commands `off` and `on`, registered by `cli`: the switch for all gateways of a user.

Heavy imports are inside the commands, as in `cli`.
"""

import os
import sys
from typing import Annotated

import typer


def add_to(app: typer.Typer) -> None:
    """Add the commands of this module."""
    app.command(epilog="Examples:\n\npagein off\n\npagein off --leaving")(off)
    app.command(epilog="Example: pagein on")(on)


def off(
    *,
    leaving: Annotated[
        bool,
        typer.Option(
            "--leaving",
            help="Because agents are to go on without the gateway: says what to do so that no call of theirs is refused.",
        ),
    ] = False,
) -> None:
    """Make every gateway of yours pass everything through byte for byte, until `pagein on`."""
    from pagein.gateway.farewell import WHAT_IS_DROPPED
    from pagein.gateway.kill_switch import default_switch, turn_off

    turn_off(default_switch(), leaving=leaving)
    sys.stdout.write(f"off: {WHAT_IS_DROPPED if leaving else 'requests pass through as they are'}\n")


def on() -> None:
    """Let gateways work again after `pagein off`."""
    from pagein.gateway.kill_switch import VARIABLE, default_switch, turn_on
    from pagein.gateway.settings import is_set

    turn_on(default_switch())
    sys.stdout.write("on\n")
    if is_set(os.environ.get(VARIABLE)):
        sys.stderr.write(f"pagein: {VARIABLE} is set here; a gateway that is started so stays off\n")
