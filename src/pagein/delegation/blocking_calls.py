"""Delegation for callers without an event loop. A call runs a loop of its own until the operation has ended."""

import asyncio
import contextlib
import signal
import threading
from collections.abc import Callable, Coroutine
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Final

from pagein.delegation.call_tree import CallTree, Watch
from pagein.delegation.delegation import Delegation
from pagein.policy.delegation.reports import Question, Report
from pagein.ports import Signal

_POLL: Final = 0.05
"""Seconds between two looks at a caller's signal."""


def ask_now(
    delegation: Delegation,
    question: Question,
    *,
    tree: CallTree,
    stop: Signal | None = None,
    watch: Watch | None = None,
    heeds_interrupt: bool = False,
) -> Report:
    """Return the report of an operation. What is cancelled has a report, too.

    stop: cancels the operation once set. heeds_interrupt: whether Ctrl-C cancels the operation, in place of KeyboardInterrupt;
    only in the main thread.
    """

    async def ask() -> Report:
        running: list[str] = []
        loop = asyncio.get_running_loop()

        def cancel() -> None:
            for one in running:
                tree.cancel(one)

        polls = None if stop is None else asyncio.ensure_future(_poll(stop, cancel))
        is_heeded = heeds_interrupt and threading.current_thread() is threading.main_thread()
        if is_heeded:
            loop.add_signal_handler(signal.SIGINT, cancel)
        try:
            return await delegation.ask(question, watch, running.append)
        finally:
            if is_heeded:
                loop.remove_signal_handler(signal.SIGINT)
            if polls is not None:
                polls.cancel()
                with contextlib.suppress(asyncio.CancelledError):
                    await polls

    return _run(ask)


async def _poll(stop: Signal, cancel: Callable[[], None]) -> None:
    while not stop.is_set():  # noqa: ASYNC110 -- the signal is the caller's, and only to be polled
        await asyncio.sleep(_POLL)
    while True:  # the operation may not have begun yet
        cancel()
        await asyncio.sleep(_POLL)


def _run(make: Callable[[], Coroutine[Any, Any, Report]]) -> Report:
    """Run a coroutine in this thread; in one of its own if this thread has a loop at work."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return asyncio.run(make())
    with ThreadPoolExecutor(1) as threads:
        return threads.submit(lambda: asyncio.run(make())).result()
