"""Let the children of an operation share the beginning of their prompts in the provider's cache.

Rules of this file
------------------
1. The plan is made once, at the first call: `policy.delegation.shared_prefix`. It holds for all children of the operation.
2. Where waiting pays, the first child goes ahead, and the others wait for its first answer or its failure, but never
   longer than `LONGEST_WAIT`.
3. A child that goes on behind tool calls marks the end of its own content, too: writing it costs a quarter of reading it
   anew, and each further turn then saves nine tenths. It pays if one child in four goes on again.
"""

import asyncio
import json
from dataclasses import replace
from typing import Final

from pagein.policy.delegation.shared_prefix import PrefixPlan, SharedPrefix, plan_prefix
from pagein.ports import ChildAnswer, ChildModel, ChildRequest, PrefixMark
from pagein.providers.tokens.counters import counter_for

LONGEST_WAIT: Final = 30.0
"""Seconds that children wait for the first one at most."""


class PrefixSharing:
    """The child models of one operation, sharing a prefix. Implements `ChildModel`.

    children: that will be asked; may be set until the first call. concurrency: how many at once.
    wait: seconds that children wait for the first one at most.
    """

    def __init__(
        self,
        models: ChildModel,
        *,
        children: int,
        concurrency: int,
        wait: float = LONGEST_WAIT,
    ) -> None:
        self._models = models
        self.children = children
        self._concurrency = concurrency
        self._wait = wait
        self._first = asyncio.Event()
        self._has_begun = False
        self.plan: PrefixPlan | None = None

    @property
    def default_model(self) -> str:
        """As of the models behind."""
        return self._models.default_model

    def knows(self, model: str, /) -> bool:
        """As of the models behind."""
        return self._models.knows(model)

    async def complete(self, request: ChildRequest, /) -> ChildAnswer:
        """Call the model once, with the marks of the plan."""
        if self.plan is None:
            self.plan = self._plan(request)
        marked = replace(request, marks=self._marks(request, self.plan))
        if not self.plan.warms:
            return await self._models.complete(marked)
        if self._has_begun:
            await _wait_for(self._first, self._wait)
            return await self._models.complete(marked)
        self._has_begun = True
        try:
            return await self._models.complete(marked)
        finally:
            self._first.set()

    async def close(self) -> None:
        """As of the models behind."""
        await self._models.close()

    def _plan(self, request: ChildRequest) -> PrefixPlan:
        model = (request.model or self.default_model).partition("/")[2] or request.model or self.default_model
        count = counter_for(model).count
        texts = [getattr(one, "text", "") for one in request.messages[0].blocks]
        tools = json.dumps([[one.name, one.description, dict(one.schema)] for one in request.tools])
        shared = count(request.system, "system") + count(tools, "system")
        own = sum(map(count, texts))
        return plan_prefix(model, SharedPrefix(int(shared), int(own)), self.children, self._concurrency)

    def _marks(self, request: ChildRequest, plan: PrefixPlan) -> tuple[PrefixMark, ...]:
        marks = list(request.marks)
        if plan.is_marked:
            marks.append(PrefixMark())
        if len(request.messages) > 1:
            marks.append(PrefixMark(len(request.messages[0].blocks)))
        return tuple(dict.fromkeys(marks))


async def _wait_for(event: asyncio.Event, seconds: float) -> None:
    try:
        await asyncio.wait_for(event.wait(), seconds)
    except TimeoutError:
        return  # the first child is slow: going on without its entry only costs a write
