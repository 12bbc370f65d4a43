"""The engine as the gateway sees it, and the care that no failure of it reaches the client (law 7)."""

import asyncio
import contextlib
from concurrent.futures import Future
from dataclasses import dataclass, field
from functools import partial
from typing import Final, Literal, Protocol, TypeAlias, TypeVar

from pagein.engine.send.claim import DecisionClaim
from pagein.engine.send.recall_exchanges import RecallExchange
from pagein.errors import BadInput, PageinError
from pagein.gateway.curation.session_hints import Hint
from pagein.gateway.curation.worker_crew import PATIENCE, AllBusy, Crew
from pagein.gateway.http.threads import Threads
from pagein.gateway.stream.model_turns import OwnCall, OwnToolResult
from pagein.gateway.stream.reply_reader import ModelReply
from pagein.model.messages import Usage
from pagein.providers.validity.rules import Api

Failure: TypeAlias = Literal["budget", "busy", "engine", "invalid", "unreadable"]

T = TypeVar("T")

_MOST_TOLD: Final = 1_000
"""Answers that may wait to be taken in."""
_FIRST_PAUSE, _LONGEST_PAUSE = 1.0, 60.0
"""Seconds until what the journals are owed is tried again: at first, and at most."""


@dataclass(frozen=True, slots=True)
class CurationRequest:
    """One model call as the client sent it.

    at: seconds since 1970. hint: what its headers say about its session. context: headers that the provider's cache depends on.
    lasting: what a request may cost that keeps its window alive through a pause, BIT; 0: there will be none.
    claim: by which the decision is given up when it comes too late.
    """

    body: bytes
    api: Api
    hint: Hint | None
    at: float
    context: str = ""
    lasting: float = 0.0
    claim: DecisionClaim = field(default_factory=DecisionClaim, compare=False)


@dataclass(frozen=True, slots=True)
class CuratedRequest:
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
class KeepAlivePlan:
    """When a window is to be kept alive, and at what price in BIT. kept, spent: how often its branch was so far, and what that cost."""

    at: float
    price: float
    kept: int = 0
    spent: float = 0.0


@dataclass(frozen=True, slots=True)
class UsageAccount:
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
    keep: KeepAlivePlan | None = None


NOTHING_NOTED: Final = UsageAccount()


class Curator(Protocol):
    """What decides on requests. Called from several threads at once; it does not know of HTTP."""

    def prepare(self, asked: CurationRequest) -> CuratedRequest:
        """The request as it should go out. Raises BadInput for a body that no provider would read.

        Takes the claim of `asked` before it keeps what was decided, and keeps nothing where that was given up.
        """

    def forward(self, asked: CurationRequest) -> CuratedRequest:
        """The request to send where `prepare` failed or came too late: as its conversation was sent last, with the client's news behind
        it, where that can be had without waiting; else as the client sent it. Raises nothing.
        """

    def observe(self, curated: CuratedRequest, reply: ModelReply, at: float) -> UsageAccount:
        """Take in the answer to a request that was sent as `curated`."""

    def recall(self, curated: CuratedRequest, call: OwnCall) -> OwnToolResult:
        """Answer a call of a tool of ours. Raises nothing that a model could have caused."""

    def splice_answer(self, curated: CuratedRequest, exchange: RecallExchange) -> str:
        """What the client will see as one answer stands for these turns. Returns why that could not be kept, "" where it was."""

    def note_keepalive(self, curated: CuratedRequest, usage: Usage, at: float) -> float | None:
        """The window of a request was kept alive at this time. What that cost, BIT; None where it cannot be said."""

    def unchanged_request(self, asked: CurationRequest) -> bytes:
        """The bytes to send where nothing is decided: the client's own, but for what only stood with what we decided before."""

    def settle(self) -> bool:
        """Keep what could not be kept when it was told. Whether nothing of that is left. Raises nothing."""

    def close(self) -> None:
        """Let go of everything."""


