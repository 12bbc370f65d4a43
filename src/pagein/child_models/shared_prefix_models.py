"""Let the children of an operation share the beginning of their prompts in the provider's cache.

Rules of this file
------------------
1. The plan is made once, at the first call: `policy.delegation.shared_prefix`. It holds for all children of the operation.
2. Where waiting pays, the first child goes ahead, and the others wait for its first answer or its failure, but never
   longer than `LONGEST_WAIT`.
3. A question that stands after its content shares that content with further questions: `asked_contents`. Such questions
   mark the end of the content, and wait while another one writes it.
4. A child that continues after tool calls also marks the end of its own content: the write costs a quarter of the input price,
   and each later turn then saves nine tenths of it. That pays if one child in four continues again.
"""

import asyncio
import json
from dataclasses import replace
from typing import Final

from pagein.child_models.asked_contents import PROCESS_CONTENTS, AskedContents
from pagein.child_models.memoized_models import call_key
from pagein.policy.delegation.shared_prefix import PrefixPlan, SharedPrefix, plan_prefix
from pagein.ports import ChildAnswer, ChildModel, ChildRequest, PrefixMark
from pagein.providers.prices.price_lookup import newest_prices
from pagein.providers.tokens.counters import counter_for

LONGEST_WAIT: Final = 30.0
"""Seconds that children wait for the first one at most."""
_POLL: Final = 0.05


class SharedPrefixModels:
    """The child models of an operation, whose prompts share a prefix. Implements `ChildModel`.

    children: number of children to ask; may be set until the first call. concurrency: maximum at the same time.
    wait: maximum seconds that children wait for the first child, or for a child that writes their content.
    contents: contents of recent questions, of any operation.
    """

    def __init__(
        self,
        models: ChildModel,
        *,
        children: int,
        concurrency: int,
        wait: float = LONGEST_WAIT,
        contents: AskedContents = PROCESS_CONTENTS,
    ) -> None:
        self._models = models
        self.children = children
        self._concurrency = concurrency
        self._wait = wait
        self._contents = contents
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
        if _is_question_behind(request):
            return await self._complete_behind(marked)
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

    async def _complete_behind(self, request: ChildRequest) -> ChildAnswer:
        """Call the model once with a question after its content."""
        prices = newest_prices(self._model_name(request))
        tokens = sum(self._sizes(request))
        if prices is None or prices.cache.model == "none" or tokens < prices.cache.min_prefix:
            return await self._models.complete(request)
        is_marked, key = prices.cache.model == "breakpoints", _content_key(request)
        role = self._contents.begin(key, writes_always=not is_marked)
        until = asyncio.get_running_loop().time() + self._wait
        while role == "wait" and self._contents.is_being_written(key) and asyncio.get_running_loop().time() < until:  # noqa: ASYNC110 -- the writer may be in another event loop
            await asyncio.sleep(_POLL)
        if is_marked and role != "plain":
            request = replace(request, marks=(*request.marks, PrefixMark(1)))
        is_written = False
        try:
            answer = await self._models.complete(request)
            is_written = True
        finally:
            if role == "write":
                self._contents.end(key, is_written=is_written)
        return answer

    async def close(self) -> None:
        """As of the models behind."""
        await self._models.close()

    def _plan(self, request: ChildRequest) -> PrefixPlan:
        shared, own = self._sizes(request)
        return plan_prefix(self._model_name(request), SharedPrefix(shared, own), self.children, self._concurrency)

    def _model_name(self, request: ChildRequest) -> str:
        named = request.model or self.default_model
        return named.partition("/")[2] or named

    def _sizes(self, request: ChildRequest) -> tuple[int, int]:
        """Return the tokens of tools and instructions, and of the first message."""
        count = counter_for(self._model_name(request)).count
        tools = json.dumps([[one.name, one.description, dict(one.schema)] for one in request.tools])
        shared = count(request.system, "system") + count(tools, "system")
        return int(shared), int(sum(count(getattr(one, "text", "")) for one in request.messages[0].blocks))

    def _marks(self, request: ChildRequest, plan: PrefixPlan) -> tuple[PrefixMark, ...]:
        marks = list(request.marks)
        if plan.is_marked:
            marks.append(PrefixMark())
        if len(request.messages) > 1:
            marks.append(PrefixMark(len(request.messages[0].blocks)))
        return tuple(dict.fromkeys(marks))


def _is_question_behind(request: ChildRequest) -> bool:
    """Return whether a request begins a conversation whose question stands in a block of its own, after the content."""
    return len(request.messages) == 1 and len(request.messages[0].blocks) > 1


def _content_key(request: ChildRequest) -> bytes:
    content = replace(request.messages[0], blocks=request.messages[0].blocks[:1])
    return call_key(replace(request, messages=(content,), max_output=0, schema=None))


async def _wait_for(event: asyncio.Event, seconds: float) -> None:
    try:
        await asyncio.wait_for(event.wait(), seconds)
    except TimeoutError:
        return  # the first child is slow: going on without its entry only costs a write
