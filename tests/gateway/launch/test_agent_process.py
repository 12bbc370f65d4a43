"""An agent under its launcher: same signals, same exit status."""

import os
import pty
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

_LAUNCHER = (
    "import os, sys\nfrom pagein.gateway.launch.agent_process import end_as, run_agent\n"
    "sys.exit(end_as(run_agent(sys.argv[1:], os.environ)))"
)


def _launched(*command: str) -> "subprocess.Popen[str]":
    return subprocess.Popen(  # noqa: S603 -- ourselves
        [sys.executable, "-c", _LAUNCHER, *command],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )


def test_input_output_and_exit_status_are_the_agents() -> None:
    with _launched("sh", "-c", "cat; exit 7") as process:
        assert process.communicate("what was said", timeout=30)[0] == "what was said"
    assert process.returncode == 7


def test_an_agent_that_dies_of_a_signal_lets_its_launcher_die_of_it() -> None:
    with _launched("sh", "-c", "kill -9 $$") as process:
        process.communicate(timeout=30)
    assert process.returncode == -signal.SIGKILL


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGUSR1])
def test_a_signal_to_the_launcher_reaches_the_agent(number: signal.Signals) -> None:
    name = number.name.removeprefix("SIG")
    with _launched(
        "sh", "-c", f"trap 'echo got; exit 3' {name}; echo up; for i in $(seq 400); do sleep .05; done"
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "up\n"
        process.send_signal(number)
        assert process.communicate(timeout=30)[0] == "got\n"
    assert process.returncode == 3


def test_a_launcher_stops_with_its_agent_and_goes_on_with_it() -> None:
    with _launched("sh", "-c", "kill -STOP $$; echo again") as process:
        _wait_for_state(process.pid, "T")
        os.kill(process.pid, signal.SIGCONT)
        assert process.communicate(timeout=30)[0] == "again\n"
    assert process.returncode == 0


def test_an_agent_keeps_the_terminal_and_gets_its_keys_once() -> None:
    program = "trap 'echo got' INT; tty; for i in $(seq 40); do sleep .05; done; exit 4"
    pid, terminal = pty.fork()
    if pid == 0:
        os.execv(sys.executable, [sys.executable, "-c", _LAUNCHER, "sh", "-c", program])  # noqa: S606 -- ourselves
    shown = os.read(terminal, 1000).decode()
    assert shown.startswith("/dev/")
    os.write(terminal, b"\x03")
    while (more := _read(terminal)) != "":
        shown += more
    assert shown.count("got") == 1
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 4


def _read(terminal: int) -> str:
    try:
        return os.read(terminal, 1000).decode()
    except OSError:  # nobody has the other end any more
        return ""


def _wait_for_state(pid: int, state: str) -> None:
    for _ in range(3000):
        if Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == state:
            return
        time.sleep(0.01)
    raise AssertionError(f"{pid} never came to {state}")
