"""Calls to a child model: within the budget, again after a failure that may pass, streaming where a plain call is unsupported.

Rules of this file
------------------
1. A call, also a retry, is made only if the budget covers its highest possible cost.
2. Retries wait as long as the provider asks, else longer each time, with jitter. Waiting is cancelled like any other step.
3. A refused call costs nothing. A cancelled or interrupted call costs the reserved amount each time: the provider may bill it.
"""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from pagein.delegation.budget import Budget
from pagein.errors import BrokenConnection, ChildModelError, OverloadedProvider, UnsupportedCall
from pagein.policy.delegation.child_costs import NOTHING, CallCost, highest_cost, usage_cost
from pagein.ports import ChildAnswer, ChildModel, ChildRequest

if TYPE_CHECKING:
    from tenacity import RetryCallState


class OutOfBudget(Exception):
    """The budget does not cover the next call. The message says which limit."""


@dataclass(frozen=True, slots=True)
class Retries:
    """How often and after how long a failed call is repeated.

    attempts: calls at most, the first included. first: seconds before the second. longest: most seconds between two, unless the
    provider asks for more.
    """

    attempts: int = 4
    first: float = 1.0
    longest: float = 30.0


USUAL_RETRIES: Final = Retries()


class ChildModelCalls:
    """The model calls of an operation. Used from a single event loop.

    spend: receives the cost of each call.
    """

    def __init__(
        self, model: ChildModel, budget: Budget, retries: Retries, spend: Callable[[CallCost], None] = lambda _: None
    ) -> None:
        self._model = model
        self._budget = budget
        self._retries = retries
        self._spend = spend
        self._streamed: set[str] = set()

    async def complete(
        self,
        request: ChildRequest,
        prompt_tokens: int,
        tell: Callable[[str], None] = lambda _: None,
        spend: Callable[[CallCost], None] = lambda _: None,
    ) -> ChildAnswer:
        """Return the answer. Raises OutOfBudget and ChildModelError.

        prompt_tokens: estimate of the prompt. tell: receives what is waited for, in words. spend: receives the cost of each
        attempt, also if there is no answer.
        """
        reserved = highest_cost(request.model, prompt_tokens, request.max_output)
        failed: list[ChildModelError] = []

        async def attempt() -> ChildAnswer:
            spent = self._budget.reserve(reserved)
            if spent is not None:
                raise OutOfBudget("; ".join((spent.why, *(f"the call before failed: {one}" for one in failed[-1:]))))
            cost = reserved
            try:
                answer = await self._once(request)
                cost = _cost(request, answer, reserved)
            except ChildModelError as problem:
                failed.append(problem)
                cost = reserved if isinstance(problem, BrokenConnection) and problem.was_sent else NOTHING
                raise
            finally:
                self._budget.settle(reserved, cost)
                self._spend(cost)
                spend(cost)
            return answer

        return await self._again_and_again(attempt, tell)

    async def _again_and_again(
        self, attempt: Callable[[], Awaitable[ChildAnswer]], tell: Callable[[str], None]
    ) -> ChildAnswer:
        from tenacity import AsyncRetrying, retry_if_exception_type

        def is_over(state: "RetryCallState") -> bool:
            asked = _asked_wait(state)
            return state.attempt_number >= self._retries.attempts or (
                asked is not None and asked > self._budget.child_seconds
            )

        def note(state: "RetryCallState") -> None:
            wait = 0.0 if state.next_action is None else state.next_action.sleep
            tell(f"waits {wait:.1f} s before call {state.attempt_number + 1}")

        retrying = AsyncRetrying(
            sleep=asyncio.sleep,
            stop=is_over,
            wait=self._wait,
            retry=retry_if_exception_type((OverloadedProvider, BrokenConnection)),
            before_sleep=note,
            reraise=True,
        )
        return await retrying(attempt)

    async def _once(self, request: ChildRequest) -> ChildAnswer:
        if request.model in self._streamed:
            return await self._model.complete(replace(request, stream=True))
        try:
            return await self._model.complete(request)
        except UnsupportedCall:
            answer = await self._model.complete(replace(request, stream=True))
            self._streamed.add(request.model)
            return answer

    def _wait(self, state: "RetryCallState") -> float:
        from tenacity import wait_exponential_jitter, wait_random

        first = self._retries.first
        asked = _asked_wait(state)
        if asked is not None:
            return asked + wait_random(0, first)(state)
        return wait_exponential_jitter(initial=first, max=self._retries.longest, jitter=first)(state)


def _asked_wait(state: "RetryCallState") -> float | None:
    """Return the provider's Retry-After in seconds, or None."""
    problem = None if state.outcome is None else state.outcome.exception()
    if not isinstance(problem, OverloadedProvider) or problem.retry_after is None:
        return None
    return max(0.0, problem.retry_after)


def _cost(request: ChildRequest, answer: ChildAnswer, reserved: CallCost) -> CallCost:
    if answer.usage is None:
        return reserved
    told = usage_cost(answer.model or request.model, answer.usage)
    return told if told.usd is not None else usage_cost(request.model, answer.usage)
