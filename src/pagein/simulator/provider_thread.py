"""Run a simulated provider in a separate thread, or in the caller's event loop."""

import asyncio
import threading
from types import TracebackType
from typing import Self

from pagein.simulator.http_server import Server
from pagein.simulator.provider_settings import ProviderSettings
from pagein.simulator.records import ProviderBill, Record
from pagein.simulator.service import Service


class SimulatedProvider:
    """A provider on loopback for the time of a `with` or `async with` block.

        with SimulatedProvider([[{"text": "hello"}]]) as provider:
            ...  # speak HTTP to provider.url
        provider.requests, provider.bill()

    With `with` it runs in its own thread, with `async with` in the running loop.

    script: a list of turns, an object of named scripts, a `Script`, a function from a call to a turn, or None for
        scripts in prompts only.
    Raises BadInput for an invalid script, BadSetting for invalid prices, and OSError if it cannot listen.
    """

    def __init__(self, script: object = None, settings: ProviderSettings | None = None) -> None:
        settings = settings or ProviderSettings()
        self._server = Server(Service(script, settings), settings)
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: threading.Thread | None = None

    @property
    def url(self) -> str:
        """The address, without a path."""
        return self._server.url

    @property
    def requests(self) -> list[Record]:
        """The requests so far, in the order of arrival."""
        return self._server.requests

    def bill(self) -> ProviderBill:
        """The bill for the model calls so far."""
        return self._server.bill()

    def advance(self, seconds: float) -> None:
        """Move the provider's clock forward."""
        self._server.advance(seconds)

    def __enter__(self) -> Self:
        loop = asyncio.new_event_loop()
        self._loop = loop
        self._thread = threading.Thread(target=_run, args=(loop,), name="simulated-provider", daemon=True)
        self._thread.start()
        try:
            asyncio.run_coroutine_threadsafe(self._server.start(), loop).result()
        except BaseException:
            self._end()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._loop is not None:
            asyncio.run_coroutine_threadsafe(self._server.stop(), self._loop).result()
        self._end()

    async def __aenter__(self) -> Self:
        await self._server.start()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._server.stop()

    def _end(self) -> None:
        if self._loop is not None and self._thread is not None:
            self._loop.call_soon_threadsafe(self._loop.stop)
            self._thread.join()
        self._loop = self._thread = None


def _run(loop: asyncio.AbstractEventLoop) -> None:
    """Run an event loop until it is stopped, then cancel the remaining tasks and close the loop."""
    asyncio.set_event_loop(loop)
    try:
        loop.run_forever()
        left = asyncio.all_tasks(loop)
        for task in left:
            task.cancel()
        loop.run_until_complete(asyncio.gather(*left, return_exceptions=True))
        loop.run_until_complete(loop.shutdown_asyncgens())
    finally:
        loop.close()
