"""Standard streams of a command: how they are opened, written, and closed when the reader has gone."""

import json
import os
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, TextIO

from pagein.errors import BadSetting

if TYPE_CHECKING:
    from rich.console import Console

# The width of tables without a terminal and without COLUMNS.
_PIPE_WIDTH = 120
_WIDEST = 1000


def open_streams() -> None:
    """Make both output streams usable, whatever the parent process left of them."""
    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:  # closed by the parent process
            setattr(sys, name, Path(os.devnull).open("w"))  # noqa: SIM115 - open until the end of the process
        # an unprintable file name must not prevent the table around it
        getattr(sys, name).reconfigure(errors="backslashreplace")


def take_standard_streams() -> tuple[BinaryIO, BinaryIO]:
    """Return the process's input and output, and let everything else that is printed go to standard error."""
    source = os.fdopen(os.dup(0), "rb")
    sink = os.fdopen(os.dup(1), "wb")
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.close(nothing)
    os.dup2(2, 1)
    sys.stdout = sys.stderr
    return source, sink


def drop_output() -> None:
    """Discard buffered output without a reader, to avoid an error at exit."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


@contextmanager
def catch_full_disk() -> Iterator[None]:
    """Convert a full disk behind stdout into a message. A closed pipe is left to typer."""
    try:
        yield
        sys.stdout.flush()
    except BrokenPipeError:
        raise
    except OSError as error:
        drop_output()
        raise BadSetting(f"cannot write to standard output: {error.strerror}") from error


def print_json(answer: Mapping[str, Any], out: TextIO | None = None) -> None:
    """Print an answer as one JSON object in a line. out: where to; None for stdout."""
    # ASCII, so that text in an unknown encoding is escaped, not refused
    (out or sys.stdout).write(json.dumps(answer, allow_nan=False, separators=(",", ":")) + "\n")


def warn(text: str) -> None:
    """Write a line for people to stderr."""
    from pagein.ui.figures import plain

    sys.stderr.write(f"pagein: {plain(text)}\n")


def console(*, error: bool = False) -> "Console":
    """Return a console on stdout or stderr. Rich itself respects NO_COLOR and TERM."""
    from rich.console import Console

    stream = sys.stderr if error else sys.stdout
    return Console(file=stream, width=_width(stream), highlight=False, markup=False, emoji=False)


def _width(stream: TextIO) -> int | None:
    """Return the width given by COLUMNS, or None for the terminal's own."""
    told = os.environ.get("COLUMNS", "")
    if told.isdecimal() and int(told[:6]):
        return min(int(told[:6]), _WIDEST)
    return None if stream.isatty() and not told else _PIPE_WIDTH
