"""A gateway in this process, by a clock that its caller sets: recorded times pass without being waited for.

It is made of what `pagein serve` is made of. Nothing in a request sets the time, here or there.
"""

import asyncio
import logging
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from pagein import wiring
from pagein.engine.engine import Settings
from pagein.gateway.curation.engine_curator import EngineCurator
from pagein.gateway.kill_switch import Switch
from pagein.gateway.server import Gateway, GatewayParts
from pagein.gateway.settings import GatewaySettings
from pagein.ports import TokenCounter


class SetClock:
    """A clock that stands still until it is set. It never runs backwards, and nobody who waits by it is ever woken."""

    def __init__(self, at: float = 0.0) -> None:
        self._at = at

    def now(self) -> float:
        """Seconds since 1970."""
        return self._at

    def set(self, at: float) -> None:
        """It is that late now, or as late as it was."""
        self._at = max(self._at, at)

    async def sleep(self, seconds: float) -> None:
        """Wait for ever: what is done after a time is not done by this clock."""
        del seconds
        await asyncio.Event().wait()


@dataclass(frozen=True, slots=True)
class GatewayTerms:
    """How a gateway decides: at which times, by which settings, counting tokens how."""

    clock: SetClock
    settings: Settings
    counter: TokenCounter


@contextmanager
def gateway_at(address: str, folder: Path, terms: GatewayTerms) -> Iterator[str]:
    """The address of a gateway in front of a provider, with its store in this folder, in a thread of its own.

    It keeps no windows alive, and tells of failures in the headers of its answers only. Raises OSError where it cannot listen.
    """
    folder.mkdir(parents=True, exist_ok=True)
    silent = logging.Logger("driven")  # noqa: LOG001 -- the process's own logger belongs to whoever serves
    silent.addHandler(logging.NullHandler())
    engine = wiring.open(folder / "store.db", workspace=folder, settings=terms.settings, counter=terms.counter)
    parts = GatewayParts(EngineCurator(engine), None, Switch(folder / "off", {}), silent, terms.clock)
    gateway = Gateway(GatewaySettings(anthropic=address, openai=address, port=0), parts)
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever, name="gateway", daemon=True)
    thread.start()
    try:
        asyncio.run_coroutine_threadsafe(gateway.start(), loop).result()
        try:
            yield gateway.url
        finally:
            asyncio.run_coroutine_threadsafe(gateway.stop(), loop).result()
    finally:
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
        loop.close()