class PassThrough:
    """Decides nothing."""

    def prepare(self, asked: CurationRequest) -> CuratedRequest:
        """The request as it came."""
        return CuratedRequest(asked.body, asked.hint.key if asked.hint is not None else "")

    def forward(self, asked: CurationRequest) -> CuratedRequest:
        """The request as it came."""
        return CuratedRequest(asked.body)

    def observe(self, curated: CuratedRequest, reply: ModelReply, at: float) -> UsageAccount:
        """Nothing is learned."""
        del curated, reply, at
        return NOTHING_NOTED

    def recall(self, curated: CuratedRequest, call: OwnCall) -> OwnToolResult:
        """Nothing was offered."""
        del curated
        return OwnToolResult(call, "There is nothing to recall.", is_error=True)

    def splice_answer(self, curated: CuratedRequest, exchange: RecallExchange) -> str:
        """Nothing is kept."""
        del curated, exchange
        return "nothing is kept"

    def note_keepalive(self, curated: CuratedRequest, usage: Usage, at: float) -> float | None:
        """Nothing was asked for."""
        del curated, usage, at
        return None

    def unchanged_request(self, asked: CurationRequest) -> bytes:
        """The request as it came."""
        return asked.body

    def settle(self) -> bool:
        """Nothing is kept."""
        return True

    def close(self) -> None:
        """There is nothing to let go of."""


@dataclass(frozen=True, slots=True)
class CurationDecision:
    """What goes out. kind: what failed, None for nothing; why: in words for the log."""

    curated: CuratedRequest
    kind: Failure | None = None
    why: str = ""


