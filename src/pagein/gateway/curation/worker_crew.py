"""Worker threads that are asked, for so long and no longer, by those who must not wait for ever."""

import asyncio
import contextlib
from collections.abc import Callable
from concurrent.futures import Future
from typing import Final, TypeVar

from pagein.gateway.http.threads import Threads

T = TypeVar("T")

PATIENCE: Final = 15.0
"""Seconds for all but decisions, above all for what a model waits for: a search looks for 5 itself. Also until a thread is free."""


class AllBusy(Exception):
    """All threads are at work on what was given up."""


class Crew:
    """Threads that are asked, and how many of them overstay."""

    def __init__(self, count: int, name: str) -> None:
        self.threads = Threads(count, name)
        self._count = count
        self._overstayed = 0
        self._lining: set[asyncio.Future[None]] = set()  # those whose work no thread has begun with

    async def ask(
        self, seconds: float, work: Callable[[], T], leave: Callable[[], bool] | None = None
    ) -> "asyncio.Future[T]":
        """What came of it, when it is done. seconds: for it, once a thread has begun with it. leave: asked when they are over; where it
        says no, the end is near, and is waited for.

        Raises TimeoutError, and AllBusy where there is nobody to ask, or nobody for long.
        """
        if self._overstayed >= self._count:
            raise AllBusy
        loop = asyncio.get_running_loop()
        begun: asyncio.Future[None] = loop.create_future()

        def working() -> T:
            with contextlib.suppress(RuntimeError):  # the loop may have ended in the meantime
                loop.call_soon_threadsafe(_say, begun)
            return work()

        future = self.threads.submit(working)
        waiting = asyncio.wrap_future(future)
        try:
            await self._begun(begun)
            await asyncio.wait([waiting], timeout=seconds)
            if not waiting.done() and leave is not None and not leave():
                await asyncio.wait([waiting], timeout=PATIENCE)
        finally:  # also where the client hung up
            if not waiting.done():
                waiting.cancel()
                self._give_up(future)
        if waiting.cancelled():
            raise TimeoutError
        return waiting

    async def _begun(self, begun: "asyncio.Future[None]") -> None:
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
