"""A curator for programs that wait: a time limit for the engine's part of a call, and no error of its own (law 7).

Rules of this file
------------------
1. The engine works in threads of its own. A thread that exceeds its time cannot be stopped; nobody waits for it any longer.
2. When every thread of a kind exceeds its time, no call waits at all.
3. A failure is logged under the name `pagein.adapters`, without content of the call. Nothing is printed unless the program
   asks for it.
4. After a fork, the child's calls are sent unchanged: the threads and the store's connection belong to the parent.
"""

import logging
import os
from collections.abc import Callable
from concurrent.futures import Future
from functools import partial
from typing import Final, TypeVar

from pagein.engine.send.recall_exchanges import RecallExchange
from pagein.engine.send.request_call import GivenUp
from pagein.errors import BadInput, PageinError
from pagein.gateway.curation.guarded_curator import CuratedRequest, CurationRequest, Curator
from pagein.gateway.curation.worker_crew import PATIENCE
from pagein.gateway.http.threads import Threads
from pagein.gateway.settings import GatewaySettings
from pagein.providers.wire.streams.model_reply import ModelReply
from pagein.providers.wire.streams.model_turn import OwnCall, OwnToolResult

T = TypeVar("T")

BUDGET: Final = GatewaySettings().budget
"""Seconds for the decision on a request, as in the gateway."""
_SHORT: Final = 0.5
"""Seconds that a call waits for a fallback request, and for its answer to be recorded."""
_THREADS: Final = 8
_LOGGER: Final = logging.getLogger("pagein.adapters")
_LOGGER.addHandler(logging.NullHandler())


class _WorkThreads:
    """Threads of one kind of work."""

    def __init__(self, name: str) -> None:
        self.threads = Threads(_THREADS, name)
        self._late: set[Future[object]] = set()

    def ask(self, seconds: float, work: Callable[[], T], leave: Callable[[], bool] | None = None) -> T:
        """Return the work's result, or raise its error.

        leave: called at the time limit; False means the end is near, and is awaited.

        Raises TimeoutError at the time limit, and at once if every thread is at work on what nobody waits for.
        """
        if len(self._late) >= _THREADS:
            raise TimeoutError
        future = self.threads.submit(work)
        try:
            return future.result(seconds)
        except TimeoutError:
            if future.done():  # the work itself raised it
                raise
            if leave is not None and not leave():
                return future.result(PATIENCE)
            raise
        finally:
            if not future.done() and not future.cancel():
                self._late.add(future)  # type: ignore[arg-type]
                future.add_done_callback(self._late.discard)


class BoundedCurator:
    """Asks a curator from threads, within a time limit. Its methods block, and raise nothing.

    is_owner: whether the curator, and with it the engine, is closed together with this one.
    budget: seconds for a decision.
    """

    def __init__(self, curator: Curator, *, is_owner: bool, budget: float = BUDGET) -> None:
        self._curator = curator
        self._is_owner = is_owner
        self._budget = budget
        self._process = os.getpid()
        self._deciding = _WorkThreads("pagein-decide")
        self._forwarding = _WorkThreads("pagein-send-on")
        self._following = _WorkThreads("pagein-record")

    def is_forked(self) -> bool:
        """Return whether this process is a fork of the engine's own process."""
        return os.getpid() != self._process

    def prepare(self, asked: CurationRequest) -> CuratedRequest:
        """Return the request to send: as decided, or the fallback if the decision fails or comes too late."""
        try:
            curated = self._deciding.ask(self._budget, partial(self._curator.prepare, asked), asked.claim.give_up)
        except BadInput:  # the provider says what is wrong with it
            return CuratedRequest(asked.body)
        except (TimeoutError, GivenUp):
            return self._forward(asked, f"no decision within {self._budget:g} s")
        except Exception as problem:  # noqa: BLE001 -- law 7
            return self._forward(asked, _words(problem))
        if curated.failure:
            _report("a decision", curated.failure)
        return curated if curated.body else self._forward(asked, "the decision holds no request")

    def _forward(self, asked: CurationRequest, why: str) -> CuratedRequest:
        asked.claim.give_up()
        _report("a decision", why)
        try:
            made = self._forwarding.ask(_SHORT, partial(self._curator.forward, asked))
        except Exception:  # noqa: BLE001 -- law 7
            made = CuratedRequest(asked.body)
        return made if made.body else CuratedRequest(asked.body)

    def observe(self, curated: CuratedRequest, reply: ModelReply) -> None:
        """Record an answer. A slow record is completed later."""
        try:
            account = self._following.ask(_SHORT, partial(self._curator.observe, curated, reply))
        except Exception as problem:  # noqa: BLE001 -- law 7: the program has its answer
            _report("the record of an answer", _words(problem))
            return
        if account.failure:
            _report("the record of an answer", account.failure)

    def recall(self, curated: CuratedRequest, call: OwnCall) -> OwnToolResult:
        """Answer a call of a recall tool; with an error result after a failure."""
        try:
            return self._following.ask(PATIENCE, partial(self._curator.recall, curated, call))
        except Exception as problem:  # noqa: BLE001 -- law 7: the model gets an error result, and goes on
            _report("a recall", _words(problem))
            return OwnToolResult(call, f"This cannot be recalled now ({type(problem).__name__}).", is_error=True)

    def splice_answer(self, curated: CuratedRequest, exchange: RecallExchange) -> None:
        """Record the turns behind a single answer."""
        try:
            failure = self._following.ask(PATIENCE, partial(self._curator.splice_answer, curated, exchange))
        except Exception as problem:  # noqa: BLE001 -- law 7
            failure = _words(problem)
        if failure:
            _report("the record of a recall", failure)

    def close(self) -> None:
        """Let answers be recorded, end the threads, and close the curator if it is owned. Does nothing in a forked child."""
        if self.is_forked():
            return
        for crew in (self._deciding, self._forwarding, self._following):
            crew.threads.shutdown(cancel_futures=crew is not self._following)
        self._following.threads.join(self._budget)
        if self._is_owner:
            try:
                self._curator.close()
            except Exception as problem:  # noqa: BLE001 -- law 7
                _report("the end of the store", _words(problem))


def _words(problem: BaseException) -> str:
    # foreign messages may quote the body, which must not appear in logs
    return type(problem).__name__ + (f": {problem}" if isinstance(problem, PageinError) else "")


def _report(what: str, why: str) -> None:
    _LOGGER.warning("%s failed, and the call went on without it: %s", what, why)
