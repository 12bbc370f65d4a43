"""Ask about targets: whole if the targets fit into a child's window, else part by part with joined answers."""

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import Final

from pagein.delegation.child_calls import ChildCalls, ChildQuestion
from pagein.delegation.ordered_work import work_on_each
from pagein.delegation.text_edges import edges_of
from pagein.delegation.thread_work import finish_in_thread
from pagein.engine.recall.child_results import TargetText
from pagein.policy.delegation.child_costs import NOTHING, OVERHEAD, window_of
from pagein.policy.delegation.part_answers import (
    MAP_NOTE,
    REDUCE_NOTE,
    PartAnswer,
    reduce_groups,
    reduce_text,
    report_split,
    unjoined_text,
)
from pagein.policy.delegation.prompts import content_block
from pagein.policy.delegation.reports import ChildResult
from pagein.policy.delegation.target_parts import TargetPart, part_text, split_text

_SHARE: Final = 0.7
"""Share of the free window that content takes: token counts are estimates, and tools answer into the rest."""


async def ask_about(calls: ChildCalls, asking: ChildQuestion) -> ChildResult:
    """Return the answer about targets of any size."""
    room = room_of(calls.around.models[0], calls.around.settings.limits.output_tokens)
    tokens = sum(calls.around.results.tokens(one.text) for one in asking.texts)
    if tokens <= room:
        return await calls.ask(asking)
    return await _PartedQuestion(calls, asking, room).answer()


def room_of(model: str, output_tokens: int) -> int:
    """Return the tokens of content for a child of a model."""
    return max(1, int(_SHARE * (window_of(model) - output_tokens - OVERHEAD)))


class _PartedQuestion:
    """A question about targets that exceed a child's window. room: tokens of content for a child."""

    def __init__(self, calls: ChildCalls, asking: ChildQuestion, room: int) -> None:
        self._calls = calls
        self._asking = asking
        self._question = replace(asking.question, kind="query")
        self._room = room
        self._cost = NOTHING
        self._reduces = 0
        self._lost: list[PartAnswer] = []
        self._total = 0
        self._last: ChildResult | None = None

    async def answer(self) -> ChildResult:
        parts: list[tuple[TargetText, TargetPart]] = []
        kinds: list[str] = []
        for text in self._asking.texts:
            edges = await finish_in_thread(partial(edges_of, text.text, text.title))
            kinds.append(edges.by)
            parts += [(text, part) for part in split_text(text.text, edges, self._characters(text))]
        self._total = len(parts)
        found: list[PartAnswer] = [
            PartAnswer((number,), None, why="not asked", was_asked=False) for number, _ in enumerate(parts, 1)
        ]

        async def ask_part(place: int, item: tuple[TargetText, TargetPart]) -> None:
            text, part = item
            shown = content_block(text.name, part_text(text.text, part, text.name))
            asked = ChildQuestion(self._question, (text,), content=shown, shown=(part.start, part.end), extra=MAP_NOTE)
            found[place] = self._part_answer((place + 1,), await self._ask(asked))

        await work_on_each(parts, ask_part, self._calls.around.settings.limits.concurrency)
        joined = await self._joined(found)
        return self._result(parts, kinds, found, joined)

    def _characters(self, text: TargetText) -> int:
        tokens = self._calls.around.results.tokens(text.text)
        return max(1, int(len(text.text) / tokens * self._room))

    async def _ask(self, asked: ChildQuestion) -> ChildResult:
        result = await self._calls.ask(asked)
        self._cost += result.cost
        self._last = result if result.status == "success" else self._last
        return result

    @staticmethod
    def _part_answer(numbers: tuple[int, ...], result: ChildResult) -> PartAnswer:
        quotes = tuple(one.quote for one in result.evidence)
        answer = result.answer if result.status == "success" else None
        return PartAnswer(numbers, answer, quotes, result.why, was_asked=result.status != "not_asked")

    async def _joined(self, answers: Sequence[PartAnswer]) -> PartAnswer:
        characters = self._room * 3  # a token has three characters or more
        left = tuple(answers)
        while len(left) > 1:
            groups = reduce_groups(left, characters)
            left = tuple([one[0] if len(one) == 1 else await self._reduced(one, characters) for one in groups])
        return left[0]

    async def _reduced(self, group: Sequence[PartAnswer], characters: int) -> PartAnswer:
        numbers = tuple(number for one in group for number in one.parts)
        if all(one.answer is None for one in group):
            return PartAnswer(numbers, None, why=group[0].why)
        content = content_block("answers", reduce_text(group, characters))
        is_last = len(numbers) == self._total
        question = self._asking.question if is_last else self._question
        result = await self._ask(replace(self._asking, question=question, content=content, extra=REDUCE_NOTE))
        self._reduces += result.status != "not_asked"
        joined = self._part_answer(numbers, result)
        self._lost += [joined] if joined.answer is None else []
        return joined

    def _result(
        self,
        parts: Sequence[tuple[TargetText, TargetPart]],
        kinds: Sequence[str],
        found: Sequence[PartAnswer],
        joined: PartAnswer,
    ) -> ChildResult:
        notes: list[str] = []
        for text, kind in zip(self._asking.texts, kinds, strict=True):
            of_text = [(part, one) for (own, part), one in zip(parts, found, strict=True) if own is text]
            answers = [replace(one, parts=(part.number,)) for part, one in of_text]
            report = report_split(text.name, [part for part, _ in of_text], kind, answers, self._reduces)
            notes.append(report.says)
        names = tuple(one.name for one in self._asking.texts)
        last = self._last
        if last is None:
            why = joined.why or "no part has an answer"
            return ChildResult(names, "error", cost=self._cost, why=why, notes=tuple(notes))
        if joined.answer is None:
            return self._unjoined(parts, found, ChildResult(names, "success", why=joined.why, notes=tuple(notes)), last)
        notes += [
            f"The answers on parts {lost.parts[0]} to {lost.parts[-1]} are missing in it: {lost.why}."
            for lost in self._lost
        ]
        is_partial = bool(self._lost) or any(one.answer is None for one in found)
        return replace(last, targets=names, cost=self._cost, is_partial=is_partial, notes=(*last.notes, *notes))

    def _unjoined(
        self,
        parts: Sequence[tuple[TargetText, TargetPart]],
        found: Sequence[PartAnswer],
        result: ChildResult,
        last: ChildResult,
    ) -> ChildResult:
        """Return the answers on the parts, which are paid for, where they could not be joined."""
        kept = ", ".join(self._calls.kept_about(result.targets))
        notes = (
            f"The answers on the parts could not be joined ({result.why}), and stand one behind the other.",
            *([f"Each is stored: {kept}."] if kept else []),
        )
        return replace(
            result,
            answer=unjoined_text([(text.name, part) for text, part in parts], found),
            is_partial=True,
            call_id=last.call_id,
            model=last.model,
            cost=self._cost,
            why="",
            notes=(*result.notes, *notes),
        )
