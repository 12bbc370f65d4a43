"""Join the answers on the parts of a split target: how they are grouped, asked about, and reported.

Rules of this file
------------------
1. Answers are joined in the order of their parts, as many at once as a child has room for, until one answer is left.
2. Each joining step at least halves the number of answers, so that it ends. An answer that is larger than its share of
   the room is cut, and says so.
3. The result says into how many parts a target was split, how many calls mapped and reduced, and which parts have no
   answer.
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from pagein.policy.delegation.part_edges import TextKind
from pagein.policy.delegation.target_parts import TargetPart

_FRAME: Final = 200  # characters around an answer in a reducing call
_CUT: Final = " [the rest of this answer was cut]"

MAP_NOTE: Final = (
    "The target is larger than your window. You are shown one part of it, between labels. Answer for the lines of this "
    "part alone: context before and behind it belongs to other parts, and is there only so that you understand. "
    "What is counted or listed must be of this part. Another call joins the answers on all parts."
)
"""Instructions to a child that is shown a part, behind the question."""
REDUCE_NOTE: Final = (
    "You are shown the answers of several calls, each on one part of a larger target, in the order of the parts, as JSON "
    "lines. No part was left out except those named as without answer, and nothing was counted twice. Join them into one "
    "answer to the question. Add up what was counted. Take over quotes of evidence unchanged."
)
"""Instructions to a child that joins answers, behind the question."""


@dataclass(frozen=True, slots=True)
class PartAnswer:
    """The answer on some parts. parts: their numbers. answer: None if there is none; then `why` says how. was_asked: a child was."""

    parts: tuple[int, ...]
    answer: str | None
    evidence: tuple[str, ...] = ()
    why: str = ""
    was_asked: bool = True


@dataclass(frozen=True, slots=True)
class SplitReport:
    """How a split target was answered.

    missing: parts without an answer, as their lines.
    """

    target: str
    parts: int
    by: str
    maps: int
    reduces: int
    missing: tuple[tuple[int, int], ...] = ()

    @property
    def says(self) -> str:
        """The report in one sentence or two."""
        joined = f" and {self.reduces} to join their answers" if self.reduces else ""
        calls = f"{self.maps} call{'' if self.maps == 1 else 's'}"
        text = f"{self.target} was split into {self.parts} parts by {self.by}: {calls} on the parts{joined}."
        if self.missing:
            lines = ", ".join(f"{first} to {last}" for first, last in self.missing)
            text += f" Without an answer: lines {lines}. So the result is partial."
        return text


def report_split(
    target: str, parts: Sequence[TargetPart], by: str | TextKind, answers: Sequence[PartAnswer], reduces: int
) -> SplitReport:
    """Return how a target was answered. answers: on the single parts, failed ones included."""
    answered = {number for one in answers if one.answer is not None for number in one.parts}
    missing = tuple((part.first, part.last) for part in parts if part.number not in answered)
    return SplitReport(target, len(parts), by, sum(one.was_asked for one in answers), reduces, missing)


def unjoined_text(parts: Sequence[tuple[str, TargetPart]], answers: Sequence[PartAnswer]) -> str:
    """Return the answers on parts one behind the other, each with its lines, for want of a joined one. parts: with their targets' names."""
    told = [
        f"{name}, lines {part.first} to {part.last}: {one.answer}"
        for (name, part), one in zip(parts, answers, strict=True)
        if one.answer is not None
    ]
    return "\n\n".join(told)


def reduce_groups(answers: Sequence[PartAnswer], room: int) -> tuple[tuple[PartAnswer, ...], ...]:
    """Return the next joining step: groups of answers, in order, each for one call. No call is needed for one answer.

    room: characters of answers that fit into a child.
    """
    share = max(1, room // 2)
    groups: list[list[PartAnswer]] = [[]]
    size = 0
    for one in answers:
        needs = min(len(answer_line(one)), share)
        if len(groups[-1]) > 1 and size + needs > room:
            groups.append([])
            size = 0
        groups[-1].append(one)
        size += needs
    return tuple(map(tuple, groups))


def reduce_text(group: Sequence[PartAnswer], room: int) -> str:
    """Return a group of answers as a joining child is shown it: a JSON line each. Too long answers are cut."""
    share = max(1, room // 2 - _FRAME)
    return "\n".join(answer_line(_cut(one, share)) for one in group)


def answer_line(one: PartAnswer) -> str:
    """Return an answer as a JSON line."""
    if one.answer is None:
        return json.dumps({"parts": one.parts, "failed": one.why}, ensure_ascii=False)
    return json.dumps({"parts": one.parts, "answer": one.answer, "evidence": one.evidence}, ensure_ascii=False)


def _cut(one: PartAnswer, most: int) -> PartAnswer:
    if one.answer is None or len(answer_line(one)) <= most + _FRAME:
        return one
    evidence = tuple(quote for quote in one.evidence if len(quote) < most // 8)[:4]
    left = max(1, most - sum(len(quote) + 4 for quote in evidence) - len(_CUT))
    answer = one.answer if len(one.answer) <= left else one.answer[:left] + _CUT
    return PartAnswer(one.parts, answer, evidence)
