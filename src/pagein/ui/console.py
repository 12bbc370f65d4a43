"""Consoles for printing tables."""

import os
import sys

from rich.console import Console

_PIPE_WIDTH = 120
"""The width of tables without a terminal and without COLUMNS."""


def console(*, error: bool = False) -> Console:
    """Return a console on stdout or stderr. Rich itself respects NO_COLOR, TERM and COLUMNS."""
    stream = sys.stderr if error else sys.stdout
    width = None if stream.isatty() or os.environ.get("COLUMNS", "").isdecimal() else _PIPE_WIDTH
    return Console(file=stream, width=width, highlight=False, markup=False, emoji=False)
