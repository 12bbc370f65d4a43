"""The rules by which providers refuse requests, as a table from rule id to function.

Ids and sources: `notes/provider-rules.md` 10. A rule reads all turns but reports only on those from `since` on and on the one
before, so that a request which extends a checked one costs what is new.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Final, Literal, TypeAlias

from pagein.providers.validity.turns import Part, Turn, Turns

Api: TypeAlias = Literal["anthropic", "openai_chat", "openai_responses"]
Check: TypeAlias = Callable[[Turns, int], Iterator[tuple[Part, str]]]

_MOST_MARKS: Final = 4


@dataclass(frozen=True, slots=True)
class Rule:
    """One reason for which requests are refused. `says` is the rule in one sentence."""

    api: Api
    says: str
    check: Check


def _recent(turns: Turns, since: int) -> Iterator[tuple[int, Turn]]:
    for index in range(max(since - 1, 0), len(turns.turns)):
        yield index, turns.turns[index]


def _unanswered(turns: Turns, since: int) -> Iterator[tuple[Part, str]]:
    for index, turn in _recent(turns, since):
        calls = [part for part in turn.parts if part.kind == "call"] if turn.side == "assistant" else []
        if not calls:
            continue
        answered = _answers(turns, index + 1)
        for part in calls:
            if part.id not in answered:
                yield part, f"call {part.id} has no result in the next message"


def _answers(turns: Turns, index: int) -> set[str]:
    if index >= len(turns.turns) or turns.turns[index].side == "assistant":
        return set()
    return {part.id for part in turns.turns[index].parts if part.kind == "result"}


def _orphaned(turns: Turns, since: int) -> Iterator[tuple[Part, str]]:
    for index, turn in _recent(turns, since):
        results = [part for part in turn.parts if part.kind == "result"]
        if not results:
            continue
        before = turns.turns[index - 1] if index else None
        calls = (
            {part.id for part in before.parts if part.kind == "call"}
            if before and before.side == "assistant"
            else set()
        )
        for part in results:
            if part.id not in calls:
                yield part, f"result for {part.id}, which the message before did not call"


def _results_late(turns: Turns, since: int) -> Iterator[tuple[Part, str]]:
    for _, turn in _recent(turns, since):
        other = False
        for part in turn.parts:
            if part.kind != "result":
                other = True
            elif other:
                yield part, f"result for {part.id} stands behind other content"


def _answered_twice(turns: Turns, since: int) -> Iterator[tuple[Part, str]]:
    for _, turn in _recent(turns, since):
        seen: set[str] = set()
        for part in turn.parts:
            if part.kind == "result":
                if part.id in seen:
                    yield part, f"a second result for {part.id}"
                seen.add(part.id)


def _empty(turns: Turns, since: int) -> Iterator[tuple[Part, str]]:
    for index, turn in _recent(turns, since):
        if not turn.parts:
            yield Part("text", turn.first, 0), "a message without content"
        for part in turn.parts:
            if part.kind == "text" and (not part.text or part.text.isspace()):
                yield part, "a text block without text"
        last = turn.parts[-1] if turn.parts else None
        is_end = index == len(turns.turns) - 1 and turn.side == "assistant"
        if is_end and last is not None and last.kind == "text" and last.text[-1:].isspace():
            yield last, "the last message is the assistant's and ends with white space"


def _begins_wrong(turns: Turns, since: int) -> Iterator[tuple[Part, str]]:
    if since > 1:
        return
    if not turns.turns:
        yield Part("text", 0, 0), "a request without messages"
    elif turns.turns[0].side != "user":
        yield Part("text", turns.turns[0].first, 0), "the first message is not the user's"


def _marked(turns: Turns) -> Iterator[Part]:
    yield from (part for part in turns.head if part.mark is not None)
    yield from (part for turn in turns.turns for part in turn.parts if part.mark is not None)


def _too_many_marks(turns: Turns, _since: int) -> Iterator[tuple[Part, str]]:
    marks = list(_marked(turns))
    if len(marks) > _MOST_MARKS:
        yield marks[_MOST_MARKS], f"{len(marks)} cache marks; {_MOST_MARKS} are allowed"


def _long_mark_late(turns: Turns, _since: int) -> Iterator[tuple[Part, str]]:
    short = False
    for part in _marked(turns):
        if part.mark != "1h":
            short = True
        elif short:
            yield part, "a cache mark of 1h behind one of 5m"


def _mark_misplaced(turns: Turns, _since: int) -> Iterator[tuple[Part, str]]:
    for part in _marked(turns):
        if part.kind == "thinking" or (part.kind == "text" and not part.text):
            yield part, f"a cache mark on {'thinking' if part.kind == 'thinking' else 'an empty text block'}"


def _output_without_call(turns: Turns, since: int) -> Iterator[tuple[Part, str]]:
    for index, turn in _recent(turns, since):
        for part in turn.parts:
            if part.kind == "result" and not _stands(turns, range(index, -1, -1), "call", part.id):
                yield part, f"output for {part.id}, which nothing before it calls"


def _call_without_output(turns: Turns, since: int) -> Iterator[tuple[Part, str]]:
    for index, turn in _recent(turns, since):
        for part in turn.parts:
            if part.kind == "call" and not _stands(turns, range(index, len(turns.turns)), "result", part.id):
                yield part, f"call {part.id} has no output"


def _stands(turns: Turns, where: range, kind: str, name: str) -> bool:
    """Whether there is such a part; it is near the beginning of `where` as a rule."""
    return any(part.kind == kind and part.id == name for index in where for part in turns.turns[index].parts)


RULES: Final[Mapping[str, Rule]] = {
    "M1": Rule("anthropic", "every call is answered in the very next message", _unanswered),
    "M2": Rule("anthropic", "every result answers a call of the message before", _orphaned),
    "M3": Rule("anthropic", "results stand in front of everything else in their message", _results_late),
    "M4": Rule("anthropic", "every call has exactly one result, all in one message", _answered_twice),
    "M7": Rule("anthropic", "no message and no text block is empty", _empty),
    "M8": Rule("anthropic", "the first message is the user's", _begins_wrong),
    "M14": Rule("anthropic", "at most four cache marks", _too_many_marks),
    "M15": Rule("anthropic", "cache marks of one hour stand before those of five minutes", _long_mark_late),
    "M17": Rule("anthropic", "no cache mark on thinking or empty text", _mark_misplaced),
    "C1": Rule("openai_chat", "tool messages that answer every call follow it at once", _unanswered),
    "C2": Rule("openai_chat", "every tool message answers a call of the assistant message before it", _orphaned),
    "R1": Rule("openai_responses", "every output has its call before it", _output_without_call),
    "R2": Rule("openai_responses", "every call has its output behind it", _call_without_output),
}
