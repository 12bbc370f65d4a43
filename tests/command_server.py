"""The command in processes that start at once: a server that has imported pagein forks one for each run.

Each run is the real command in a process of its own, with its own environment, folder and standard streams. What it
spares is the second that every new interpreter spends on the same imports.
"""

import atexit
import importlib
import json
import os
import pkgutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import traceback
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Final, NoReturn

_PATIENCE: Final = 300.0
"""Seconds after which a run has failed."""

_SELDOM_USED: Final = ("adapters", "benchmarks", "child_models", "mcp", "simulator", "testing", "__main__")
"""Parts whose imports take longer than they spare."""

_OF_THE_INTERPRETER: Final = ("PYTHONIOENCODING", "PYTHONUTF8", "PYTHONHASHSEED", "PYTHONWARNINGS", "COVERAGE_PROCESS_")
"""Variables, or their beginnings, that only a new interpreter heeds."""


def run_command(
    *arguments: str | Path,
    env: Mapping[str, str],
    cwd: Path | None = None,
    typed: str | None = None,
) -> "subprocess.CompletedProcess[bytes]":
    """Run `pagein` with these arguments, in exactly this environment, and return its status and output.

    typed: its standard input; None for an empty one.
    """
    words = [str(one) for one in arguments]
    if any(name.startswith(_OF_THE_INTERPRETER) for name in env):
        command = [sys.executable, "-m", "pagein", *words]
        said = typed.encode() if typed is not None else b""
        return subprocess.run(  # noqa: S603 - our own command
            command, capture_output=True, cwd=cwd, env=dict(env), input=said, check=False, timeout=_PATIENCE
        )
    with (
        tempfile.TemporaryFile() as stdin,
        tempfile.TemporaryFile() as stdout,
        tempfile.TemporaryFile() as stderr,
    ):
        stdin.write((typed or "").encode())
        stdin.seek(0)
        order: dict[str, object] = {"arguments": words, "env": dict(env), "cwd": str(cwd or Path.cwd())}
        status = _server(os.getpid()).run(order, [stdin.fileno(), stdout.fileno(), stderr.fileno()])
        stdout.seek(0)
        stderr.seek(0)
        return subprocess.CompletedProcess(words, status, stdout.read(), stderr.read())


def run_text_command(
    *arguments: str | Path, env: Mapping[str, str], cwd: Path | None = None, typed: str | None = None
) -> "subprocess.CompletedProcess[str]":
    """Do as `run_command`, and return text."""
    done = run_command(*arguments, env=env, cwd=cwd, typed=typed)
    return subprocess.CompletedProcess(done.args, done.returncode, done.stdout.decode(), done.stderr.decode())


class _Server:
    """The server's process, as its client sees it."""

    def __init__(self) -> None:
        ours, theirs = socket.socketpair()
        self._socket = ours
        self._process = subprocess.Popen(  # noqa: S603 - our own
            [sys.executable, "-m", "tests.command_server", str(theirs.fileno())],
            pass_fds=[theirs.fileno()],
            cwd=Path(__file__).parent.parent,
            env={**os.environ, "PYTHONDONTWRITEBYTECODE": ""},
        )
        theirs.close()
        self._socket.settimeout(_PATIENCE)
        atexit.register(self.close)

    def run(self, order: dict[str, object], files: list[int]) -> int:
        text = json.dumps(order).encode()
        socket.send_fds(self._socket, [len(text).to_bytes(4, "big")], files)
        self._socket.sendall(text)
        told = self._socket.recv(4)
        assert len(told) == 4, "the server of commands has ended"
        return int.from_bytes(told, "big", signed=True)

    def close(self) -> None:
        self._socket.close()
        self._process.wait(10)


@cache
def _server(_process: int) -> _Server:
    """Return the server of this process. A fork of it gets its own."""
    return _Server()


# ── the server ─────────────────────────────────────────────────────────────


def _serve(connection: socket.socket) -> None:
    while True:
        size, files, _, _ = socket.recv_fds(connection, 4, 3)
        if len(size) < 4:
            return
        left, parts = int.from_bytes(size, "big"), []
        while left:
            parts.append(connection.recv(left))
            left -= len(parts[-1])
        child = os.fork()
        if child == 0:
            connection.close()
            _become_the_command(json.loads(b"".join(parts)), files)
        for one in files:
            os.close(one)
        _, status = os.waitpid(child, 0)
        connection.sendall(os.waitstatus_to_exitcode(status).to_bytes(4, "big", signed=True))


def _become_the_command(order: "dict[str, object]", files: list[int]) -> NoReturn:
    from pagein.cli.cli import main

    status: object = 1
    try:
        for number, one in enumerate(files):
            os.dup2(one, number)
            os.close(one)
        arguments, env = order["arguments"], order["env"]
        assert isinstance(arguments, list)
        assert isinstance(env, dict)
        os.environ.clear()
        os.environ.update(env)
        os.chdir(str(order["cwd"]))
        sys.argv = ["pagein", *arguments]
        main()
    except SystemExit as end:
        status = 0 if end.code is None else end.code
    except BaseException:  # noqa: BLE001 - as an interpreter does
        traceback.print_exc()
    finally:
        _end(status)


def _end(status: object) -> NoReturn:
    code = status if isinstance(status, int) else 1
    try:
        threading._shutdown()  # type: ignore[attr-defined]
        atexit._run_exitfuncs()
        sys.stdout.flush()
        sys.stderr.flush()
    except OSError:
        code = code or 120
    os._exit(code)


def _import_all() -> None:
    """Import what commands import, so that no run has to."""
    import pagein

    for one in pkgutil.walk_packages(pagein.__path__, "pagein."):
        if not set(one.name.split(".")) & set(_SELDOM_USED):
            try:
                importlib.import_module(one.name)
            except ImportError:  # of an extra that is not installed
                continue


if __name__ == "__main__":
    signal.signal(signal.SIGINT, signal.default_int_handler)
    _import_all()
    _serve(socket.socket(fileno=int(sys.argv[1])))
