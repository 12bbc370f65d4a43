"""Monitor the soundness of the store from outside: periodically, and soon after a failure."""

import asyncio
import time
from collections.abc import Callable
from typing import Final, Protocol

_CALM: Final = 60.0
_ALARMED: Final = 5.0
"""Minimum seconds between checks: without and after a failure."""


class Look(Protocol):
    """Checks a store. Called in a worker thread."""

    def __call__(self, *, thorough: bool) -> str:
        """Return the problem with its remedy, "" for a sound store.

        thorough: the check may take seconds
        """


class Soundness:
    """The known state of the store.

    told: problem found by the last check, "" for none
    """

    def __init__(self, look: Look | None, tell: Callable[[str], None]) -> None:
        self._look = look
        self._tell = tell
        self._last = dict.fromkeys((False, True), float("-inf"))
        self.told = ""

    async def after(self, *, failed: bool) -> None:
        """Check the store after a call if due. Never raises.

        failed: whether the call had a failure of pagein
        """
        await self._check(_ALARMED if failed else _CALM, thorough=failed)

    async def ask(self) -> str:
        """Return the problem of the store, "" for none. Never raises."""
        await self._check(_ALARMED, thorough=False)
        return self.told

    async def _check(self, pause: float, *, thorough: bool) -> None:
        now = time.monotonic()
        if self._look is None or now < self._last[thorough] + pause:
            return
        self._last = {False: now, True: now if thorough else self._last[True]}
        try:
            told = await asyncio.to_thread(self._look, thorough=thorough)
        except Exception:  # noqa: BLE001 -- law 7: a check must not affect calls
            return
        if told and told != self.told:
            self._tell(told)
        self.told = told
