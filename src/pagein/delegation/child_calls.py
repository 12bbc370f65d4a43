"""Run the children of an operation: admit, ask, time and record each child, and store the answer.

Rules of this file
------------------
1. Whatever happens to a child, it has a labelled result. Only a cancellation of the whole operation goes on upwards.
2. An answer that was paid for is stored before anything else can go wrong, also when the operation is cancelled meanwhile.
3. A child of a child runs within its parent's turn, and takes no further place among the children that run at once.
"""

import asyncio
import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final, Protocol

from pagein.delegation.budget import Budget
from pagein.delegation.call_tree import CallNode, CallStatus, CallTree
from pagein.delegation.child_loop import ChildOutcome, ChildTask, LoopTool, run_child
from pagein.delegation.model_calls import ChildModelCalls, OutOfBudget
from pagein.delegation.target_survey import SurveyedTarget, survey_targets
from pagein.delegation.thread_work import finish_in_thread
from pagein.engine.recall.child_results import ChildResultDraft, ChildResults, TargetText
from pagein.errors import ChildModelError, PageinError
from pagein.policy.delegation.child_costs import NOTHING
from pagein.policy.delegation.child_replies import ChildReply, parse_reply
from pagein.policy.delegation.evidence import QuotedText, QuoteEvidence, locate_quotes
from pagein.policy.delegation.limits import DelegationSettings
from pagein.policy.delegation.prompts import TASK_BEHIND, child_prompt, content_block, task_words
from pagein.policy.delegation.reports import ChildResult, Question
from pagein.policy.privacy.exclusions import keys_in, without
from pagein.ports import ChildTool

QUERY_TOOL: Final = ChildTool(
    "query",
    "Ask a further child model about stored objects. Costs money and time: search and peek first.",
    {
        "type": "object",
        "properties": {
            "instructions": {"type": "string", "description": "What to analyze or answer."},
            "target": {"type": "array", "items": {"type": "string"}, "description": "Ids of the objects."},
        },
        "required": ["instructions", "target"],
    },
)
_SHOWN_QUESTION: Final = 200
EMPTY: Final = "the child answered with nothing"
CANCELLED: Final = "cancelled"
_QUOTES: Final = 200
"""Quotes of an answer that are looked up. An answer of the usual length has fewer."""


class ChildTools(Protocol):
    """The tools that every child has, answered in a worker thread."""

    @property
    def tools(self) -> tuple[ChildTool, ...]:
        """The tools, as the model is told of them."""
        ...

    def answer(
        self, name: str, arguments: Mapping[str, object], call_id: str, stop: threading.Event, /
    ) -> tuple[str, bool]:
        """Return the text for a call, and whether it is an error. stop: ends the work early."""
        ...


@dataclass(frozen=True, slots=True)
class OperationContext:
    """The shared context of an operation's children: settings, budget, tools and clocks.

    models: name of the model of each depth, from 1.
    clock: monotonic, in seconds. now: seconds since 1970. new_id: returns random letters and digits.
    """

    operation_id: str
    results: ChildResults
    toolset: ChildTools
    settings: DelegationSettings
    models: tuple[str, ...]
    budget: Budget
    calls: ChildModelCalls
    tree: CallTree
    clock: Callable[[], float]
    now: Callable[[], float]
    new_id: Callable[[], str]


@dataclass(frozen=True, slots=True)
class ChildQuestion:
    """A pending question to a child.

    texts: its targets. content: the text to show; "" for the whole targets.
    shown: shown characters of a single target; None for the whole target. extra: further instructions, after the question.
    """

    question: Question
    texts: tuple[TargetText, ...]
    depth: int = 1
    parent: str | None = None
    content: str = ""
    shown: tuple[int, int] | None = None
    extra: str = ""


