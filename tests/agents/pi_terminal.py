"""A real pi in a terminal, as a person sees it."""

import fcntl
import os
import pty
import re
import select
import signal
import struct
import subprocess
import termios
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from tests.agents.pi_process import AGENT, PiPlace, put_extension, set_up

_LONGEST: Final = 60.0
_ROWS, _COLUMNS = 40, 120
_CONTROLS: Final = re.compile(rb"\x1b\[[0-9;?<=>]*[A-Za-z]|\x1b[\]_][^\x07\x1b]*(?:\x07|\x1b\\\\)|\x1b.")


class PiTerminal:
    """pi in a terminal of its own."""

    def __init__(self, place: PiPlace, address: str) -> None:
        environment = set_up(place, address) | {"TERM": "xterm-256color", "LANG": "C.UTF-8"}
        self._screen, theirs = pty.openpty()
        fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", _ROWS, _COLUMNS, 0, 0))
        self._process = subprocess.Popen(  # noqa: S603 -- an agent of scripts/clients
            [str(place.commands / "pi"), "--model", f"simulated/{AGENT.model}"],
            cwd=place.workspace,
            env=environment,
            stdin=theirs,
            stdout=theirs,
            stderr=theirs,
            start_new_session=True,
        )
        os.close(theirs)

    def type(self, keys: str) -> None:
        """Press keys."""
        os.write(self._screen, keys.encode())

    def order(self, words: str) -> None:
        """Type a line, and then Enter, which pi takes for a part of what is pasted if both come at once."""
        self._settle()
        self.type(words)
        self.wait(re.escape(words[-10:]))
        self.type("\r")

    def _settle(self) -> None:
        """Read what pi draws until it draws nothing: an Escape and the next letter, read at once, mean another key."""
        while select.select([self._screen], [], [], 0.4)[0]:
            os.read(self._screen, 1 << 16)

    def wait(self, wanted: str) -> str:
        """Return what pi draws from now on, without colours and movements, up to a text that matches."""
        found, end = b"", time.monotonic() + _LONGEST
        while time.monotonic() < end:
            if select.select([self._screen], [], [], 0.2)[0]:
                found += os.read(self._screen, 1 << 16)
                text = _CONTROLS.sub(b"", found).decode(errors="replace")
                if re.search(wanted, text):
                    return text
        raise AssertionError(f"pi never drew {wanted!r}, but {text!r}")

    def close(self) -> None:
        """End pi."""
        os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait(_LONGEST)
        os.close(self._screen)


@contextmanager
def shown_pi(place: PiPlace, address: str) -> Iterator[PiTerminal]:
    """A pi in a terminal for the time of a `with` block, with the extension."""
    put_extension(place)
    terminal = PiTerminal(place, address)
    try:
        yield terminal
    finally:
        terminal.close()
