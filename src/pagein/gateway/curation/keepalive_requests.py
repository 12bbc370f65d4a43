"""Keep-alive requests: one for each pause that almost outlasts what the provider's cache holds (`policy.economics.cache_keepalive`).

Rules of this file
------------------
1. Nothing is sent unless the user asked for it, and no more than so often, and for so much, per session and per hour.
2. What is needed for it, the login of the last request too, is held in memory until the pause is over or the request is sent, and
   nowhere else. None is sent by a subscription's login, none while the switch is off, and none once the gateway is ending.
3. One for each pause. What goes wrong with it harms nobody: the next request of the client is served as if it had not been.
"""

import asyncio
import time
from collections import OrderedDict, deque
from collections.abc import Awaitable, Callable
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field
from typing import Final, Protocol

from aiohttp import ClientResponse

from pagein.gateway.curation.guarded_curator import CuratedRequest, Guard, KeepAlivePlan
from pagein.gateway.stream.reply_reader import whole
from pagein.gateway.stream.upstream_answer import UPSTREAM, BrokenAnswer, is_readable, pieces_of, read_start
from pagein.providers.wire.ttl_edits import keepalive_body

WAITING: Final = 64
"""Pauses that are watched at once; the oldest are forgotten beyond that."""
SESSIONS: Final = 1024
_HOUR: Final = 3600.0
_LATE: Final = 15.0
_SILENCE: Final = 60.0
_OK: Final = 200


class SleepClock(Protocol):
    """The time, and waiting for it."""

    def now(self) -> float:
        """Seconds since 1970."""

    def sleep(self, seconds: float) -> Awaitable[None]:
        """Wait so long."""


class SystemClock:
    """The machine's."""

    def now(self) -> float:
        """Seconds since 1970."""
        return time.time()  # noqa: TID251 -- the rim reads the clock

    async def sleep(self, seconds: float) -> None:
        """Wait so long."""
        await asyncio.sleep(seconds)


@dataclass(frozen=True, slots=True)
class KeepAliveCaps:
    """How far keeping alive may go: requests and BIT, for each session and for each hour of the gateway."""

    session: int
    session_bit: float
    hour: int
    hour_bit: float


@dataclass(frozen=True, slots=True)
class KeepAliveWindow:
    """What is kept alive. body: the request as it was sent last; behind: what was said to it since. keep: when, and at what price.

    send: makes a request with another body, by the headers of the last one.
    """

    curated: CuratedRequest
    body: bytes = field(repr=False)
    behind: tuple[bytes, ...] = field(repr=False)
    keep: KeepAlivePlan
    send: Callable[[bytes], AbstractAsyncContextManager[ClientResponse]] = field(repr=False)


@dataclass(frozen=True, slots=True)
class KeepAliveOutcome:
    """A keep-alive request that is over. result: `kept`, `refused` (with its status), `failed`, or `capped` for one that was not sent.

    cost: BIT, None where it is not known.
    """

    at: float
    session: str
    result: str
    status: int = 0
    cost: float | None = None
    why: str = ""


class KeepAliveListener(Protocol):
    """Who is told of it."""

    def report_keepalive(self, sent: KeepAliveOutcome) -> None:
        """A keep-alive request is over."""


