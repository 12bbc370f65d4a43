"""Run a gateway process with an event loop and signal handlers."""

import asyncio
import gc
import importlib
import signal
from collections.abc import Callable
from typing import Final

from pagein.gateway.http.threads import Threads
from pagein.gateway.server import Gateway

_SIGNALS: Final = (signal.SIGINT, signal.SIGTERM)
_THREADS: Final = 16
_HURRY: Final = 0.5
"""Seconds for the store and pending reports when the user does not want to wait."""
_LOOK: Final = 0.5
"""Seconds between two looks whether the gateway is still wanted."""


def serve_until_signal(
    gateway: Gateway,
    tell: Callable[[Gateway], None],
    waits: Callable[[int], None] = lambda _: None,
    is_over: Callable[[], bool] | None = None,
) -> bool:
    """Serve until SIGINT or SIGTERM. A second signal ends running calls, a third signal the process.

    tell: called once the gateway listens
    waits: called with the number of running calls at the end
    is_over: asked again and again whether to end without a signal; None for never

    Returns whether every call was completed. Raises OSError if the address is unavailable.
    """
    with asyncio.Runner(loop_factory=_loop_factory()) as runner:
        return runner.run(_serve(gateway, tell, waits, is_over))


async def _serve(
    gateway: Gateway,
    tell: Callable[[Gateway], None],
    waits: Callable[[int], None],
    is_over: Callable[[], bool] | None,
) -> bool:
    first, second = asyncio.Event(), asyncio.Event()

    def on_signal() -> None:
        if first.is_set():
            second.set()
            for number in _SIGNALS:
                loop.remove_signal_handler(number)
                signal.signal(number, signal.SIG_DFL)
        first.set()

    loop = asyncio.get_running_loop()
    loop.set_default_executor(Threads(_THREADS, "pagein"))
    await gateway.start()
    gc.collect()
    gc.freeze()  # imported modules are never garbage: scanning them would delay every stream
    for number in _SIGNALS:
        loop.add_signal_handler(number, on_signal)
    tell(gateway)
    if is_over is not None:
        _look_again(loop, first, is_over)
    await first.wait()
    if gateway.under_way:
        waits(gateway.under_way)
    hurried = asyncio.ensure_future(second.wait())
    ending = asyncio.ensure_future(gateway.stop())
    await asyncio.wait([ending, hurried], return_when=asyncio.FIRST_COMPLETED)
    hurried.cancel()
    if ending.done():
        return ending.result()
    ending.cancel()
    await asyncio.wait([ending])
    await gateway.stop(0, settle=_HURRY)
    return False


def _look_again(loop: asyncio.AbstractEventLoop, first: asyncio.Event, is_over: Callable[[], bool]) -> None:
    """Set the event once the gateway is not wanted any more."""
    if first.is_set() or is_over():
        first.set()
    else:
        loop.call_later(_LOOK, _look_again, loop, first, is_over)


def _loop_factory() -> Callable[[], asyncio.AbstractEventLoop] | None:
    """Return uvloop's factory if installed: half the time per event."""
    try:
        made: Callable[[], asyncio.AbstractEventLoop] = importlib.import_module("uvloop").new_event_loop
    except ImportError:
        return None
    return made
