"""The loop of a child: ask, run the called tools, ask again, until an answer or the last turn."""

import json
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Final, TypeAlias

from pagein.delegation.model_calls import ChildModelCalls, OutOfBudget
from pagein.model.messages import Block, Message, Text, ToolCall, ToolResult
from pagein.policy.delegation.child_costs import NOTHING, CallCost
from pagein.policy.delegation.child_replies import REPLY_SCHEMA
from pagein.policy.delegation.limits import DelegationLimits
from pagein.ports import ChildAnswer, ChildRequest, ChildTool, PrefixMark

MAX_TURNS: Final = "Max turns reached without a word (`child_turns`)"
_LONGEST_NAME: Final = 64

ToolAnswer: TypeAlias = Callable[[Mapping[str, object], str], Awaitable[tuple[str, bool]]]
"""Answers a tool call, given its arguments and its id. Returns the text, and whether it is an error."""


@dataclass(frozen=True, slots=True)
class LoopTool:
    """A tool of a child, with the answering function."""

    offer: ChildTool
    answer: ToolAnswer


@dataclass(frozen=True, slots=True)
class ChildTask:
    """The input of a child.

    content: the first user message. question: follows in a separate block; "" if the system text has the question.
    marks: cache marks for the first message.
    """

    model: str
    system: str
    content: str
    question: str = ""
    tools: tuple[LoopTool, ...] = ()
    marks: tuple[PrefixMark, ...] = ()


@dataclass(slots=True)
class ChildOutcome:
    """The outcome of a child.

    text: its last words. why: the reason, should there be no words. model: the model that answered. notes: what a reader must know beside the text.
    """

    text: str = ""
    why: str = ""
    model: str = ""
    cost: CallCost = NOTHING
    notes: list[str] = field(default_factory=list)

    def spend(self, cost: CallCost) -> None:
        """Add the cost of a call, answered or not."""
        self.cost += cost


async def run_child(
    task: ChildTask,
    calls: ChildModelCalls,
    limits: DelegationLimits,
    outcome: ChildOutcome,
    tokens_of: Callable[[str], int],
    tell: Callable[[str], None] = lambda _: None,
) -> None:
    """Ask a child until the final answer. Raises OutOfBudget before the first answer, and ChildModelError.

    outcome: receives what the child comes to, also if that ends with an error.
    tokens_of: estimates the tokens of a text. tell: receives what the child does, in words.
    """
    first = (Text(task.content), Text(task.question)) if task.question else (Text(task.content),)
    messages = [Message("user", first)]
    tokens = tokens_of(task.system) + sum(tokens_of(one.text) for one in first)
    for turn in range(1, limits.turns + 1):
        tell(f"turn {turn}")
        request = ChildRequest(
            task.model,
            task.system,
            tuple(messages),
            tuple(one.offer for one in task.tools),
            limits.output_tokens,
            REPLY_SCHEMA,
            task.marks,
        )
        try:
            answer = await calls.complete(request, tokens, tell, outcome.spend)
        except OutOfBudget as spent:
            if turn == 1:
                raise
            outcome.notes.append(f"The child was ended before its answer: {spent}.")
            return
        outcome.model = answer.model or task.model
        outcome.text = answer.text or outcome.text
        if not answer.tool_calls:
            outcome.text = answer.text
            if answer.stop == "length":
                outcome.notes.append(f"The answer was cut at {limits.output_tokens:,} tokens (`child_tokens`).")
            return
        results = await _answer_tools(task.tools, answer, tell)
        messages += [_said(answer), Message("tool", tuple(results))]
        tokens = _next_tokens(answer, tokens, results, tokens_of)
    outcome.notes.append(f"The child was ended after {limits.turns} turns (`child_turns`): these are its last words.")
    outcome.why = MAX_TURNS


def _said(answer: ChildAnswer) -> Message:
    return Message("assistant", answer.blocks, model=answer.model, usage=answer.usage)


async def _answer_tools(
    tools: tuple[LoopTool, ...], answer: ChildAnswer, tell: Callable[[str], None]
) -> list[ToolResult]:
    """Answer every tool call, also impossible calls: the provider would refuse a call without a result."""
    by_name = {one.offer.name: one for one in tools}
    results: list[ToolResult] = []
    for call in answer.tool_calls:
        tell(f"calls {call.name[:_LONGEST_NAME]}")
        tool = by_name.get(call.name)
        if tool is None:
            text = f"Unknown tool: {call.name[:_LONGEST_NAME]}. Available tools: {', '.join(by_name) or 'none'}"
            results.append(ToolResult(call.id, text, call.name, is_error=True))
            continue
        arguments = _arguments(call)
        if arguments is None:
            text = "Tool error: the arguments are no JSON object"
            results.append(ToolResult(call.id, text, call.name, is_error=True))
            continue
        text, is_error = await tool.answer(arguments, call.id)
        results.append(ToolResult(call.id, text, call.name, is_error=is_error))
    return results


def _arguments(call: ToolCall) -> dict[str, object] | None:
    try:
        found = json.loads(call.arguments or "{}")
    except (ValueError, RecursionError):
        return None
    return found if isinstance(found, dict) else None


def _next_tokens(answer: ChildAnswer, before: int, results: list[ToolResult], tokens_of: Callable[[str], int]) -> int:
    """Return the estimated prompt of the next call, in tokens: the reported prompt plus the messages since."""
    come = sum(tokens_of(one.text) for one in results)
    if answer.usage is not None:
        return answer.usage.prompt + answer.usage.output + come
    return before + sum(tokens_of(_words(block)) for block in answer.blocks) + come


def _words(block: Block) -> str:
    match block:
        case Text(text=text):
            return text
        case ToolCall(arguments=arguments):
            return arguments
        case _:
            return ""
