"""Worker threads with time limits, for callers that must not wait for ever."""

import asyncio
import contextlib
from collections.abc import Callable
from concurrent.futures import Future
from typing import Final, TypeVar

from pagein.gateway.http.threads import Threads

T = TypeVar("T")

PATIENCE: Final = 15.0
"""Seconds for work other than decisions, mainly recalls (a search itself takes up to 5). Also the maximum wait for a free thread."""


class AllBusy(Exception):
    """Every thread is busy with abandoned work."""


class Crew:
    """Worker threads, with a count of threads that exceeded their time."""

    def __init__(self, count: int, name: str) -> None:
        self.threads = Threads(count, name)
        self._count = count
        self._overstayed = 0
        self._lining: set[asyncio.Future[None]] = set()  # work not yet started by a thread

    async def ask(
        self, seconds: float, work: Callable[[], T], leave: Callable[[], bool] | None = None
    ) -> "asyncio.Future[T]":
        """Run work in a thread and return its finished future.

        seconds: time limit, counted from the start of the work
        leave: called at the time limit; False means the end is near, and is awaited

        Raises TimeoutError, and AllBusy if no thread is or becomes available.
        """
        if self._overstayed >= self._count:
            raise AllBusy
        loop = asyncio.get_running_loop()
        begun: asyncio.Future[None] = loop.create_future()

        def run_work() -> T:
            with contextlib.suppress(RuntimeError):  # the loop may have ended in the meantime
                loop.call_soon_threadsafe(_say, begun)
            return work()

        future = self.threads.submit(run_work)
        waiting = asyncio.wrap_future(future)
        try:
            await self._wait_for_start(begun)
            await asyncio.wait([waiting], timeout=seconds)
            if not waiting.done() and leave is not None and not leave():
                await asyncio.wait([waiting], timeout=PATIENCE)
        finally:  # also if the client hung up
            if not waiting.done():
                waiting.cancel()
                self._give_up(future)
        if waiting.cancelled():
            raise TimeoutError
        return waiting

    async def _wait_for_start(self, begun: "asyncio.Future[None]") -> None:
        self._lining.add(begun)
        try:
            await asyncio.wait([begun], timeout=PATIENCE)
        finally:
            self._lining.discard(begun)
        if not begun.done() or begun.cancelled():
            raise AllBusy

    def _give_up(self, future: "Future[T]") -> None:
        if future.cancel():
            return
        loop = asyncio.get_running_loop()
        self._overstayed += 1
        if self._overstayed >= self._count:
            for one in self._lining:
                one.cancel()

        def back(_: object) -> None:
            with contextlib.suppress(RuntimeError):  # the loop may have ended in the meantime
                loop.call_soon_threadsafe(self._came_back)

        future.add_done_callback(back)

    def _came_back(self) -> None:
        self._overstayed -= 1


def _say(begun: "asyncio.Future[None]") -> None:
    if not begun.done():
        begun.set_result(None)