class KeepAlive:
    """Watches the pauses of all sessions of a gateway."""

    def __init__(
        self, guard: Guard, caps: KeepAliveCaps, told: KeepAliveListener, clock: SleepClock, is_off: Callable[[], bool]
    ) -> None:
        self._guard = guard
        self._caps = caps
        self._told = told
        self._clock = clock
        self._is_off = is_off
        self._pauses: OrderedDict[str, asyncio.Task[None]] = OrderedDict()
        self._spent: OrderedDict[str, tuple[int, float]] = OrderedDict()
        self._recent: deque[tuple[float, float]] = deque()
        self._ending = False

    @property
    def pauses_watched(self) -> int:
        """How many pauses are watched."""
        return len(self._pauses)

    def allows(self, session: str) -> float:
        """What another request for a session may cost, BIT; 0: none may be sent, so nothing is to rest on it."""
        self._forget(self._clock.now())
        count, spent = self._spent.get(session, (0, 0.0))
        hour, caps = sum(one for _, one in self._recent), self._caps
        if count >= caps.session or len(self._recent) >= caps.hour:
            return 0.0
        return max(0.0, min(caps.session_bit - spent, caps.hour_bit - hour))

    def came(self, conversation: str) -> None:
        """A request of a conversation came: its pause is over."""
        task = self._pauses.pop(conversation, None)
        if task is not None:
            task.cancel()

    def wait(self, window: KeepAliveWindow) -> None:
        """A pause began behind this window."""
        name = window.curated.conversation
        if self._ending or not name:
            return
        self.came(name)
        task = asyncio.get_running_loop().create_task(self._watched(window))
        self._pauses[name] = task
        task.add_done_callback(lambda done: self._over(name, done))
        while len(self._pauses) > WAITING:
            self._pauses.popitem(last=False)[1].cancel()

    async def end(self) -> None:
        """Send nothing any more, and forget all windows."""
        self._ending = True
        tasks = list(self._pauses.values())
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    def _over(self, name: str, task: asyncio.Task[None]) -> None:
        if self._pauses.get(name) is task:
            del self._pauses[name]

    async def _watched(self, window: KeepAliveWindow) -> None:
        session = window.curated.session
        try:
            await self._clock.sleep(max(0.0, window.keep.at - self._clock.now()))
            now = self._clock.now()
            if now > window.keep.at + _LATE or self._is_off():
                return  # a machine that slept: the entry may be gone, and all of it would be written
            body = await asyncio.to_thread(keepalive_body, window.body, window.behind)
            if body is None:
                return
            # Nothing is awaited between the look and the taking: pauses that end together must not pass one cap together.
            why = self._over_cap(session, window.keep, now)
            if why:
                self._told.report_keepalive(KeepAliveOutcome(now, session, "capped", why=why))
                return
            self._reserve(session, window.keep, now)
            self._told.report_keepalive(await self._sent(window, body, now))
        except Exception as problem:  # noqa: BLE001 -- law 7: nobody waits for this, and nobody is harmed
            self._told.report_keepalive(
                KeepAliveOutcome(self._clock.now(), session, "failed", why=type(problem).__name__)
            )

    async def _sent(self, window: KeepAliveWindow, body: bytes, now: float) -> KeepAliveOutcome:
        session = window.curated.session
        try:
            async with asyncio.timeout(_SILENCE), window.send(body) as upstream:
                status, can_read, answer = upstream.status, is_readable(upstream), list[bytes]()
                is_all = can_read and await read_start(pieces_of(upstream), answer)
        except (*UPSTREAM, BrokenAnswer) as problem:
            return KeepAliveOutcome(now, session, "failed", why=type(problem).__name__)
        if status != _OK or not can_read:
            return KeepAliveOutcome(now, session, "refused", status)
        usage = (await asyncio.to_thread(whole, "anthropic", b"".join(answer))).usage if is_all else None
        if usage is None:
            return KeepAliveOutcome(now, session, "failed", status, why="no usage was told")
        cost = await self._guard.note_keepalive(window.curated, usage, now)
        self._corrected(session, now, window.keep.price, cost)
        return KeepAliveOutcome(now, session, "kept", status, cost)

    # --- caps ---

    def _over_cap(self, session: str, keep: KeepAlivePlan, now: float) -> str:
        """Which cap this request would break, "" for none."""
        self._forget(now)
        count, spent = self._spent.get(session, (0, 0.0))
        caps = self._caps
        hour = sum(one for _, one in self._recent) + keep.price
        if max(count, keep.kept) >= caps.session or max(spent, keep.spent) + keep.price > caps.session_bit:
            return "session"
        return "hour" if len(self._recent) >= caps.hour or hour > caps.hour_bit else ""

    def _forget(self, now: float) -> None:
        while self._recent and self._recent[0][0] <= now - _HOUR:
            self._recent.popleft()

    def _reserve(self, session: str, keep: KeepAlivePlan, now: float) -> None:
        count, spent = self._spent.pop(session, (keep.kept, keep.spent))
        self._spent[session] = count + 1, spent + keep.price
        self._recent.append((now, keep.price))
        while len(self._spent) > SESSIONS:
            self._spent.popitem(last=False)

    def _corrected(self, session: str, now: float, price: float, cost: float | None) -> None:
        """What it really cost, in place of what it was expected to."""
        if cost is None:
            return
        if session in self._spent:
            count, spent = self._spent[session]
            self._spent[session] = count, spent - price + cost
        if (now, price) in self._recent:
            self._recent.remove((now, price))
            self._recent.append((now, cost))
