"""Run an agent as if it had been started directly: same terminal, same signals, same exit status."""

import os
import signal
import subprocess
from collections.abc import Mapping, Sequence
from contextlib import suppress
from types import FrameType
from typing import Any, Final, Self

_FROM_THE_TERMINAL: Final = (signal.SIGINT, signal.SIGQUIT)
"""Signals that a terminal sends to the agent itself."""
_FORWARDED: Final = (signal.SIGTERM, signal.SIGHUP, signal.SIGUSR1, signal.SIGUSR2, signal.SIGCONT)


def run_agent(command: Sequence[str], environment: Mapping[str, str]) -> int:
    """Run a command to its end. Return the exit status, or minus the number of the terminating signal.

    When the agent stops itself (Ctrl-Z), this process stops, too, so that the shell gets its terminal back. Raises OSError if the command
    cannot be started.
    """
    with (
        _ForwardedSignals() as signals,
        subprocess.Popen(list(command), env=dict(environment)) as process,  # noqa: S603 -- the agent that the user named
    ):
        signals.pass_to(process.pid)
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
        with suppress(OSError):  # SIGKILL has no handler to be replaced
            signal.signal(-status, signal.SIG_DFL)
        os.kill(os.getpid(), -status)
        return 128 - status
    return status


class _ForwardedSignals:
    """Signals forwarded to the agent, including signals received before the agent had a process id.

    The handlers of this process do not reach the agent: a new program starts with the usual ones.
    """

    def __init__(self) -> None:
        self._agent: int | None = None
        self._early: list[int] = []
        self._before: dict[int, Any] = {}

    def pass_to(self, agent: int) -> None:
        """Forward every signal received so far and later."""
        self._agent = agent
        for number in self._early:
            self._send(agent, number)

    def __enter__(self) -> Self:
        for number in (*_FORWARDED, *_FROM_THE_TERMINAL):
            self._before[number] = signal.signal(number, self._on_signal)
        return self

    def __exit__(self, *_: object) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)

    def _on_signal(self, number: int, _: FrameType | None) -> None:
        if number in _FROM_THE_TERMINAL and _has_terminal():
            return
        if self._agent is None:
            self._early.append(number)
        else:
            self._send(self._agent, number)

    @staticmethod
    def _send(agent: int, number: int) -> None:
        with suppress(ProcessLookupError):
            os.kill(agent, number)


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