class Guard:
    """Asks a curator from worker threads, for so long and no longer.

    A thread that overstays cannot be ended. As long as all of them do, nobody waits for them. A decision's time begins when a thread
    begins with it. Decisions have threads of their own, so that nothing that comes after an answer holds one up; and so has what goes out
    in place of a decision.
    """

    def __init__(self, curator: Curator, budget: float, threads: int = 8) -> None:
        self._curator = curator
        self._budget = budget
        self._deciding = Crew(threads, "pagein-curate")
        self._forwarding = Crew(threads, "pagein-forward")
        self._following = Crew(threads, "pagein-follow")
        self._settling: asyncio.Task[None] | None = None
        self._told = 0  # answers that are being taken in
        self._closing: Future[None] | None = None

    async def decide(self, asked: CurationRequest) -> CurationDecision:
        """What to send for this request: the curator's answer; where that fails or comes too late, what was sent last with the client's
        news behind it. Never raises.
        """
        work = partial(self._curator.prepare, asked)
        try:
            done = await self._deciding.ask(self._budget, work, asked.claim.give_up)
        except TimeoutError:
            return await self._forward(asked, "budget", f"no decision within {self._budget:g} s")
        except AllBusy:
            return await self._forward(asked, "busy", "all threads are at work on requests that were given up")
        kind, why = _failure(done)
        if kind == "unreadable":
            return CurationDecision(CuratedRequest(asked.body), kind, why)
        if done.exception() is not None or kind == "invalid":
            return await self._forward(asked, kind or "engine", why)
        return CurationDecision(done.result(), kind, why)  # where it failed in part, it says itself what is to go out

    async def _forward(self, asked: CurationRequest, kind: Failure, why: str) -> CurationDecision:
        """What goes out in place of a decision; the client's own bytes where even that is not told in time."""
        asked.claim.give_up()
        try:
            made = (await self._forwarding.ask(PATIENCE, partial(self._curator.forward, asked))).result()
        except Exception:  # noqa: BLE001 -- law 7
            made = CuratedRequest(asked.body)
        return CurationDecision(made if made.body else CuratedRequest(asked.body), kind, why)

    async def unchanged_request(self, asked: CurationRequest) -> bytes:
        """What to send where nothing is decided; the client's own bytes where that is not told in time. Never raises."""
        try:
            return (await self._following.ask(self._budget, partial(self._curator.unchanged_request, asked))).result()
        except Exception:  # noqa: BLE001 -- law 7
            return asked.body

    async def observe(self, curated: CuratedRequest, reply: ModelReply, at: float) -> UsageAccount:
        """Tell the curator of an answer. Raises whatever it raises, and TimeoutError where that takes long: it is told all the same."""
        if self._told >= _MOST_TOLD:
            raise AllBusy
        self._told += 1
        future = self._following.threads.submit(self._curator.observe, curated, reply, at)
        loop = asyncio.get_running_loop()

        def over(_: object) -> None:
            with contextlib.suppress(RuntimeError):  # the loop may have ended in the meantime
                loop.call_soon_threadsafe(self._note_observation)

        future.add_done_callback(over)
        waiting = asyncio.wrap_future(future)
        # who stops waiting for it does not keep it from being told
        return await asyncio.wait_for(asyncio.shield(waiting), PATIENCE)

    def _note_observation(self) -> None:
        """An answer was taken in. What of it could not be kept is tried again until it is."""
        self._told -= 1
        if self._closing is None and (self._settling is None or self._settling.done()):
            self._settling = asyncio.get_running_loop().create_task(self._settled())

    async def _settled(self) -> None:
        pause = _FIRST_PAUSE
        with contextlib.suppress(RuntimeError):  # the threads were told to end
            while not await self._is_settled():
                await asyncio.sleep(pause)
                pause = min(2 * pause, _LONGEST_PAUSE)

    async def _is_settled(self) -> bool:
        try:
            return (await self._following.ask(PATIENCE, self._curator.settle)).result()
        except (TimeoutError, AllBusy):
            return False

    async def recall(self, curated: CuratedRequest, call: OwnCall) -> OwnToolResult:
        """The answer to a call of ours; one that says so where it cannot be had. Never raises."""
        try:
            return (await self._following.ask(PATIENCE, partial(self._curator.recall, curated, call))).result()
        except Exception as problem:  # noqa: BLE001 -- law 7: the model is told, and goes on
            return OwnToolResult(call, f"This cannot be recalled now ({type(problem).__name__}).", is_error=True)

    async def splice_answer(self, curated: CuratedRequest, exchange: RecallExchange) -> str:
        """Why it could not be kept that an answer stands for several turns, "" where it was. Never raises."""
        try:
            return (
                await self._following.ask(PATIENCE, partial(self._curator.splice_answer, curated, exchange))
            ).result()
        except Exception as problem:  # noqa: BLE001 -- law 7
            return type(problem).__name__

    async def note_keepalive(self, curated: CuratedRequest, usage: Usage, at: float) -> float | None:
        """Tell the curator that a window was kept alive. Raises whatever it raises, and TimeoutError."""
        return (await self._following.ask(PATIENCE, partial(self._curator.note_keepalive, curated, usage, at))).result()

    async def close(self, seconds: float) -> None:
        """Let go of curator and threads, which get so long to come to their end. One that hangs is left behind."""
        if self._closing is None:
            if self._settling is not None:
                self._settling.cancel()
            last = Threads(1, "pagein-close")
            self._closing = last.submit(self._close, seconds / 2)
            last.shutdown()
        await asyncio.wait([closing := asyncio.wrap_future(self._closing)], timeout=seconds)
        if closing.done():
            closing.result()

    def _close(self, seconds: float) -> None:
        crews = (self._deciding.threads, self._forwarding.threads, self._following.threads)
        for threads in crews:  # answers that wait to be taken in are
            threads.shutdown(cancel_futures=threads is not self._following.threads)
        for threads in crews:  # the store is not taken away under those who are at work on it
            threads.join(seconds / len(crews))
        self._curator.close()


def _failure(done: "asyncio.Future[CuratedRequest]") -> tuple[Failure | None, str]:
    """What failed in a decision, None for nothing; and why."""
    failure = done.exception()
    if isinstance(failure, BadInput):
        return "unreadable", str(failure)
    if failure is not None:
        # words that are not ours may quote the body, which no log and no page may hold
        words = f": {failure}" if isinstance(failure, PageinError) else ""
        return "engine", type(failure).__name__ + words
    curated = done.result()
    if not curated.body:
        return "invalid", "the decision holds no request"
    return ("engine", curated.failure) if curated.failure else (None, "")
