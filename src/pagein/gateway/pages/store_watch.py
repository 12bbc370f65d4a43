"""Whether what the gateway keeps can still be kept: looked at from outside, now and then, and as soon as something failed."""

import asyncio
import time
from collections.abc import Callable
from typing import Final, Protocol

_CALM: Final = 60.0
_ALARMED: Final = 5.0
"""Seconds from one look to the next, at least: where nothing failed, and where something did."""


class Look(Protocol):
    """Looks at a store. Called in a worker thread."""

    def __call__(self, *, thorough: bool) -> str:
        """What is wrong with it and what to do, "" for nothing. thorough: it may take seconds."""


class Soundness:
    """What is known of the store. told: what was wrong when it was looked at last, "" for nothing."""

    def __init__(self, look: Look | None, tell: Callable[[str], None]) -> None:
        self._look = look
        self._tell = tell
        self._last = dict.fromkeys((False, True), float("-inf"))
        self.told = ""

    async def after(self, *, failed: bool) -> None:
        """Look, where that is due behind a call. failed: something of ours went wrong with it. Never raises."""
        await self._looked(_ALARMED if failed else _CALM, thorough=failed)

    async def ask(self) -> str:
        """What is wrong with the store, for somebody who wants to know. Never raises."""
        await self._looked(_ALARMED, thorough=False)
        return self.told

    async def _looked(self, pause: float, *, thorough: bool) -> None:
        now = time.monotonic()
        if self._look is None or now < self._last[thorough] + pause:
            return
        self._last = {False: now, True: now if thorough else self._last[True]}
        try:
            told = await asyncio.to_thread(self._look, thorough=thorough)
        except Exception:  # noqa: BLE001 -- law 7: who looks harms nobody
            return
        if told and told != self.told:
            self._tell(told)
        self.told = told
