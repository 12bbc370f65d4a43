"""A chat as a structured document: turns, each made of ordered steps.

A turn begins with a message of the user and ends before the next one. It holds any number of model messages and tool
calls, in order.
The output of a tool is stored in the tool call's own object, and the step holds a reference to it.
"""

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Literal, TypeAlias

from pagein.errors import BadInput
from pagein.model.codec import decode_message, encode_message
from pagein.model.messages import Message, Text, Thinking, ToolCall
from pagein.model.references import Reference
from pagein.model.values import Fields, Value, canonical, frozen_fields


@dataclass(frozen=True, slots=True)
class ChatCall:
    """A tool call with the outcome.

    args: the arguments, shortened for display.
    object: static reference to the object that holds the output.
    """

    call_id: str
    tool: str
    args: str
    status: str
    object: Reference


Step: TypeAlias = Message | ChatCall

CUT_SHORT: Final = "cut short"
"""`Message.stop` of an answer that was broken off."""
UNANSWERED: Final = "calls without results"
"""`Message.stop` of a conversation's last answer, if it calls tools: no object holds its calls yet, so the step shows them."""


@dataclass(frozen=True, slots=True)
class ChatTurn:
    """A turn of a chat.

    said: messages of the user (and of the host) that began the turn; empty if the model began.
    """

    said: tuple[Message, ...]
    steps: tuple[Step, ...]


def turns_to_value(turns: Sequence[ChatTurn]) -> Value:
    """Encode turns for the additional field `turns` of a chat object."""
    return tuple(
        Fields({"said": tuple(_message_out(one) for one in turn.said), "steps": tuple(map(_step_out, turn.steps))})
        for turn in turns
    )


def turns_from_value(value: Value) -> tuple[ChatTurn, ...]:
    """Decode the value made by `turns_to_value`. Raises BadInput."""
    try:
        return tuple(
            ChatTurn(tuple(_message_in(one) for one in _all(turn, "said")), tuple(map(_step_in, _all(turn, "steps"))))
            for turn in _tuple(value)
        )
    except KeyError as problem:
        raise BadInput(f"not the turns of a chat: {problem} is missing") from problem


def turns_as_text(turns: Sequence[ChatTurn]) -> str:
    """Render a chat for people, with a line `--- ...` before each part."""
    return "\n".join(passage.text for passage in passages_of(turns))


# --- pages: the parts in which the turns of a chat are stored ---

PAGE_STEPS: Final = 32
"""Steps on a page of a turn; only the last page of a turn has fewer."""
_PAGE: Final = re.compile(r"turns\.([1-9][0-9]{0,8})\.([1-9][0-9]{0,8})")

Speaker: TypeAlias = Literal["user", "assistant", "system", "tool", "thinking", "toolcall", "other"]


@dataclass(frozen=True, slots=True)
class Passage:
    """A part of a chat's text.

    step: number of the step in the turn, from 1; None for what began the turn.
    text: a line `--- ...`, and the words of the part.
    """

    step: int | None
    speaker: Speaker
    text: str


def page_name(turn: int, page: int) -> str:
    """The name of the additional field with a page of a turn. Turns and pages count from 1."""
    return f"turns.{turn}.{page}"


def page_of(field: str) -> tuple[int, int] | None:
    """The turn and the page of a field by its name; None for other fields."""
    found = _PAGE.fullmatch(field)
    return None if found is None else (int(found[1]), int(found[2]))


def passages_of(turns: Iterable[ChatTurn], first: int = 1) -> Iterator[Passage]:
    """Yield the parts of a chat's text, in order.

    first: number of the first step, for a page that does not begin its turn.
    """
    for turn in turns:
        for message in turn.said:
            yield from _message_passages(message, None)
        for place, step in enumerate(turn.steps, start=first):
            if isinstance(step, ChatCall):
                yield Passage(place, "toolcall", _call_line(step))
            else:
                yield from _message_passages(step, place)


def pages_as_text(pages: Mapping[tuple[int, int], ChatTurn]) -> str:
    """Render pages by turn and page, in their order, with a line `--- turn N` before each turn."""
    parts: list[str] = []
    last = 0
    for turn, page in sorted(pages):
        if turn != last:
            parts.append(f"--- turn {turn}")
            last = turn
        parts += [passage.text for passage in passages_of([pages[turn, page]])]
    return "\n".join(parts)


def _call_line(call: ChatCall) -> str:
    args = json.dumps(call.args, ensure_ascii=False)
    return f"--- toolcall [ref:toolcall/{call.object.target}] tool={call.tool} args={args} status={call.status}"


def _message_passages(message: Message, place: int | None) -> Iterator[Passage]:
    for block in message.blocks:
        match block:
            case Text():
                label = f" ({CUT_SHORT})" if message.stop == CUT_SHORT else ""
                yield Passage(place, message.role, f"--- {message.role}{label}\n{block.text}")
            case Thinking():
                yield Passage(place, "thinking", f"--- thinking\n{block.text}")
            case ToolCall() if message.stop == UNANSWERED:
                yield Passage(place, "toolcall", f"--- toolcall tool={block.name} status=open\n{block.arguments}")
            case ToolCall():
                pass  # shown with its outcome, as a ChatCall
            case _:
                yield Passage(place, "other", f"--- {type(block).__name__.lower()}")


def _step_out(step: Step) -> Value:
    if isinstance(step, Message):
        return Fields({"message": _message_out(step)})
    called: dict[str, Value] = {
        "call_id": step.call_id,
        "tool": step.tool,
        "args": step.args,
        "status": step.status,
        "object": step.object,
    }
    return Fields({"toolcall": Fields(called)})


def _step_in(value: Value) -> Step:
    fields = _fields(value)
    if "message" in fields:
        return _message_in(fields["message"])
    called = _fields(fields["toolcall"])
    reference = called["object"]
    if not isinstance(reference, Reference):
        raise BadInput("not the turns of a chat: a tool call refers to nothing")
    call_id, tool, args, status = (str(called[name]) for name in ("call_id", "tool", "args", "status"))
    return ChatCall(call_id, tool, args, status, reference)


def _message_out(message: Message) -> Value:
    return frozen_fields(json.loads(encode_message(message)))


def _message_in(value: Value) -> Message:
    message = decode_message(canonical(value).encode())
    if not isinstance(message, Message):
        raise BadInput(f"not the turns of a chat: {message.why}")
    return message


def _all(value: Value, name: str) -> tuple[Value, ...]:
    return _tuple(_fields(value)[name])


def _tuple(value: Value) -> tuple[Value, ...]:
    if isinstance(value, tuple):
        return value
    raise BadInput("not the turns of a chat: a list is missing")


def _fields(value: Value) -> Fields:
    if isinstance(value, Fields):
        return value
    raise BadInput("not the turns of a chat: a mapping is missing")
