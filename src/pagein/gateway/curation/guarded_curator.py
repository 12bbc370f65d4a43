"""The curator interface, and a guard that keeps failed and late decisions away from the client (law 7)."""

import asyncio
import contextlib
import time
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass, field
from functools import partial
from typing import Final, Literal, Protocol, TypeAlias, TypeVar

from pagein.engine.cache.cache_ttl import KeepAlivePlan
from pagein.engine.prepared_request import PreparedRequest
from pagein.engine.send.recall_exchanges import RecallExchange
from pagein.engine.send.request_call import DecisionClaim
from pagein.errors import BadInput, PageinError
from pagein.gateway.curation.session_hints import Hint
from pagein.gateway.curation.worker_crew import PATIENCE, AllBusy, Crew
from pagein.gateway.http.threads import Threads
from pagein.model.messages import Usage
from pagein.providers.validity import Api
from pagein.providers.wire.streams.model_reply import ModelReply
from pagein.providers.wire.streams.model_turn import OwnCall, OwnToolResult

Failure: TypeAlias = Literal["budget", "busy", "engine", "invalid", "unreadable"]

T = TypeVar("T")

_MOST_TOLD: Final = 1_000
"""Maximum number of answers waiting to be observed."""
_FIRST_PAUSE, _LONGEST_PAUSE = 1.0, 60.0
"""Seconds until pending journal entries are retried: first and maximum pause."""


@dataclass(frozen=True, slots=True)
class CurationRequest:
    """A model call as sent by the client.

    at: seconds since 1970
    hint: the session named by its headers
    context: headers relevant to the provider's cache
    lasting: cost limit of a keep-alive request for its window, in BIT; 0 for no keep-alive, None to leave the cache TTLs to the client
    documented: whether the upstream documents how long it keeps cache entries
    claim: revokes a decision that comes too late
    model: the model's name, if the path of the request has it
    is_near: whether the client runs on this machine
    children: whether the model may ask child models on the client's account
    curates: False if an extension of pagein in the client decides on the window, so that the gateway only measures and marks
    """

    body: bytes
    api: Api
    hint: Hint | None
    at: float
    context: str = ""
    lasting: float | None = None
    documented: bool = False
    claim: DecisionClaim = field(default_factory=DecisionClaim, compare=False)
    model: str = ""
    is_near: bool = False
    children: bool = False
    curates: bool = True


