"""A worker process: takes a request, and returns the request that its program would send instead."""

import os
import select
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from types import TracebackType
from typing import IO, Self

import msgspec
from benchmarks.peers.arms import ROOT, Arm
from benchmarks.peers.installing import Installed

from pagein.errors import HostError

PATIENCE = 300.0  # seconds for one answer, the start of the process included


@dataclass(frozen=True, slots=True)
class Answer:
    """The messages a peer would send, each as JSON, and what it took in seconds, by the clock and of processors; or why there are none."""

    messages: tuple[bytes, ...] = ()
    seconds: float = 0.0
    cpu: float = 0.0
    error: str = ""


class _Head(msgspec.Struct):
    count: int | None = None
    seconds: float = 0.0
    cpu: float = 0.0
    error: str = ""
    package: str = ""
    version: str = ""


class Worker:
    """One arm at work. Use as a context; raises HostError where the process cannot start or falls silent."""

    def __init__(self, arm: Arm, installed: Installed) -> None:
        self._log: IO[bytes] = (installed.home.parent / f"{arm.variant or 'default'}.log").open("wb")
        self._process = subprocess.Popen(
            [str(installed.python), "-P", "-m", arm.peer.worker, arm.variant],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._log,
            cwd=installed.home,
            env=_environment(arm, installed),
            bufsize=0,
        )
        self._decoder = msgspec.json.Decoder(_Head)
        self._pending = bytearray()
        try:
            first = self._head()
        except HostError:
            self._end()
            raise
        self.version = f"{first.package} {first.version}"

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._end()

    def ask(self, window: int, tokens: float, limit: int, messages: Sequence[bytes]) -> Answer:
        """The answer to one request. Raises HostError where none comes."""
        head = b'{"window":%d,"tokens":%d,"limit":%d,"messages":[' % (window, round(tokens), limit)
        if self._process.stdin is None:
            raise HostError("the worker has no input")
        try:
            self._write(head + b",".join(messages) + b"]}\n")
        except OSError as problem:
            raise HostError(f"the worker is gone: {problem}") from problem
        said = self._head()
        if said.count is None:
            return Answer(error=said.error or "no messages in the answer")
        return Answer(tuple(self._line() for _ in range(said.count)), said.seconds, said.cpu)

    def _write(self, data: bytes) -> None:
        view = memoryview(data)
        while view and self._process.stdin is not None:
            view = view[self._process.stdin.write(view) or 0 :]

    def _head(self) -> _Head:
        try:
            return self._decoder.decode(self._line())
        except msgspec.DecodeError as problem:
            raise HostError(f"the worker said something else: {problem}") from problem

    def _line(self) -> bytes:
        stdout = self._process.stdout
        if stdout is None:
            raise HostError("the worker has no output")
        searched = 0
        while (end := self._pending.find(b"\n", searched)) < 0:
            searched = len(self._pending)
            ready, _, _ = select.select([stdout], [], [], PATIENCE)
            read = os.read(stdout.fileno(), 1 << 20) if ready else b""
            if not read:
                raise HostError("the worker ended" if ready else f"the worker was silent for {PATIENCE:.0f} s")
            self._pending += read
        line = bytes(self._pending[:end])
        del self._pending[: end + 1]
        return line

    def _end(self) -> None:
        self._process.kill()
        self._process.wait()
        for stream in (self._process.stdin, self._process.stdout, self._log):
            if stream is not None:
                stream.close()


def _environment(arm: Arm, installed: Installed) -> dict[str, str]:
    """Nothing of the caller's but what finding programs takes: keys of the caller are no peer's business."""
    return {
        "PATH": os.defpath,
        "HOME": str(installed.home),
        "PYTHONPATH": str(ROOT),
        "PYTHONHASHSEED": "0",
        **dict(arm.peer.surroundings),
    }
