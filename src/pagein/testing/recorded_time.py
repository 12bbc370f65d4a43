"""A gateway in this process, with a clock set by its caller: recorded times pass without waiting.

It consists of the parts of `pagein serve`. A request never sets the time.
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
    """A clock that changes only when set. Time never runs backwards, and a sleeper never wakes."""

    def __init__(self, at: float = 0.0) -> None:
        self._at = at

    def now(self) -> float:
        """Return seconds since 1970."""
        return self._at

    def set(self, at: float) -> None:
        """Set the time, if it is later than now."""
        self._at = max(self._at, at)

    async def sleep(self, seconds: float) -> None:
        """Wait for ever: delayed actions never run on this clock."""
        del seconds
        await asyncio.Event().wait()


@dataclass(frozen=True, slots=True)
class GatewayTerms:
    """The clock, the settings and the token counter of a gateway."""

    clock: SetClock
    settings: Settings
    counter: TokenCounter


@contextmanager
def gateway_at(address: str, folder: Path, terms: GatewayTerms) -> Iterator[str]:
    """Run a gateway in front of a provider, in a thread of its own with a store in this folder, and yield its address.

    It sends no keep-alive requests, and reports failures only in the headers of its answers. Raises OSError if it
    cannot listen.
    """
    folder.mkdir(parents=True, exist_ok=True)
    silent = logging.Logger("driven")  # noqa: LOG001 -- the process's own logger belongs to the server process
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
