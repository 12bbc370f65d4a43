"""Gateways in processes of their own."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

_PATIENCE = 120
"""Seconds after which what has not come will not come, however slow the machine."""


@contextmanager
def gateway_process(
    upstream: str, folder: Path, *more: str, **environment: str
) -> Iterator[tuple[str, "subprocess.Popen[str]"]]:
    """A gateway that was started from the command line, and where it listens."""
    command = [sys.executable, "-m", "pagein", "serve", "--port", "0", "--json"]
    command += [] if "--measure" in more else ["--store", str(folder / "s.pagein")]
    log = folder / "gateway.jsonl"
    asked = [*command, "--anthropic", upstream, "--openai", upstream, "--google", upstream, "--log", str(log), *more]
    with subprocess.Popen(  # noqa: S603 -- our own
        asked,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=os.environ | data_folder(folder) | {"PAGEIN_BUDGET": "60"} | environment,
    ) as process:
        try:
            line = process.stdout.readline() if process.stdout is not None else ""
            assert line, process.communicate()[1]
            yield json.loads(line)["url"], process
        finally:
            process.kill()


def data_folder(folder: Path) -> dict[str, str]:
    """The environment in which the user's data folder is this one."""
    return {"XDG_DATA_HOME": str(folder / "data"), "PAGEIN_OFF": ""}


def token_in(folder: Path) -> str:
    """The token of a gateway with this data folder, as its user's commands find it."""
    return (folder / "data" / "pagein" / "gateway.token").read_text().strip()


def until(true: Callable[[], bool]) -> None:
    """Wait for what another process is about to do."""
    for _ in range(_PATIENCE * 100):
        if true():
            return
        time.sleep(0.01)
    raise AssertionError("it never came true")


def logged(folder: Path, event: str) -> list[dict[str, Any]]:
    """What a gateway has written to its log so far about such events."""
    log = folder / "gateway.jsonl"
    whole = log.read_text().rpartition("\n")[0].splitlines() if log.exists() else []
    return [line for line in map(json.loads, whole) if line["event"] == event]


def noted(folder: Path, calls: int) -> None:
    """Wait until so many calls are over for the gateway too: it notes what an answer says when the client has it already."""
    until(lambda: len(logged(folder, "call")) >= calls)


def ended(process: "subprocess.Popen[str]", number: int = signal.SIGTERM) -> int:
    """End a gateway by a signal, and wait until it has. Its status."""
    process.send_signal(number)
    return process.wait(_PATIENCE)
