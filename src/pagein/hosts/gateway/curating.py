"""The engine as the gateway sees it, and the care that no failure of it reaches the client (law 7)."""

import asyncio
import contextlib
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass
from typing import Final, Literal, ParamSpec, Protocol, TypeAlias, TypeVar

from pagein.engine.exchanges import Exchange
from pagein.errors import BadInput, PageinError
from pagein.hosts.gateway.hints import Hint
from pagein.hosts.gateway.replies import Reply
from pagein.hosts.gateway.threads import Threads
from pagein.hosts.gateway.turns import OwnCall, Result
from pagein.model.messages import Usage
from pagein.providers.validity.rules import Api

Failure: TypeAlias = Literal["budget", "busy", "engine", "invalid", "unreadable"]

P = ParamSpec("P")
T = TypeVar("T")

# Seconds for all but decisions, above all for what a model waits for: a search looks for 5 itself.
_PATIENCE: Final = 15.0


@dataclass(frozen=True, slots=True)
class Asked:
    """One model call as the client sent it.

    at: seconds since 1970. hint: what its headers say about its session. context: headers that the provider's cache depends on.
    lasting: what a request may cost that keeps its window alive through a pause, BIT; 0: there will be none.
    """

    body: bytes
    api: Api
    hint: Hint | None
    at: float
    context: str = ""
    lasting: float = 0.0


@dataclass(frozen=True, slots=True)
class Curated:
    """The bytes to send, and what was decided about them.

    session: the name of the session that it was placed in. failure: what failed, "" for nothing; then `body` is what law 7 asks for.
    epoch: why an epoch was opened with this request, "" where none was. foreign: what the client changed in its own prefix.
    replaced: results that stand in it as stubs, previews or markers. saved: characters that it is shorter by.
    crowded: the window is nearly full although all left that may; the client should compact.
    tools: names of our own tools that the request offers, and whose calls are ours to answer.
    conversation: what tells requests that go on from each other, "" for one that nothing is to follow.
    ticket: the curator's own value for what follows.
    """

    body: bytes
    session: str = ""
    model: str = ""
    failure: str = ""
    epoch: str = ""
    foreign: str = ""
    replaced: int = 0
    saved: int = 0
    tools: frozenset[str] = frozenset()
    crowded: bool = False
    conversation: str = ""
    ticket: object = None


@dataclass(frozen=True, slots=True)
class Keep:
    """When a window is to be kept alive, and at what price in BIT. kept, spent: how often its branch was so far, and what that cost."""

    at: float
    price: float
    kept: int = 0
    spent: float = 0.0


@dataclass(frozen=True, slots=True)
class Noted:
    """What an answer's usage tells. Costs are in BIT; None where it cannot be said.

    saved: what the call would have cost without us, less what it did. shortfall: tokens that the cache should have held and did
    not; explanation: why, in a sentence; cause, who: the same as a word, and whose doing it was; "" where nothing fell short.
    failure: why it could not be taken in whole, "" where it was. keep: when its window is to be kept alive, None: not at all.
    """

    cost: float | None = None
    saved: float | None = None
    shortfall: int = 0
    explanation: str = ""
    cause: str = ""
    who: str = ""
    failure: str = ""
    keep: Keep | None = None


NOTHING_NOTED: Final = Noted()


class Curator(Protocol):
    """What decides on requests. Called from several threads at once; it does not know of HTTP."""

    def prepare(self, asked: Asked) -> Curated:
        """The request as it should go out. Raises BadInput for a body that no provider would read."""

    def observe(self, curated: Curated, reply: Reply, at: float) -> Noted:
        """Take in the answer to a request that was sent as `curated`."""

    def recall(self, curated: Curated, call: OwnCall) -> Result:
        """Answer a call of a tool of ours. Raises nothing that a model could have caused."""

    def spliced(self, curated: Curated, exchange: Exchange) -> str:
        """What the client will see as one answer stands for these turns. Returns why that could not be kept, "" where it was."""

    def kept(self, curated: Curated, usage: Usage, at: float) -> float | None:
        """The window of a request was kept alive at this time. What that cost, BIT; None where it cannot be said."""

    def untouched(self, asked: Asked) -> bytes:
        """The bytes to send where nothing is decided: the client's own, but for what only stood with what we decided before."""

    def close(self) -> None:
        """Let go of everything."""


class PassThrough:
    """Decides nothing."""

    def prepare(self, asked: Asked) -> Curated:
        """The request as it came."""
        return Curated(asked.body, asked.hint.key if asked.hint is not None else "")

    def observe(self, curated: Curated, reply: Reply, at: float) -> Noted:
        """Nothing is learned."""
        del curated, reply, at
        return NOTHING_NOTED

    def recall(self, curated: Curated, call: OwnCall) -> Result:
        """Nothing was offered."""
        del curated
        return Result(call, "There is nothing to recall.", is_error=True)

    def spliced(self, curated: Curated, exchange: Exchange) -> str:
        """Nothing is kept."""
        del curated, exchange
        return "nothing is kept"

    def kept(self, curated: Curated, usage: Usage, at: float) -> float | None:
        """Nothing was asked for."""
        del curated, usage, at
        return None

    def untouched(self, asked: Asked) -> bytes:
        """The request as it came."""
        return asked.body

    def close(self) -> None:
        """There is nothing to let go of."""


@dataclass(frozen=True, slots=True)
class Decision:
    """What goes out. kind: what failed, None for nothing; why: in words for the log."""

    curated: Curated
    kind: Failure | None = None
    why: str = ""


