"""A gateway in this process, with a clock set by its caller: recorded times pass without waiting.

It consists of the parts of `pagein serve`. A request never sets the time.
"""

import asyncio
import logging
import threading
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from pagein import wiring
from pagein.engine.engine import Settings
from pagein.gateway.curation.engine_curator import EngineCurator
from pagein.gateway.kill_switch import Switch
from pagein.gateway.server import Gateway, GatewayParts
from pagein.gateway.settings import GatewaySettings
from pagein.model.cache_notes import CacheVerdictNote
from pagein.ports import TokenCounter

_BUDGET: Final = 3600.0
"""Seconds for a decision, by the machine's clock: so long that a slow machine changes no figure of a driven session."""


class SetClock:
    """A clock that changes only when set. Time never runs backwards, and a sleeper never wakes.

    loop, settle: the loop of a gateway, and a function on it that waits for the gateway's work after an answer. The clock waits
    for this work before a change, so that the next request finds the usage of the last one.
    """

    def __init__(self, at: float = 0.0) -> None:
        self._at = at
        self.loop: asyncio.AbstractEventLoop | None = None
        self.settle: Callable[[], Awaitable[None]] | None = None

    def now(self) -> float:
        """Return seconds since 1970."""
        return self._at

    def set(self, at: float) -> None:
        """Set the time, if it is later than now. Not from the clock's own loop."""
        if self.loop is not None:
            asyncio.run_coroutine_threadsafe(self._wait_until(at), self.loop).result()
        self._move(at)

    def _move(self, at: float) -> None:
        self._at = max(self._at, at)

    async def _wait_until(self, at: float) -> None:  # noqa: ARG002 -- for clocks on which actions run
        if self.settle is not None:
            await self.settle()

    async def sleep(self, seconds: float) -> None:
        """Wait for ever: delayed actions never run on this clock."""
        del seconds
        await asyncio.Event().wait()


class WakingClock(SetClock):
    """A set clock on which delayed actions run: setting it past their time runs each of them to its end first."""

    def __init__(self, at: float = 0.0) -> None:
        super().__init__(at)
        self._sleepers: dict[asyncio.Task[object], tuple[float, asyncio.Event]] = {}

    async def sleep(self, seconds: float) -> None:
        """Wait until the clock is set past this time."""
        task = asyncio.current_task()
        if task is None:
            return
        event = asyncio.Event()
        self._sleepers[task] = self.now() + seconds, event
        try:
            await event.wait()
        finally:
            self._sleepers.pop(task, None)

    async def _wait_until(self, at: float) -> None:
        await super()._wait_until(at)
        while due := [(when, task, event) for task, (when, event) in self._sleepers.items() if when <= at]:
            when, task, event = min(due, key=lambda one: one[0])
            self._move(when)
            event.set()
            await asyncio.wait([task])


@dataclass(frozen=True, slots=True)
class GatewayTerms:
    """The clock, the settings and the token counter of a gateway.

    keep_alive: as in `GatewaySettings`.
    trusted: a model whose provider is known to keep cache entries through pauses; "" for none.
    saved: what earlier sessions of the store saved by TTLs, in BIT.
    """

    clock: SetClock
    settings: Settings
    counter: TokenCounter
    keep_alive: bool = False
    trusted: str = ""
    saved: float = 0.0


@contextmanager
def gateway_at(address: str, folder: Path, terms: GatewayTerms) -> Iterator[str]:
    """Run a gateway in front of a provider, in a thread of its own with a store in this folder, and yield its address.

    It reports failures only in the headers of its answers. Raises OSError if it
    cannot listen.
    """
    folder.mkdir(parents=True, exist_ok=True)
    silent = logging.Logger("driven")  # noqa: LOG001 -- the process's own logger belongs to the server process
    silent.addHandler(logging.NullHandler())
    engine = wiring.open(folder / "store.db", workspace=folder, settings=terms.settings, counter=terms.counter)
    if terms.trusted:
        engine.evidence.add(CacheVerdictNote(terms.trusted, "hour", held=True, at=0.0))
    if terms.saved:
        engine.evidence.add_savings(terms.saved, 0.0)
    parts = GatewayParts(EngineCurator(engine), None, Switch(folder / "off", {}), silent, terms.clock)
    settings = GatewaySettings(anthropic=address, openai=address, port=0, budget=_BUDGET, keep_alive=terms.keep_alive)
    gateway = Gateway(settings, parts)
    loop = asyncio.new_event_loop()
    terms.clock.loop, terms.clock.settle = loop, gateway.settle
    thread = threading.Thread(target=loop.run_forever, name="gateway", daemon=True)
    thread.start()
    try:
        asyncio.run_coroutine_threadsafe(gateway.start(), loop).result()
        try:
            yield gateway.url
        finally:
            terms.clock.loop = None
            asyncio.run_coroutine_threadsafe(gateway.stop(), loop).result()
    finally:
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
        loop.close()
