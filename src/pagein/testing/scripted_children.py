"""A child model that answers by a function: for tests of delegation without a provider."""

import asyncio
import inspect
import json
from collections.abc import Awaitable, Callable
from typing import TypeAlias

from pagein.model.messages import Block, Text, ToolCall, ToolResult, Usage
from pagein.ports import ChildAnswer, ChildRequest

Step: TypeAlias = str | ChildAnswer | Exception
"""Text of an answer, a whole answer, or an error to raise."""
Script: TypeAlias = Callable[[ChildRequest], Step | Awaitable[Step]]


class ScriptedChild:
    """Answers each request by a function, and counts.

    known: the names that may be called; None for every name.
    requests: what was asked, in order. running, most: calls at work now, and at the same time at most. closed: how often it was closed.
    """

    def __init__(
        self, script: Script, *, default_model: str = "anthropic/claude-haiku-4-5", known: frozenset[str] | None = None
    ) -> None:
        self._script = script
        self._known = known
        self.default_model = default_model
        self.requests: list[ChildRequest] = []
        self.running = 0
        self.most = 0
        self.closed = 0

    def knows(self, model: str, /) -> bool:
        """Return whether a tool of this name may be called."""
        return self._known is None or model in self._known

    async def complete(self, request: ChildRequest, /) -> ChildAnswer:
        """Return what the function says, as an answer."""
        self.requests.append(request)
        self.running += 1
        self.most = max(self.most, self.running)
        try:
            await asyncio.sleep(0)
            step = self._script(request)
            if inspect.isawaitable(step):
                step = await step
        finally:
            self.running -= 1
        if isinstance(step, Exception):
            raise step
        return step if isinstance(step, ChildAnswer) else said(step, request)

    async def close(self) -> None:
        """Count the closing."""
        self.closed += 1


def said(text: str, request: ChildRequest, *calls: ToolCall, usage: Usage | None = None) -> ChildAnswer:
    """Return an answer with a text and tool calls. Its usage is by characters, unless given."""
    blocks: tuple[Block, ...] = (*([Text(text)] if text else []), *calls)
    told = usage or Usage(fresh=len(request.system) + len(shown_to(request)), output=max(1, len(text)))
    return ChildAnswer(blocks, told, "tools" if calls else "end", request.model)


def reply(answer: str, *evidence: str, confidence: str = "high") -> str:
    """Return a reply in the form that children are asked for."""
    return json.dumps({"answer": answer, "confidence": confidence, "evidence": evidence})


def shown_to(request: ChildRequest) -> str:
    """Return the content of a request: the first block of the first user message."""
    return next((block.text for block in request.messages[0].blocks if isinstance(block, Text)), "")


def question_in(request: ChildRequest) -> str:
    """Return what a child is asked: the system text, and what stands after the content."""
    behind = [block.text for block in request.messages[0].blocks[1:] if isinstance(block, Text)]
    return "\n".join((request.system, *behind))


def results_in(request: ChildRequest) -> tuple[ToolResult, ...]:
    """Return the tool results of the last message."""
    return tuple(block for block in request.messages[-1].blocks if isinstance(block, ToolResult))
