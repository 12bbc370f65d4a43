"""Send keep-alive requests: at most one per pause, shortly before the provider's cache expires (`policy.economics.cache_keepalive`).

Rules of this file
------------------
1. Keep-alive requests are opt-in, and limited in number and cost per session and per hour.
2. The required data, including the login of the last request, stays only in memory, until the pause is over or the request is sent.
   No request is sent with a subscription's login, while the gateway is switched off, or while it stops.
3. A pause begins when no request of the conversation is open any more, with an answer that is whole. So nothing is sent while an
   answer streams, nor after a failed request, which the client repeats.
4. One request per pause. While it is not known whether they work with a model, one request per hour for this model.
   A failure is harmless: the client's next request is served as if no keep-alive request had been sent.
"""

import asyncio
import time
from collections import OrderedDict, deque
from collections.abc import Awaitable, Callable, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field
from typing import Final, Protocol

from aiohttp import ClientResponse

from pagein.engine.cache.cache_ttl import KeepAlivePlan
from pagein.gateway.curation.guarded_curator import CuratedRequest, Guard
from pagein.gateway.curation.outgoing_request import OutgoingRequest
from pagein.gateway.settings import GatewaySettings
from pagein.gateway.stream.upstream_answer import UPSTREAM, BrokenAnswer, is_readable, pieces_of, read_start
from pagein.gateway.stream.whole_answer import whole
from pagein.providers.validity import Api
from pagein.providers.wire.formats import format_named
from pagein.providers.wire.streams.model_reply import ModelReply
from pagein.providers.wire.ttl_edits import keepalive_body

WAITING: Final = 64
"""Maximum number of pauses watched at once; beyond it the oldest are dropped."""
SESSIONS: Final = 1024
_MODELS: Final = 64
_HOUR: Final = 3600.0
_LATE: Final = 15.0
_SILENCE: Final = 60.0
_OK: Final = 200
_SAID: Final = ("end_turn", "stop_sequence", "tool_use")
"""Stop reasons after which a client may continue its conversation."""


class SleepClock(Protocol):
    """A clock with a wait operation."""

    def now(self) -> float:
        """Return seconds since 1970."""

    def sleep(self, seconds: float) -> Awaitable[None]:
        """Wait for this many seconds."""


class SystemClock:
    """The machine's clock."""

    def now(self) -> float:
        """Return seconds since 1970."""
        return time.time()  # noqa: TID251 -- the rim reads the clock

    async def sleep(self, seconds: float) -> None:
        """Wait for this many seconds."""
        await asyncio.sleep(seconds)


@dataclass(frozen=True, slots=True)
class KeepAliveCaps:
    """Limits on keep-alive requests: number and BIT, per session and per hour of the gateway."""

    session: int
    session_bit: float
    hour: int
    hour_bit: float


def caps_in(settings: GatewaySettings) -> KeepAliveCaps:
    """Return the caps as they are set."""
    return KeepAliveCaps(
        settings.keep_alive_session,
        settings.keep_alive_session_bit,
        settings.keep_alive_hour,
        settings.keep_alive_hour_bit,
    )


@dataclass(frozen=True, slots=True)
class KeepAliveWindow:
    """A window to keep alive.

    api: wire format of the request
    body: the request as last sent
    behind: messages after the request
    keep: time and price
    send: sends a request with another body and the last request's headers
    """

    curated: CuratedRequest
    api: Api
    body: bytes = field(repr=False)
    behind: tuple[bytes, ...] = field(repr=False)
    keep: KeepAlivePlan
    send: Callable[[bytes], AbstractAsyncContextManager[ClientResponse]] = field(repr=False)


def window_to_keep(
    outgoing: OutgoingRequest,
    reply: ModelReply,
    keep: KeepAlivePlan,
    behind: Sequence[bytes],
    send: Callable[[bytes], AbstractAsyncContextManager[ClientResponse]],
) -> KeepAliveWindow | None:
    """Return the window to keep alive after a call; None if its answer leaves none.

    behind: messages behind the request where pagein continued the answer; else the answer alone follows.
    """
    api, data, decision = outgoing.route.api, outgoing.data, outgoing.decision
    if decision is None or api is None or not isinstance(data, bytes):
        return None
    following = tuple(behind or format_named(api).answers.turn(reply, ()).said)
    is_sub = outgoing.hint is not None and bool(outgoing.hint.agent)
    if not reply.finished or reply.stop not in _SAID or not following or (is_sub and reply.stop != "tool_use"):
        return None
    return KeepAliveWindow(decision.curated, api, data, following, keep, send)


@dataclass(frozen=True, slots=True)
class KeepAliveOutcome:
    """Result of a keep-alive request.

    result: `kept`, `refused` (with its status), `failed`, or `capped` for a request not sent
    cost: in BIT, None if unknown
    """

    at: float
    session: str
    result: str
    status: int = 0
    cost: float | None = None
    why: str = ""


class KeepAliveListener(Protocol):
    """Receives the results of keep-alive requests."""

    def report_keepalive(self, sent: KeepAliveOutcome) -> None:
        """Report a finished keep-alive request."""


@dataclass(slots=True)
class _OpenRequests:
    """The open requests of a conversation.

    newest: arrival of the newest closed request, in seconds. window: the window that it leaves in the cache.
    """

    count: int = 0
    newest: float = float("-inf")
    window: KeepAliveWindow | None = None


