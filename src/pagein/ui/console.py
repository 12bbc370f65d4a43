"""Consoles to print tables on."""

import os
import sys

from rich.console import Console

_PIPE_WIDTH = 120
"""Tables have this width where there is no terminal to ask and COLUMNS does not say."""


def console(*, error: bool = False) -> Console:
    """A console on stdout or stderr. Rich itself heeds NO_COLOR, TERM and COLUMNS."""
    stream = sys.stderr if error else sys.stdout
    width = None if stream.isatty() or os.environ.get("COLUMNS", "").isdecimal() else _PIPE_WIDTH
    return Console(file=stream, width=width, highlight=False, markup=False, emoji=False)
