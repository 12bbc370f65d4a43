"""One operation at work: survey, estimate, confirmation, children, report.

Rules of this file
------------------
1. Nothing is spent before the targets are known and the cost is estimated.
2. Above a number of children a person is asked. Without a person the operation runs only if its estimate is within its budget.
3. Whatever ends an operation, its finished answers are in the report, every target has a label, and no task is left.
"""

import asyncio
import contextlib
import inspect
import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Final

from pagein.child_models.memoized_models import AnswerMemo, MemoizedModels
from pagein.child_models.shared_prefix_models import SharedPrefixModels
from pagein.delegation.budget import Budget
from pagein.delegation.call_tree import CallTree, OperationView, Watch
from pagein.delegation.child_calls import CANCELLED, ChildCalls, ChildQuestion, ChildTools, OperationContext
from pagein.delegation.model_calls import ChildModelCalls, Retries
from pagein.delegation.ordered_work import work_on_each
from pagein.delegation.target_questions import ask_about, room_of
from pagein.delegation.target_survey import SurveyedTarget, survey_targets
from pagein.delegation.thread_work import finish_in_thread
from pagein.engine.recall.child_results import ChildResults
from pagein.policy.delegation.child_costs import NOTHING, CallCost, highest_cost
from pagein.policy.delegation.limits import DelegationSettings
from pagein.policy.delegation.reports import ChildResult, Confirm, Question, Report, Status
from pagein.policy.recall.pattern_search import Pattern
from pagein.ports import ChildModel

_NAMED: Final = 20
_ROOM_FOR_ANSWERS: Final = 8_000_000
"""Characters of answers that a report holds. The others are in the store alone."""


@dataclass(frozen=True, slots=True)
class Means:
    """The resources for the operations of a session.

    memo: remembered answers; None to remember no answers.
    clock: monotonic, in seconds. now: seconds since 1970. new_id: returns random letters and digits.
    """

    results: ChildResults
    toolset: ChildTools
    settings: DelegationSettings
    tree: CallTree
    clock: Callable[[], float]
    now: Callable[[], float]
    new_id: Callable[[], str]
    retries: Retries
    memo: AnswerMemo | None