class KeepAlive:
    """Watches the pauses of every session of a gateway."""

    def __init__(
        self, guard: Guard, caps: KeepAliveCaps, told: KeepAliveListener, clock: SleepClock, is_off: Callable[[], bool]
    ) -> None:
        self._guard = guard
        self._caps = caps
        self._told = told
        self._clock = clock
        self._is_off = is_off
        self._pauses: OrderedDict[str, asyncio.Task[None]] = OrderedDict()
        self._open: dict[str, _OpenRequests] = {}
        self._spent: OrderedDict[str, tuple[int, float]] = OrderedDict()
        self._recent: deque[tuple[float, float]] = deque()
        self._trials: OrderedDict[str, float] = OrderedDict()
        self._ending = False

    def cost_limit(self, session: str) -> float:
        """Return the cost limit of a session's next keep-alive request, in BIT; 0 if none may be sent."""
        self._forget(self._clock.now())
        count, spent = self._spent.get(session, (0, 0.0))
        hour, caps = sum(one for _, one in self._recent), self._caps
        if count >= caps.session or len(self._recent) >= caps.hour:
            return 0.0
        return max(0.0, min(caps.session_bit - spent, caps.hour_bit - hour))

    def note_request(self, conversation: str) -> None:
        """End the pause of a conversation: a request of it is open, until `note_answer`."""
        self._open.setdefault(conversation, _OpenRequests()).count += 1
        task = self._pauses.pop(conversation, None)
        if task is not None:
            task.cancel()

    def note_answer(self, conversation: str, at: float, window: KeepAliveWindow | None = None) -> None:
        """Close a request, and begin to watch the pause unless another request of the conversation is open.

        at: when the request came, in seconds since 1970; the pause is that after the newest request.
        window: the window to keep alive; None after a failed answer, or one that leaves nothing to keep.
        """
        requests = self._open[conversation]
        requests.count -= 1
        if at >= requests.newest:
            requests.newest, requests.window = at, window
        if requests.count:
            return
        del self._open[conversation]
        window = requests.window
        if self._ending or window is None or not conversation:
            return
        task = asyncio.get_running_loop().create_task(self._watch_pause(window))
        self._pauses[conversation] = task
        task.add_done_callback(lambda done: self._over(conversation, done))
        while len(self._pauses) > WAITING:
            self._pauses.popitem(last=False)[1].cancel()

    async def end(self) -> None:
        """Cancel every pause, and send nothing more."""
        self._ending = True
        tasks = list(self._pauses.values())
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    def _over(self, name: str, task: asyncio.Task[None]) -> None:
        if self._pauses.get(name) is task:
            del self._pauses[name]

    async def _watch_pause(self, window: KeepAliveWindow) -> None:
        session = window.curated.session
        try:
            await self._clock.sleep(max(0.0, window.keep.at - self._clock.now()))
            now = self._clock.now()
            if now > window.keep.at + _LATE or self._is_off():
                return  # the machine was asleep: the cache entry may have expired, and a request would write the whole prompt
            body = await asyncio.to_thread(keepalive_body, window.body, window.api, window.behind)
            if body is None:
                return
            # No await between check and reservation: two pauses that end together must not both pass the last place under a cap.
            why = self._over_cap(session, window.keep, now)
            if why:
                self._told.report_keepalive(KeepAliveOutcome(now, session, "capped", why=why))
                return
            if window.keep.is_trial and not self._may_try(window.curated.model, now):
                return
            self._reserve(session, window.keep, now)
            self._told.report_keepalive(await self._send(window, body, now))
        except Exception as problem:  # noqa: BLE001 -- law 7: no caller waits for this, and no caller is harmed
            self._told.report_keepalive(
                KeepAliveOutcome(self._clock.now(), session, "failed", why=type(problem).__name__)
            )

    async def _send(self, window: KeepAliveWindow, body: bytes, now: float) -> KeepAliveOutcome:
        session = window.curated.session
        try:
            async with asyncio.timeout(_SILENCE), window.send(body) as upstream:
                status, can_read, answer = upstream.status, is_readable(upstream), list[bytes]()
                is_all = can_read and await read_start(pieces_of(upstream), answer)
        except (*UPSTREAM, BrokenAnswer) as problem:
            return KeepAliveOutcome(now, session, "failed", why=type(problem).__name__)
        if status != _OK or not can_read:
            return KeepAliveOutcome(now, session, "refused", status)
        usage = (await asyncio.to_thread(whole, window.api, b"".join(answer))).usage if is_all else None
        if usage is None:
            return KeepAliveOutcome(now, session, "failed", status, why="no usage was told")
        cost = await self._guard.note_keepalive(window.curated, usage, now)
        self._correct_cost(session, now, window.keep.price, cost)
        return KeepAliveOutcome(now, session, "kept", status, cost)

    def _may_try(self, model: str, now: float) -> bool:
        """Return whether no other trial with a model is still undecided, and begin a trial."""
        if now < self._trials.get(model, float("-inf")) + _HOUR:
            return False
        self._trials[model] = now
        self._trials.move_to_end(model)
        while len(self._trials) > _MODELS:
            self._trials.popitem(last=False)
        return True

    # --- caps ---

    def _over_cap(self, session: str, keep: KeepAlivePlan, now: float) -> str:
        """Return the name of the cap exceeded by this request, "" for none."""
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

    def _correct_cost(self, session: str, now: float, price: float, cost: float | None) -> None:
        """Replace the expected cost by the actual cost."""
        if cost is None:
            return
        if session in self._spent:
            count, spent = self._spent[session]
            self._spent[session] = count, spent - price + cost
        if (now, price) in self._recent:
            self._recent.remove((now, price))
            self._recent.append((now, cost))
