"""The command `top`, which follows a running gateway in the terminal. Registered by `cli`.

Heavy imports are inside the command, as in `cli`.
"""

import json
import sys
from pathlib import Path

import typer

from pagein.cli.options import AsJson, NearestGatewayUrl, Workspace
from pagein.errors import BadInput, BadSetting


def add_to(app: typer.Typer) -> None:
    """Add the command of this module."""
    app.command(epilog="Examples:\n\npagein top\n\npagein top --url http://127.0.0.1:8791\n\npagein top --json")(top)


def top(
    *,
    url: NearestGatewayUrl = None,
    workspace: Workspace = Path(),
    as_json: AsJson = False,
) -> None:
    """Follow the sessions of a running gateway in the terminal: costs, windows, and orders about them.

    Keys: p pin, u unpin, v veto, d drop, r restore a result, or with f before them all results of a file; e open an epoch, o switch off, n switch on for the session; z undo;
    s past sessions of the store, with their calls; q quit.
    """
    from pagein.cli.commands_status import nearest_gateway
    from pagein.gateway.setup.inquiry import NoAnswer

    gateway = nearest_gateway(url, workspace)
    try:
        seen = gateway.overview()
    except NoAnswer as problem:
        raise BadInput(str(problem)) from problem
    if as_json:
        sys.stdout.write(json.dumps(seen) + "\n")
        return
    if not sys.stdout.isatty():
        raise BadSetting("this is no terminal; --json prints one look")
    try:
        from pagein.ui.top import Top
    except ImportError as problem:
        raise BadSetting(f"the screen needs more: pip install 'pagein[top]' ({problem})") from problem
    Top(gateway, (NoAnswer,)).run()
