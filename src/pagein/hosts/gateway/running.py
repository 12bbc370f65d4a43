"""One process that is a gateway: its event loop, and the signals that end it."""

import asyncio
import importlib
import signal
from collections.abc import Callable

from pagein.hosts.gateway.server import Gateway


def served(gateway: Gateway, tell: Callable[[Gateway], None]) -> bool:
    """Serve until SIGINT or SIGTERM. tell: called when it listens. Whether all calls came to their end; a second signal ends them.

    Raises OSError where the address cannot be had.
    """
    with asyncio.Runner(loop_factory=_loop_factory()) as runner:
        return runner.run(_serving(gateway, tell))


async def _serving(gateway: Gateway, tell: Callable[[Gateway], None]) -> bool:
    first, second = asyncio.Event(), asyncio.Event()

    def asked() -> None:
        (second if first.is_set() else first).set()

    loop = asyncio.get_running_loop()
    await gateway.start()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, asked)
    tell(gateway)
    await first.wait()
    draining = asyncio.ensure_future(gateway.drain())
    hurried = asyncio.ensure_future(second.wait())
    await asyncio.wait([draining, hurried], return_when=asyncio.FIRST_COMPLETED)
    whole = draining.done() and draining.result()
    for task in (draining, hurried):
        task.cancel()
    await gateway.stop(0)
    return whole


def _loop_factory() -> Callable[[], asyncio.AbstractEventLoop] | None:
    """Uvloop where it is installed: half the time per event."""
    try:
        made: Callable[[], asyncio.AbstractEventLoop] = importlib.import_module("uvloop").new_event_loop
    except ImportError:
        return None
    return made