class Guard:
    """Asks a curator from worker threads, for so long and no longer.

    A thread that overstays cannot be ended. As long as all of them do, nobody waits for them: requests pass at once. Decisions have
    threads of their own, so that nothing that comes after an answer holds one up.
    """

    def __init__(self, curator: Curator, budget: float, threads: int = 8) -> None:
        self._curator = curator
        self._budget = budget
        self._deciding = _Crew(threads, "pagein-curate")
        self._following = _Crew(threads, "pagein-follow")
        self._closing: Future[None] | None = None

    async def decide(self, asked: Asked) -> Decision:
        """What to send for this request: the curator's answer, or the client's own bytes. Never raises."""
        try:
            done = await self._deciding.asked(self._budget, self._curator.prepare, asked)
        except TimeoutError:
            return Decision(Curated(await self.untouched(asked)), "budget", f"no decision within {self._budget:g} s")
        except _AllBusy:
            return Decision(
                Curated(await self.untouched(asked)), "busy", "all threads are at work on requests that were given up"
            )
        return _judged(asked, done)

    async def untouched(self, asked: Asked) -> bytes:
        """What to send where nothing is decided; the client's own bytes where that is not told in time. Never raises."""
        try:
            return (await self._following.asked(self._budget, self._curator.untouched, asked)).result()
        except Exception:  # noqa: BLE001 -- law 7
            return asked.body

    async def observe(self, curated: Curated, reply: Reply, at: float) -> Noted:
        """Tell the curator of an answer. Raises whatever it raises, and TimeoutError."""
        return (await self._following.asked(_PATIENCE, self._curator.observe, curated, reply, at)).result()

    async def recall(self, curated: Curated, call: OwnCall) -> Result:
        """The answer to a call of ours; one that says so where it cannot be had. Never raises."""
        try:
            return (await self._following.asked(_PATIENCE, self._curator.recall, curated, call)).result()
        except Exception as problem:  # noqa: BLE001 -- law 7: the model is told, and goes on
            return Result(call, f"This cannot be recalled now ({type(problem).__name__}).", is_error=True)

    async def spliced(self, curated: Curated, exchange: Exchange) -> str:
        """Why it could not be kept that an answer stands for several turns, "" where it was. Never raises."""
        try:
            return (await self._following.asked(_PATIENCE, self._curator.spliced, curated, exchange)).result()
        except Exception as problem:  # noqa: BLE001 -- law 7
            return type(problem).__name__

    async def kept(self, curated: Curated, usage: Usage, at: float) -> float | None:
        """Tell the curator that a window was kept alive. Raises whatever it raises, and TimeoutError."""
        return (await self._following.asked(_PATIENCE, self._curator.kept, curated, usage, at)).result()

    async def close(self, seconds: float) -> None:
        """Let go of curator and threads, which get so long to come to their end. One that hangs is left behind."""
        if self._closing is None:
            last = Threads(1, "pagein-close")
            self._closing = last.submit(self._close, seconds / 2)
            last.shutdown()
        await asyncio.wait([closing := asyncio.wrap_future(self._closing)], timeout=seconds)
        if closing.done():
            closing.result()

    def _close(self, seconds: float) -> None:
        crews = (self._deciding.threads, self._following.threads)
        for threads in crews:
            threads.shutdown(cancel_futures=True)
        for threads in crews:  # the store is not taken away under those who are at work on it
            threads.join(seconds / len(crews))
        self._curator.close()


class _AllBusy(Exception):
    """All threads are at work on what was given up."""


class _Crew:
    """Threads that are asked, and how many of them overstay."""

    def __init__(self, count: int, name: str) -> None:
        self.threads = Threads(count, name)
        self._count = count
        self._overstayed = 0

    async def asked(
        self, seconds: float, work: Callable[P, T], *args: P.args, **named: P.kwargs
    ) -> "asyncio.Future[T]":
        """What came of it, when it is done. Raises TimeoutError, and _AllBusy where there is nobody to ask."""
        if self._overstayed >= self._count:
            raise _AllBusy
        future = self.threads.submit(work, *args, **named)
        waiting = asyncio.wrap_future(future)
        try:
            await asyncio.wait([waiting], timeout=seconds)
        finally:  # also where the client hung up
            if not waiting.done():
                waiting.cancel()
                self._give_up(future)
        if waiting.cancelled():
            raise TimeoutError
        return waiting

    def _give_up(self, future: "Future[T]") -> None:
        if future.cancel():
            return
        loop = asyncio.get_running_loop()
        self._overstayed += 1

        def back(_: object) -> None:
            with contextlib.suppress(RuntimeError):  # the loop may have ended in the meantime
                loop.call_soon_threadsafe(self._came_back)

        future.add_done_callback(back)

    def _came_back(self) -> None:
        self._overstayed -= 1


def _judged(asked: Asked, done: "asyncio.Future[Curated]") -> Decision:
    failure = done.exception()
    if isinstance(failure, BadInput):
        return Decision(Curated(asked.body), "unreadable", str(failure))
    if failure is not None:
        # words that are not ours may quote the body, which no log and no page may hold
        words = f": {failure}" if isinstance(failure, PageinError) else ""
        return Decision(Curated(asked.body), "engine", type(failure).__name__ + words)
    curated = done.result()
    if not curated.body:
        return Decision(Curated(asked.body), "invalid", "the decision holds no request")
    if curated.failure:
        return Decision(curated, "engine", curated.failure)
    return Decision(curated)