class ChildCalls:
    """Asks the children of an operation. Used from a single event loop."""

    def __init__(self, around: OperationContext) -> None:
        self.around = around
        self._places = asyncio.Semaphore(around.settings.limits.concurrency)
        self._kept: list[tuple[frozenset[str], str]] = []

    def kept_about(self, names: Iterable[str]) -> tuple[str, ...]:
        """Return the ids of the stored answers on some of these targets and on no others, oldest first."""
        wanted = frozenset(names)
        return tuple(object_id for targets, object_id in tuple(self._kept) if targets <= wanted)

    async def ask(self, asking: ChildQuestion) -> ChildResult:
        """Ask one child, as soon as there is a place, and return its labelled result."""
        if asking.depth > 1:
            return await self._ask(asking)
        async with self._places:
            return await self._ask(asking)

    async def _ask(self, asking: ChildQuestion) -> ChildResult:
        around = self.around
        asked = tuple(one.name for one in asking.texts)
        refused = around.budget.admit_child()
        if refused is not None:
            return ChildResult(asked, "not_asked", why=refused.why)
        model = around.models[min(asking.depth, len(around.models)) - 1]
        words = " ".join(asking.question.instructions.split())[:_SHOWN_QUESTION]
        call_id = f"child-{around.new_id()}"
        node = CallNode(call_id, asking.parent, asking.depth, model, words, asked, around.clock())
        around.tree.begin_call(around.operation_id, node)
        outcome = ChildOutcome(model=model)
        result = ChildResult(asked, "cancelled", call_id=call_id, model=model, why=CANCELLED)
        try:
            result = await self._labelled(asking, node, outcome)
            result = await self._stored(asking, result)
        finally:
            self._record(asking, node, replace(result, cost=outcome.cost))
        return result

    async def _labelled(self, asking: ChildQuestion, node: CallNode, outcome: ChildOutcome) -> ChildResult:
        blank = ChildResult(node.targets, "error", call_id=node.call_id, model=node.model)
        result = await self._ended(asking, node, outcome, blank)
        return replace(result, model=outcome.model, cost=outcome.cost, notes=(*outcome.notes, *result.notes))

    async def _ended(
        self, asking: ChildQuestion, node: CallNode, outcome: ChildOutcome, blank: ChildResult
    ) -> ChildResult:
        seconds = self.around.budget.child_seconds
        try:
            async with asyncio.timeout(seconds):
                await self._run(asking, node, outcome)
        except TimeoutError:
            is_own = seconds >= self.around.settings.limits.child_seconds
            limit = "child_seconds" if is_own else "child_operation_seconds"
            return replace(blank, status="timeout", why=f"no answer within {seconds:.0f} s (`{limit}`)")
        except OutOfBudget as spent:
            if outcome.cost == NOTHING:
                self.around.budget.withdraw_child()
            return replace(blank, status="not_asked", why=str(spent))
        except ChildModelError as problem:
            return replace(blank, why=f"{type(problem).__name__}: {problem}")
        except Exception as problem:  # noqa: BLE001 -- a failing adapter costs one answer, not the others
            words = str(problem)  # an adapter's own error may repeat a key
            return replace(blank, why=f"the child failed: {type(problem).__name__}: {without(words, keys_in(words))}")
        reply = parse_reply(outcome.text)
        if not reply.answer.strip():
            return replace(blank, why=outcome.why or EMPTY)
        return replace(
            blank,
            status="success",
            answer=reply.answer,
            confidence=reply.confidence,
            evidence=tuple(map(QuoteEvidence, reply.evidence[:_QUOTES])),  # looked up when the answer is safe
            notes=_notes(reply),
        )

    async def _run(self, asking: ChildQuestion, node: CallNode, outcome: ChildOutcome) -> None:
        around = self.around
        limits = around.settings.limits
        tools = self._tools(asking, node)
        instructions = asking.question.instructions + (f"\n\n{asking.extra}" if asking.extra else "")
        is_behind = asking.question.kind != "batch"  # the children of a batch share the question, others the content
        system = child_prompt(
            TASK_BEHIND if is_behind else instructions,
            asking.depth,
            limits.depth,
            [one.offer.name for one in tools],
            around.settings.child_prompt,
        )
        content = asking.content or "\n".join(content_block(one.name, one.text) for one in asking.texts)
        task = ChildTask(node.model, system, content, task_words(instructions) if is_behind else "", tools)

        def tell(doing: str) -> None:
            around.tree.tell(around.operation_id, node.call_id, doing)

        await run_child(task, around.calls, limits, outcome, around.results.tokens, tell)

    def _tools(self, asking: ChildQuestion, node: CallNode) -> tuple[LoopTool, ...]:
        own = tuple(LoopTool(one, self._tool_answer(one.name)) for one in self.around.toolset.tools)
        if asking.depth >= self.around.settings.limits.depth:
            return own

        async def query(arguments: Mapping[str, object], _: str) -> tuple[str, bool]:
            return await self._query(arguments, asking, node)

        return (*own, LoopTool(QUERY_TOOL, query))

    def _tool_answer(self, name: str) -> Callable[[Mapping[str, object], str], "asyncio.Future[tuple[str, bool]]"]:
        def answer(arguments: Mapping[str, object], call_id: str) -> "asyncio.Future[tuple[str, bool]]":
            def work(stop: threading.Event) -> tuple[str, bool]:
                try:
                    return self.around.toolset.answer(name, arguments, call_id, stop)
                except PageinError as problem:
                    return f"Tool error: {problem}", True

            return asyncio.ensure_future(finish_in_thread(work))

        return answer

    async def _query(self, arguments: Mapping[str, object], asking: ChildQuestion, node: CallNode) -> tuple[str, bool]:
        """Answer a child's own query, by a child below it."""
        words, named = arguments.get("instructions"), arguments.get("target")
        names = [named] if isinstance(named, str) else named
        if not isinstance(words, str) or not words.strip() or not isinstance(names, list) or not names:
            return "Tool error: query needs instructions and target, the ids of one object or more", True
        question = replace(asking.question, kind="query", instructions=words, targets=tuple(map(str, names)), find=None)

        def load(stop: threading.Event) -> tuple[list[SurveyedTarget], list[TargetText]]:
            found = list(survey_targets(self.around.results, question.targets, None, stop))
            return found, [self.around.results.target(one.name) for one in found if one.is_asked]

        try:
            surveyed, texts = await finish_in_thread(load)
        except PageinError as problem:
            return f"Tool error: {problem}", True
        missing = "; ".join(one.why for one in surveyed if one.why is not None)
        if not texts:
            return f"Tool error: {missing}", True
        result = await self.ask(ChildQuestion(question, tuple(texts), asking.depth + 1, node.call_id))
        if result.status != "success":
            return f"Tool error: {result.why}", True
        evidence = "".join(f"\n- {one.quote} ({one.place})" for one in result.evidence)
        left = f"\n[{missing}]" if missing else ""
        return f"{result.answer}\nConfidence: {result.confidence}{evidence}{left}", False

    async def _stored(self, asking: ChildQuestion, result: ChildResult) -> ChildResult:
        """Return the result with its evidence with places, and with the id of the stored answer, which has both.

        In a thread that a cancellation waits for: to look up many quotes in a large text takes seconds.
        """
        if result.status != "success":
            return result
        references = tuple(one.reference for one in asking.texts if one.reference is not None)
        draft = ChildResultDraft(
            result.call_id,
            asking.question.kind,
            asking.question.instructions,
            result.answer,
            result.model,
            result.targets,
            references,
            self.around.now(),
            result.confidence,
        )

        def store(stop: threading.Event) -> ChildResult:
            quotes = (one.quote for one in result.evidence if not stop.is_set())
            evidence = tuple(found for one in quotes for found in locate_quotes([one], _quoted(asking)))
            kept = self._keep(replace(draft, evidence=tuple(one.note for one in evidence)), result)
            return replace(kept, evidence=evidence)

        return await finish_in_thread(store)

    def _keep(self, draft: ChildResultDraft, result: ChildResult) -> ChildResult:
        try:
            made = self.around.results.keep(draft)
        except PageinError as problem:
            return replace(result, notes=(*result.notes, f"The answer is not stored: {problem}"))
        if made is None:
            return replace(result, notes=(*result.notes, "The answer is not stored: it holds a key."))
        self._kept.append((frozenset(result.targets), made.object_id))
        return replace(result, object_id=made.object_id, artifact=made.artifact or None)

    def _record(self, asking: ChildQuestion, node: CallNode, result: ChildResult) -> None:
        around = self.around
        seconds = around.clock() - node.began
        status: CallStatus = "error" if result.status == "not_asked" else result.status
        ended = replace(node, status=status, seconds=seconds, cost=result.cost, model=result.model, doing=result.why)
        around.tree.end_call(around.operation_id, ended)
        around.results.log(
            {
                "kind": "call",
                "callId": node.call_id,
                "operationId": around.operation_id,
                "parentCallId": node.parent,
                "depth": node.depth,
                "model": result.model,
                "query": asking.question.instructions,
                "targetIds": list(node.targets),
                "result": None
                if result.status != "success"
                else {
                    "objectId": result.object_id,
                    "confidence": result.confidence,
                    "evidence": [one.place for one in result.evidence],
                },
                "tokensIn": result.cost.prompt,
                "tokensOut": result.cost.output,
                "costUsd": result.cost.usd,
                "wallClockMs": round(seconds * 1000, 3),
                "status": status,
                **({"error": result.why} if result.why else {}),
            }
        )


def _quoted(asking: ChildQuestion) -> Sequence[QuotedText]:
    return [QuotedText(one.object_id, one.version, one.text, asking.shown) for one in asking.texts]


def _notes(reply: ChildReply) -> tuple[str, ...]:
    notes: list[str] = []
    if not reply.is_structured:
        notes.append("The child did not answer in the form that it was asked for; the answer is its whole text.")
    if len(reply.evidence) > _QUOTES:
        notes.append(f"The first {_QUOTES} of {len(reply.evidence):,} quotes are shown.")
    return tuple(notes)
