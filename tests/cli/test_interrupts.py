"""Ctrl-C at any moment ends a command without a traceback, and what was remembered stays."""

import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from tests.cli.conftest import write_session

# Python prints an interrupt in a finalizer and goes on, and it wraps one that it meets while it makes a class.
MOMENTS = {
    "among the first imports": "at('pagein.cli.cli', press)",
    "among the imports of the command": "at('pagein.past_sessions.intake', press)",
    "while a class is made": "at('pagein.past_sessions.intake', lambda: type('Made', (), {'part': Named()}))",
    "in a finalizer": "at('pagein.past_sessions.intake', lambda: Dying() and None)",
    "at the end of Python": "atexit.register(press)",
}
START = """
import atexit, os, runpy, signal, sys

def press():
    os.kill(os.getpid(), signal.SIGINT)

class Named:
    def __set_name__(self, owner, name):
        press()

class Dying:
    def __del__(self):
        press()

def at(module, act):
    class Finder:
        def find_spec(self, name, *_):
            if name == module:
                sys.meta_path.remove(self)
                act()
    sys.meta_path.insert(0, Finder())

{moment}
sys.argv = ["pagein", *sys.argv[1:]]
runpy.run_module("pagein", run_name="__main__")
"""


@pytest.mark.parametrize("moment", MOMENTS)
def test_ctrl_c_prints_no_traceback(tmp_path: Path, session: Path, moment: str) -> None:
    store = tmp_path / "s.pagein"
    is_late = moment == "at the end of Python"
    command = ["remember", str(session), "--store", str(store), "--quiet", *([] if is_late else ["--watch"])]
    done = subprocess.run(  # noqa: S603 - our own command
        [sys.executable, "-c", START.format(moment=MOMENTS[moment]), *command],
        env={**os.environ, "HOME": str(tmp_path)},
        capture_output=True,
        check=False,
        timeout=120,
    )
    assert b"Traceback" not in done.stderr
    assert b"Error" not in done.stderr
    # a shell calls both 130; Python ends by the signal itself where it came among imports
    assert done.returncode in (130, -signal.SIGINT)


def test_ctrl_c_at_random_moments_keeps_what_was_remembered(tmp_path: Path, session: Path) -> None:
    draw = random.Random(7)  # noqa: S311 - moments, no keys
    store, log = tmp_path / "s.pagein", tmp_path / "err"
    command = [sys.executable, "-m", "pagein", "remember", str(session.parent), "--store", str(store), "--watch"]
    for number in range(8):
        write_session(session.parent / f"{number}.jsonl", calls=10)
        with log.open("wb") as err:
            process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=err, env=os.environ)  # noqa: S603
            time.sleep(draw.uniform(0.3, 3.0))
            for _ in range(1 + number % 2):  # twice, as the impatient do
                process.send_signal(signal.SIGINT)
                time.sleep(draw.uniform(0.0, 0.1))
            process.wait(60)
        assert "Traceback" not in log.read_text()
        assert process.returncode in (0, 130, -signal.SIGINT)
    last = subprocess.run(command[:-1], capture_output=True, check=False, timeout=120)  # noqa: S603
    assert last.returncode == 0
    checked = subprocess.run([*command[:3], "check", "--store", str(store)], capture_output=True, check=False)  # noqa: S603
    assert checked.returncode == 0, checked.stdout
