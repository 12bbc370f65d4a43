"""Run work in a thread. A cancellation waits for the thread: no work outlives the operation."""

import asyncio
import threading
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")


async def finish_in_thread(work: Callable[[threading.Event], T]) -> T:
    """Run a function in a worker thread, and return the result.

    work: gets an event that is set when the caller is cancelled; it may then end early. Its effects are complete before the
    cancellation goes on.
    """
    stop = threading.Event()
    running = asyncio.ensure_future(asyncio.to_thread(work, stop))
    try:
        return await asyncio.shield(running)
    except asyncio.CancelledError:
        stop.set()
        while not running.done():
            try:
                await asyncio.wait([running])
            except asyncio.CancelledError:  # cancelled again: the thread is waited for all the same
                continue
        if not running.cancelled():
            running.exception()  # the result, or the failure, is nobody's any more
        raise
