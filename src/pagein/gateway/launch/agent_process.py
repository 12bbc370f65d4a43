"""Run an agent as if it had been started directly: same terminal, same signals, same exit status."""

import os
import signal
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from types import FrameType
from typing import Final

_FROM_THE_TERMINAL: Final = (signal.SIGINT, signal.SIGQUIT)
"""Signals that a terminal sends to the agent itself."""
_FORWARDED: Final = (signal.SIGTERM, signal.SIGHUP, signal.SIGUSR1, signal.SIGUSR2, signal.SIGCONT)


def run_agent(command: Sequence[str], environment: Mapping[str, str]) -> int:
    """Run a command to its end. Return its exit status, or minus the number of the signal that ended it.

    When the agent stops itself (Ctrl-Z), this process stops, too, so that the shell gets its terminal back. Raises OSError if the command
    cannot be started.
    """
    agents: list[int] = []
    with (
        _signals_passed_to(agents),
        subprocess.Popen(list(command), env=dict(environment)) as process,  # noqa: S603 -- the agent that the user named
    ):
        agents.append(process.pid)
        while True:
            _, status = os.waitpid(process.pid, os.WUNTRACED)
            if not os.WIFSTOPPED(status):
                process.returncode = os.waitstatus_to_exitcode(status)
                return process.returncode
            os.kill(os.getpid(), signal.SIGSTOP)
            with suppress(ProcessLookupError):
                os.kill(process.pid, signal.SIGCONT)


def end_as(status: int) -> int:
    """Return the exit status for the shell. After a signal this process ends by the same signal, and nothing is returned."""
    if status < 0:
        signal.signal(-status, signal.SIG_DFL)
        os.kill(os.getpid(), -status)
        return 128 - status
    return status


@contextmanager
def _signals_passed_to(agents: Sequence[int]) -> Iterator[None]:
    """Pass signals on to the agent. Handlers of this process do not reach the agent: it starts with the usual ones."""

    def forward(number: int, _: FrameType | None) -> None:
        for pid in agents:
            with suppress(ProcessLookupError):
                os.kill(pid, number)

    def forward_unless_sent(number: int, frame: FrameType | None) -> None:
        if not _has_terminal():
            forward(number, frame)

    before = {number: signal.signal(number, forward) for number in _FORWARDED}
    before |= {number: signal.signal(number, forward_unless_sent) for number in _FROM_THE_TERMINAL}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _has_terminal() -> bool:
    """Return whether this process is in the foreground of its terminal, whose keys the agent gets itself."""
    try:
        number = os.open("/dev/tty", os.O_RDONLY | os.O_NOCTTY)
    except OSError:
        return False
    try:
        return os.tcgetpgrp(number) == os.getpgrp()
    except OSError:
        return False
    finally:
        os.close(number)