class Operation:
    """One operation at work. Used once.

    blank: the report to fill in, with the first model's name. models: by depth, from 1.
    """

    def __init__(
        self,
        means: Means,
        question: Question,
        pattern: Pattern | None,
        blank: Report,
        models: tuple[str, ...],
        model: ChildModel,
    ) -> None:
        self._results = means.results
        self._tree = means.tree
        self._limits = means.settings.limits
        self._question = question
        self._pattern = pattern
        self._report = blank
        self._budget = Budget(self._limits, means.clock(), means.clock)
        operation_id = blank.operation_id
        self._sharing = SharedPrefixModels(model, children=0, concurrency=self._limits.concurrency)
        self._memo = None if means.memo is None else MemoizedModels(self._sharing, means.memo)
        calls = ChildModelCalls(
            self._memo or self._sharing,
            self._budget,
            means.retries,
            lambda cost: self._tree.add_cost(operation_id, cost),
        )
        self._around = OperationContext(
            operation_id,
            means.results,
            means.toolset,
            means.settings,
            models,
            self._budget,
            calls,
            means.tree,
            means.clock,
            means.now,
            means.new_id,
        )
        self._calls = ChildCalls(self._around)
        self._begun: set[int] = set()
        self._targets: tuple[SurveyedTarget, ...] = ()
        self._found: dict[int, ChildResult] = {}
        self._room = _ROOM_FOR_ANSWERS
        self._is_cancelled = False
        self._is_late = False

    async def run(self, watch: Watch | None, begun: Callable[[str], None]) -> Report:
        """Work, and return the report. Arguments as in `Delegation.ask`."""
        report, inner = self._report, asyncio.ensure_future(self._work())
        loop = asyncio.get_running_loop()

        def cancel() -> None:
            self._is_cancelled = True
            with contextlib.suppress(RuntimeError):  # the loop has ended, and so has the operation
                loop.call_soon_threadsafe(inner.cancel)

        view = OperationView(report.operation_id, report.kind, self._question.instructions, 0, NOTHING)
        with self._tree.operation(view, cancel, watch):
            begun(report.operation_id)
            try:
                return await inner
            except asyncio.CancelledError:
                task = asyncio.current_task()
                if not self._is_cancelled or (task is not None and task.cancelling()):
                    raise
                return await self._finished()

    async def _work(self) -> Report:
        try:
            async with asyncio.timeout(self._limits.operation_seconds):
                refused = await self._prepare()
                if refused is not None:
                    return refused
                await self._ask_all()
        except TimeoutError:
            self._is_late = True
        return await self._finished()

    # --- before the first child ---

    async def _prepare(self) -> Report | None:
        """Survey the targets and estimate the cost. Returns a report if nothing is to be asked."""
        question = self._question

        def survey(stop: threading.Event) -> tuple[SurveyedTarget, ...]:
            return tuple(survey_targets(self._results, question.targets, self._pattern, stop))

        self._targets = await finish_in_thread(survey)
        unmatched = tuple(one.asked for one in self._targets if one.why is None and not one.has_hit)
        asked = [one for one in self._targets if one.is_asked]
        self._report = replace(self._report, estimated=self._estimate(asked), unmatched=unmatched)
        self._tree.plan(self._report.operation_id, len(asked), self._report.estimated)
        self._sharing.children = self._report.estimated.calls
        if not asked:
            missing = "; ".join(one.why for one in self._targets if one.why is not None)
            if not unmatched:
                return replace(self._report, refused=missing)
            notes = (*self._report.notes, _no_hit(question, len(unmatched)), *filter(None, [missing]))
            return replace(self._report, notes=notes)
        return await self._confirmed()

    def _estimate(self, asked: list[SurveyedTarget]) -> CallCost:
        """Return the highest cost as planned: one turn a child, and a further call where targets must be joined.

        Counted are as many children as the operation may ask, about the first targets.
        """
        output, first = self._limits.output_tokens, self._around.models[0]
        room = room_of(first, output)
        sizes = [one.tokens for one in asked] if self._question.kind == "batch" else [sum(one.tokens for one in asked)]
        total = NOTHING
        for size in sizes:
            if total.calls >= self._limits.calls:
                break
            parts = max(1, -(-size // room))
            for _ in range(parts):
                total += highest_cost(first, min(size, room), output, 1)
            if parts > 1:
                total += highest_cost(first, parts * output, output, 1)
            if self._limits.depth > 1:
                total += highest_cost(self._around.models[1], min(size, room), output, 1)
        return total

    async def _confirmed(self) -> Report | None:
        estimated, limits, confirm = self._report.estimated, self._limits, self._question.confirm
        if estimated.calls <= limits.confirm_above:
            return None
        if confirm is not None:
            agreed = await _ask_person(confirm, estimated)
            return None if agreed else replace(self._report, refused="Cancelled by user")
        self._results.log(
            {"kind": "operation", "operation": self._question.kind, "details": {
                "operationId": self._report.operation_id, "estimatedCalls": estimated.calls, "estimatedUsd": estimated.usd,
                "unpricedTokens": estimated.unpriced,
            }, "wallClockMs": 0.0}
        )  # fmt: skip
        if (estimated.usd or 0.0) <= limits.usd and estimated.unpriced <= limits.unpriced_tokens:
            return None
        return replace(
            self._report,
            refused=(
                f"{estimated.calls} calls may cost {estimated.says}, which is above the limit of ${limits.usd:.2f} (`child_usd`) or "
                f"{limits.unpriced_tokens:,} tokens without a price (`child_unpriced_tokens`), and nobody is there to be asked. "
                "Name fewer targets, leave out those without a hit by `find`, or raise the limit."
            ),
        )

    # --- the children ---

    async def _ask_all(self) -> None:
        calls = self._calls
        if self._question.kind != "batch":
            await self._ask_together(calls)
            return
        await work_on_each(self._targets, lambda place, one: self._ask_one(calls, place, one), self._limits.concurrency)

    async def _ask_together(self, calls: ChildCalls) -> None:
        asked = [one for one in self._targets if one.is_asked]
        await self._ask_about(calls, 0, asked)

    async def _ask_one(self, calls: ChildCalls, place: int, target: SurveyedTarget) -> None:
        if target.is_asked and self._budget.full is None:  # what is passed over is labelled when the operation ends
            await self._ask_about(calls, place, [target])

    async def _ask_about(self, calls: ChildCalls, place: int, asked: list[SurveyedTarget]) -> None:
        def load(_: threading.Event) -> ChildQuestion:
            return ChildQuestion(self._question, tuple(self._results.target(one.name) for one in asked))

        names = tuple(one.asked for one in asked)
        self._begun.add(place)
        try:
            result = await ask_about(calls, await finish_in_thread(load))
        except Exception as problem:  # noqa: BLE001 -- a target that was there when it was surveyed costs one answer, not the others
            result = ChildResult(names, "error", why=f"{type(problem).__name__}: {problem}")
        self._room -= len(result.answer)
        if self._room < 0 and result.object_id is not None:
            result = replace(
                result, answer="", notes=(*result.notes, f"The answer is in the store: {result.object_id}")
            )
        self._found[place] = replace(result, targets=names)
        self._tree.end_target(self._report.operation_id, answered=result.status == "success")

    # --- the end ---

    async def _finished(self) -> Report:
        """Return the report, with a label for every target."""
        results = self._labelled()
        missing = sum(one.status != "success" for one in results)
        why = self._why_ended()
        parted = sum(one.is_partial for one in results)
        partial = None
        if why is not None or missing or parted:
            done = len(results) - missing
            in_part = f", {parted} of them only in part" if parted else ""
            partial = f"{done} of {len(results)} answered{in_part}" + ("" if why is None else f": {why}")
        warm = [one.name for one in self._targets if one.is_asked]
        notes = [*self._report.notes, *self._prompt_notes()]
        failure = None
        if warm:
            kind, call_id = self._question.kind, self._question.call_id
            failure = await finish_in_thread(lambda _: self._results.mark_warm(kind, warm, call_id))
        if failure is not None:
            notes.append(f"Not everything was stored: {failure}")
        return replace(
            self._report,
            results=results,
            partial=partial,
            is_cancelled=self._is_cancelled,
            actual=self._budget.spent,
            notes=tuple(notes),
        )

    def _prompt_notes(self) -> Iterator[str]:
        """Yield how prompts were shared and answers remembered, where there was something to gain."""
        plan = self._sharing.plan
        if plan is not None and plan.is_told:
            yield f"Prompt cache: {plan.says}."
        if self._memo is not None and self._memo.figures.hits:
            yield f"{self._memo.figures.says}."

    def _why_ended(self) -> str | None:
        if self._is_cancelled:
            return CANCELLED
        if self._is_late:
            return f"the operation took {self._limits.operation_seconds:.0f} s (`child_operation_seconds`)"
        return self._budget.full

    def _labelled(self) -> tuple[ChildResult, ...]:
        why = self._why_ended() or "it was not reached"

        def unanswered(place: int, targets: Sequence[SurveyedTarget]) -> ChildResult:
            ended: Status = "cancelled" if self._is_cancelled else "timeout" if self._is_late else "not_asked"
            kept = self._calls.kept_about(one.name for one in targets)
            more = f" and {len(kept) - _NAMED} more" if len(kept) > _NAMED else ""
            notes = (f"Stored answers about it: {', '.join(kept[:_NAMED])}{more}.",) if kept else ()
            names = tuple(one.asked for one in targets)
            return ChildResult(names, ended if place in self._begun else "not_asked", why=why, notes=notes)

        if self._question.kind != "batch":
            asked = tuple(one for one in self._targets if one.is_asked)
            missing = tuple(one.why for one in self._targets if one.why is not None)
            result = self._found.get(0) or unanswered(0, asked)
            return (replace(result, notes=(*result.notes, *missing)),)
        labelled: list[ChildResult] = []
        for place, one in enumerate(self._targets):
            if one.why is not None:
                labelled.append(ChildResult((one.asked,), "error", why=one.why))
            elif one.has_hit:
                labelled.append(self._found.get(place) or unanswered(place, (one,)))
        return tuple(labelled)


async def _ask_person(confirm: Confirm, cost: CallCost) -> bool:
    if inspect.iscoroutinefunction(confirm):
        return bool(await confirm(cost))
    return bool(await finish_in_thread(lambda _: confirm(cost)))


def _no_hit(question: Question, count: int) -> str:
    return f"{question.find!r} stands in none of the {count} targets, so no child was asked."
