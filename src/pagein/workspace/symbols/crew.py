"""Parse files in worker processes, and replace a worker that dies or hangs.

A process that dies or takes too long costs the file that it was parsing, and is replaced. The processes end with this one.
"""

import contextlib
import os
import queue
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import BinaryIO, Final, cast

import msgspec

from pagein.model.symbols import FileSymbols
from pagein.ports import Signal
from pagein.workspace.files import check
from pagein.workspace.symbols.worker import read_frame, write_frame

_TICK: Final = 0.1
_WORKER: Final = "pagein.workspace.symbols.worker"
_WAITING: Final = 3
"""Files per process that are read ahead."""
_FILES_PER_PROCESS: Final = 12
"""Starting a process takes about as long as parsing so many files."""


@dataclass(frozen=True, slots=True)
class ParseOrder:
    """A file to be parsed. path and hash: only told back with the answer."""

    path: str
    hash: str
    language: str
    content: bytes


@dataclass(frozen=True, slots=True)
class ParserAnswer:
    """The answer to an order: the symbols, or in words why there are none."""

    path: str
    hash: str
    answer: FileSymbols | str


class ParserCrew:
    """Processes that parse. They start with the first work; one stays for later work. Used by a single thread at a
    time.

    jobs: number of processes; 0: one per core
    seconds: how long a file may take
    """

    def __init__(self, jobs: int = 0, seconds: float = 30.0) -> None:
        self._jobs = jobs or os.cpu_count() or 1
        self._seconds = seconds
        self._idle: list[_Process] = []

    def parse(self, orders: Iterator[ParseOrder], stop: Signal | None = None) -> Iterator[ParserAnswer]:
        """Yield the answers in order of arrival. `orders` is read only as fast as processes are free.

        Raises AbortedOperation once `stop` is set; the processes are then ended.
        """
        inbox: queue.SimpleQueue[ParseOrder | None] = queue.SimpleQueue()
        outbox: queue.SimpleQueue[ParserAnswer] = queue.SimpleQueue()
        hands: list[_Process] = []
        given = done = 0
        try:
            for order in orders:
                check(stop)
                if len(hands) < min(self._jobs, 1 + given // _FILES_PER_PROCESS):
                    hands.append(self._idle.pop() if self._idle else _Process())
                    threading.Thread(target=_work, args=(hands[-1], inbox, outbox), daemon=True).start()
                inbox.put(order)
                given += 1
                while given - done > _WAITING * len(hands):
                    yield self._next(outbox, hands, stop)
                    done += 1
            while done < given:
                yield self._next(outbox, hands, stop)
                done += 1
        except BaseException:
            for process in hands:
                process.end()
            raise
        else:
            self._idle += hands[:1]
            for process in hands[1:]:
                process.end()
        finally:
            for _ in hands:
                inbox.put(None)

    def _next(
        self, outbox: "queue.SimpleQueue[ParserAnswer]", hands: "list[_Process]", stop: Signal | None
    ) -> ParserAnswer:
        while True:
            check(stop)
            try:
                return outbox.get(timeout=_TICK)
            except queue.Empty:
                for process in hands:
                    process.end_if_slow(self._seconds)

    def close(self) -> None:
        """End the processes. The crew can be used again."""
        while self._idle:
            self._idle.pop().end()


def _work(
    process: "_Process", inbox: "queue.SimpleQueue[ParseOrder | None]", outbox: "queue.SimpleQueue[ParserAnswer]"
) -> None:
    while (order := inbox.get()) is not None:
        outbox.put(ParserAnswer(order.path, order.hash, process.ask(order)))
    process.end_if_unwanted()


class _Process:
    """A process that parses files in turn. It is started again after a crash, or after its end for slowness."""

    def __init__(self) -> None:
        self._process: subprocess.Popen[bytes] | None = None
        self._since: float | None = None
        self._is_slow = self._is_unwanted = False
        self._decode = msgspec.msgpack.Decoder(FileSymbols | str).decode

    def ask(self, order: ParseOrder) -> FileSymbols | str:
        """Return the symbols of a file, or in words why there are none. Waits for the answer."""
        if self._is_unwanted:
            return "not parsed"
        process = self._process = self._process or _start()
        questions, answers = cast(BinaryIO, process.stdin), cast(BinaryIO, process.stdout)
        self._since = time.monotonic()
        try:
            write_frame(questions, order.language.encode())
            write_frame(questions, order.content)
            frame = read_frame(answers)
        except (OSError, ValueError):  # a pipe without a reader, or closed meanwhile
            frame = None
        self._since = None
        if frame is not None:
            answer: FileSymbols | str = self._decode(frame)
            return answer
        self._process = None
        _end(process)
        is_slow, self._is_slow = self._is_slow, False
        return "parsing took too long" if is_slow else "the parser died"

    def end_if_slow(self, seconds: float) -> None:
        """End the process if its file takes too long."""
        since, process = self._since, self._process
        if since is not None and process is not None and time.monotonic() - since > seconds:
            self._is_slow = True
            process.kill()

    def end(self) -> None:
        """End the process; its thread starts no other."""
        self._is_unwanted = True
        self.end_if_unwanted()

    def end_if_unwanted(self) -> None:
        """End the process after a call of `end`, also a process about to start."""
        process = self._process
        if self._is_unwanted and process is not None:
            _end(process)


def _start() -> "subprocess.Popen[bytes]":
    # The worker finds the modules where this process does. Its messages have no reader: why a file failed comes as an answer.
    paths = os.pathsep.join(path for path in sys.path if path)
    return subprocess.Popen(  # noqa: S603 - this project's own module
        [sys.executable, "-m", _WORKER],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        env={**os.environ, "PYTHONPATH": paths},
        start_new_session=True,  # Ctrl-C is for this process, which then ends the others
    )


def _end(process: "subprocess.Popen[bytes]") -> int:
    process.kill()
    status = process.wait()
    for stream in (process.stdin, process.stdout):
        if stream is not None:
            with contextlib.suppress(OSError):
                stream.close()
    return status
