"""A gateway as users start it: a process with a store, between an agent and a given provider."""

import json
import os
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Final
from urllib.request import Request, urlopen

from pagein import wiring
from pagein.engine.engine import Engine
from pagein.errors import HostError

_STOPS_IN: Final = 30.0
_FAILURES: Final = re.compile(r'^pagein_failures_total\{kind="([^"]+)"\} ([\d.e+]+)$', re.MULTILINE)


class GatewayProcess:
    """`pagein serve` with all it writes in one folder, or with its store elsewhere. settings: of pagein, as environment variables.

    failures: what it kept the agent from, by kind and how often; told when the door is closed again.
    """

    def __init__(self, folder: Path, settings: Mapping[str, str] | None = None, store: str | None = None) -> None:
        self.store: str | Path = folder / "store.db" if store is None else store
        self.log = folder / "gateway.jsonl"
        self.failures: dict[str, int] = {}
        self._folder = folder
        self._settings = settings or {}

    def engine(self) -> Engine:
        """An engine on its store, for looking into it when it has ended."""
        return wiring.open(self.store, workspace=self._folder)

    def recalling(self, object_id: str, first: int, lines: int) -> str:
        """The shell command by which an agent looks at lines of what was paged out."""
        where = f"--store {shlex.quote(str(self.store))} --workspace {shlex.quote(str(self._folder))}"
        sources = shlex.quote(str(Path(wiring.__file__).parents[1]))  # of the very pagein that serves
        program = f"PYTHONPATH={sources} {shlex.quote(sys.executable)} -m pagein"
        return f"{program} peek {object_id} --line {first} --lines {lines} {where}"

    @contextmanager
    def door(self, address: str) -> Iterator[str]:
        """The gateway in front of a provider. Raises HostError where it does not start."""
        self._folder.mkdir(parents=True, exist_ok=True)
        command = [sys.executable, "-m", "pagein", "serve", "--json", "--port", "0"]
        command += ["--anthropic", address, "--openai", address, "--google", address]
        command += ["--store", str(self.store), "--log", str(self.log)]
        with subprocess.Popen(  # noqa: S603 -- ourselves
            command,
            cwd=self._folder,
            env=self._environment(),
            stdout=subprocess.PIPE,
            stdin=subprocess.DEVNULL,
            text=True,
        ) as process:
            try:
                told = _greeted(process)
                yield str(told["url"])
                figures = Request(f"{told['url']}/metrics", headers={"Authorization": f"Bearer {told['token']}"})  # noqa: S310 -- our own address on loopback
                with urlopen(figures, timeout=_STOPS_IN) as answer:  # noqa: S310 -- the same
                    text = answer.read().decode()
                self.failures = {kind: int(float(count)) for kind, count in _FAILURES.findall(text)}
            finally:
                process.terminate()
                try:
                    process.wait(_STOPS_IN)
                except subprocess.TimeoutExpired:
                    process.kill()

    def command(self, *arguments: str, folder: Path) -> "subprocess.CompletedProcess[str]":
        """A command of the same user, in a folder. It finds the store of the gateway while this runs."""
        return subprocess.run(  # noqa: S603 -- ourselves
            [sys.executable, "-m", "pagein", *arguments],
            cwd=folder,
            env=self._environment(),
            capture_output=True,
            text=True,
            check=False,
        )

    def _environment(self) -> dict[str, str]:
        # nothing that the user has set about pagein counts here, and none of the user's folders is written
        kept = {name: value for name, value in os.environ.items() if not name.startswith("PAGEIN_")}
        return {**kept, "HOME": str(self._folder), "XDG_DATA_HOME": str(self._folder / "data"), **self._settings}


def _greeted(process: "subprocess.Popen[str]") -> dict[str, object]:
    line = process.stdout.readline() if process.stdout is not None else ""
    if not line:
        raise HostError(f"the gateway did not start: it ended with {process.wait(_STOPS_IN)}")
    return dict(json.loads(line))