@dataclass(frozen=True, slots=True)
class CuratedRequest:
    """The bytes to send, with the decision about them.

    session: name of the resolved session
    failure: the failure, "" for none; after a failure `body` is the fallback of law 7
    epoch: reason of an epoch opened with this request, "" for none
    foreign: changes by the client in its own prefix
    replaced: number of results sent as stubs, previews or markers
    saved: characters removed from the request
    crowded: the window is nearly full after every possible eviction, and the client should compact
    tools: names of offered recall tools, whose calls the gateway answers
    conversation: identity shared by consecutive requests, "" for a request without a successor
    prepared: the engine's request, for later calls; None if the engine prepared none
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
    prepared: PreparedRequest | None = None


@dataclass(frozen=True, slots=True)
class UsageAccount:
    """Evaluation of an answer's usage, with costs in BIT; None for unknown.

    cost: cost of the call
    saved: cost of the call without pagein, minus its actual cost
    shortfall: tokens expected in the cache but not read from it
    explanation: reason of the shortfall, in a sentence
    cause, who: the reason as a word, and the responsible party; "" without shortfall
    failure: why the usage was not fully recorded, "" if it was
    keep: plan for keeping the window alive, or None
    news: news about the provider's cache, in a sentence; "" for none
    """

    cost: float | None = None
    saved: float | None = None
    shortfall: int = 0
    explanation: str = ""
    cause: str = ""
    who: str = ""
    failure: str = ""
    keep: KeepAlivePlan | None = None
    news: str = ""


NOTHING_NOTED: Final = UsageAccount()


class Curator(Protocol):
    """Decides on requests. Called from several threads at once; independent of HTTP."""

    def prepare(self, asked: CurationRequest) -> CuratedRequest:
        """Return the request to send. Raises BadInput for a body that providers would refuse to parse.

        Takes the claim of `asked` before storing the decision, and stores nothing if the claim was revoked.
        """

    def forward(self, asked: CurationRequest) -> CuratedRequest:
        """Return the fallback request, after `prepare` failed or came too late. Raises no exception.

        The fallback is the conversation as last sent, with new messages appended, if available without waiting;
        otherwise the client's bytes.
        """

    def observe(self, curated: CuratedRequest, reply: ModelReply) -> UsageAccount:
        """Record the answer to a request sent as `curated`."""

    def recall(self, curated: CuratedRequest, call: OwnCall) -> OwnToolResult:
        """Answer a call of a recall tool. Raises no exception that a model could cause."""

    def splice_answer(self, curated: CuratedRequest, exchange: RecallExchange) -> str:
        """Record the turns behind a single answer seen by the client. Return why recording failed, "" if successful."""

    def note_keepalive(self, curated: CuratedRequest, usage: Usage, at: float) -> float | None:
        """Record a keep-alive request sent at this time. Return its cost in BIT, or None if unknown."""

    def unchanged_request(self, asked: CurationRequest) -> bytes:
        """Return the bytes to send without a decision.

        The client's own bytes, minus parts valid only with earlier decisions.
        """

    def settle(self) -> bool:
        """Store entries that could not be stored before. Return whether nothing is pending. Raises no exception."""

    def close(self) -> None:
        """Release every resource."""


class PassThrough:
    """A curator without decisions."""

    def prepare(self, asked: CurationRequest) -> CuratedRequest:
        """Return the request unchanged."""
        return CuratedRequest(asked.body, asked.hint.key if asked.hint is not None else "")

    def forward(self, asked: CurationRequest) -> CuratedRequest:
        """Return the request unchanged."""
        return CuratedRequest(asked.body)

    def observe(self, curated: CuratedRequest, reply: ModelReply) -> UsageAccount:
        """Ignore the answer."""
        del curated, reply
        return NOTHING_NOTED

    def recall(self, curated: CuratedRequest, call: OwnCall) -> OwnToolResult:
        """Return an error: no recall tools were offered."""
        del curated
        return OwnToolResult(call, "There is nothing to recall.", is_error=True)

    def splice_answer(self, curated: CuratedRequest, exchange: RecallExchange) -> str:
        """Return a failure: nothing is stored."""
        del curated, exchange
        return "nothing is kept"

    def note_keepalive(self, curated: CuratedRequest, usage: Usage, at: float) -> float | None:
        """Return None: no keep-alive request was planned."""
        del curated, usage, at
        return None

    def unchanged_request(self, asked: CurationRequest) -> bytes:
        """Return the request unchanged."""
        return asked.body

    def settle(self) -> bool:
        """Return True: nothing is pending."""
        return True

    def close(self) -> None:
        """Do nothing."""


@dataclass(frozen=True, slots=True)
class CurationDecision:
    """A request to send, with the failure of its decision.

    kind: kind of the failure, or None
    why: the failure in words, for the log
    """

    curated: CuratedRequest
    kind: Failure | None = None
    why: str = ""


class Guard:
    """Asks a curator from worker threads, within a time limit.

    A thread that exceeds its time cannot be stopped. When every thread does, no caller waits any longer. A decision's
    time begins when a thread starts it. Decisions have separate threads, so that work after an answer never delays a
    decision; and so do fallback requests.
    """

    def __init__(self, curator: Curator, budget: float, threads: int = 8) -> None:
        self._curator = curator
        self._budget = budget
        self._deciding = Crew(threads, "pagein-curate")
        self._forwarding = Crew(threads, "pagein-forward")
        self._following = Crew(threads, "pagein-follow")
        self._settling: asyncio.Task[None] | None = None
        self._told = 0  # answers that are being taken in
        self._stopped: float | None = None
        self._closing: Future[None] | None = None

    async def decide(self, asked: CurationRequest) -> CurationDecision:
        """Return the curator's decision for this request, or the fallback if the decision fails or comes too late.
        Never raises.
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
        # after a partial failure, the result itself contains the bytes to send
        return CurationDecision(done.result(), kind, why)

    async def _forward(self, asked: CurationRequest, kind: Failure, why: str) -> CurationDecision:
        """Return the fallback request; the client's own bytes if the fallback is late, too."""
        asked.claim.give_up()
        try:
            made = (await self._forwarding.ask(PATIENCE, partial(self._curator.forward, asked))).result()
        except Exception:  # noqa: BLE001 -- law 7
            made = CuratedRequest(asked.body)
        return CurationDecision(made if made.body else CuratedRequest(asked.body), kind, why)

    async def unchanged_request(self, asked: CurationRequest) -> bytes:
        """Return the bytes to send without a decision; the client's own bytes if late. Never raises."""
        try:
            return await self._follow(partial(self._curator.unchanged_request, asked), self._budget)
        except Exception:  # noqa: BLE001 -- law 7
            return asked.body

    async def observe(self, curated: CuratedRequest, reply: ModelReply) -> UsageAccount:
        """Report an answer to the curator.

        Raises any exception of the curator, and TimeoutError if slow; the report continues nevertheless.
        """
        if self._told >= _MOST_TOLD:
            raise AllBusy
        self._told += 1
        future = self._following.threads.submit(self._curator.observe, curated, reply)
        loop = asyncio.get_running_loop()

        def over(_: object) -> None:
            with contextlib.suppress(RuntimeError):  # the loop may have ended in the meantime
                loop.call_soon_threadsafe(self._note_observation)

        future.add_done_callback(over)
        waiting = asyncio.wrap_future(future)
        # cancelling the wait does not cancel the report
        return await asyncio.wait_for(asyncio.shield(waiting), PATIENCE)

    def _note_observation(self) -> None:
        """Count a recorded answer, and start storing pending entries."""
        self._told -= 1
        if self._closing is None and (self._settling is None or self._settling.done()):
            self._settling = asyncio.get_running_loop().create_task(self._settle_backlog())

    async def _settle_backlog(self) -> None:
        pause = _FIRST_PAUSE
        with contextlib.suppress(RuntimeError):  # the threads are shut down
            while not await self._is_settled():
                await asyncio.sleep(pause)
                pause = min(2 * pause, _LONGEST_PAUSE)

    async def _is_settled(self) -> bool:
        try:
            is_settled = await self._follow(self._curator.settle)
        except (TimeoutError, AllBusy):
            is_settled = False
        if is_settled:
            self._stopped = None
        elif self._stopped is None:
            self._stopped = time.monotonic()
        return is_settled

    @property
    def unstored(self) -> float:
        """Seconds since the store began to fail; 0.0 while calls are stored."""
        return 0.0 if self._stopped is None else time.monotonic() - self._stopped

    async def recall(self, curated: CuratedRequest, call: OwnCall) -> OwnToolResult:
        """Answer a call of a recall tool; with an error result after a failure. Never raises."""
        try:
            return await self._follow(partial(self._curator.recall, curated, call))
        except Exception as problem:  # noqa: BLE001 -- law 7: the model gets an error result, and continues
            return OwnToolResult(call, f"This cannot be recalled now ({type(problem).__name__}).", is_error=True)

    async def splice_answer(self, curated: CuratedRequest, exchange: RecallExchange) -> str:
        """Record the turns behind an answer. Return why recording failed, "" if successful. Never raises."""
        try:
            return await self._follow(partial(self._curator.splice_answer, curated, exchange))
        except Exception as problem:  # noqa: BLE001 -- law 7
            return type(problem).__name__

    async def note_keepalive(self, curated: CuratedRequest, usage: Usage, at: float) -> float | None:
        """Report a keep-alive request to the curator. Raises any exception of the curator, and TimeoutError."""
        return await self._follow(partial(self._curator.note_keepalive, curated, usage, at))

    async def _follow(self, work: Callable[[], T], seconds: float = PATIENCE) -> T:
        """Return the result of work beside the decisions. Raises its exception, TimeoutError and AllBusy."""
        return (await self._following.ask(seconds, work)).result()

    async def close(self, seconds: float) -> None:
        """Close curator and threads within this time, in seconds. A hanging thread is abandoned."""
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
        for threads in crews:  # waiting observations are completed
            threads.shutdown(cancel_futures=threads is not self._following.threads)
        for threads in crews:  # the store stays open while threads use it
            threads.join(seconds / len(crews))
        self._curator.close()


def _failure(done: "asyncio.Future[CuratedRequest]") -> tuple[Failure | None, str]:
    """Return kind and reason of a decision's failure; None as kind for a success."""
    failure = done.exception()
    if isinstance(failure, BadInput):
        return "unreadable", str(failure)
    if failure is not None:
        # foreign messages may quote the body, which must appear neither in logs nor on pages
        words = f": {failure}" if isinstance(failure, PageinError) else ""
        return "engine", type(failure).__name__ + words
    curated = done.result()
    if not curated.body:
        return "invalid", "the decision holds no request"
    return ("engine", curated.failure) if curated.failure else (None, "")
