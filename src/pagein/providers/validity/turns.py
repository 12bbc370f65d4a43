"""A request as validity rules see it: turns made of parts, whatever it was made from.

Host-neutral messages are seen as `providers.wire` renders them: everything between two assistant messages is one turn of the
user's side. Wire messages are seen one by one, as the provider does (`bodies`).
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, Literal, TypeAlias

from pagein.model.messages import Block, Image, Message, Other, Text, Thinking, ToolCall, ToolResult
from pagein.providers.validity.target import ANYBODY, ModelTarget

Api: TypeAlias = Literal["anthropic", "openai_chat", "openai_responses"]
PartKind: TypeAlias = Literal[
    "tool", "text", "thinking", "call", "result", "image", "server_call", "server_result", "other"
]
Side: TypeAlias = Literal["user", "assistant", "system"]
Wire: TypeAlias = Mapping[str, Any]

_NOTHING: Final[Wire] = {}


@dataclass(frozen=True, slots=True)
class TurnPart:
    """One block. `message` and `block` are its place in what was checked, from 0; -1 stands for tools and system.

    id: of the call it makes or answers; of thinking, its signature ("" without one). text: of text blocks.
    mark: lifetime of the cache mark on it (`5m`, `1h`), None without one. source: what it was made from.
    """

    kind: PartKind
    message: int
    block: int
    id: str = ""
    text: str = ""
    mark: str | None = None
    source: Wire | Block | None = None

    @property
    def wire(self) -> Wire:
        """The wire block it was made from, an empty one for a host-neutral block."""
        return self.source if isinstance(self.source, Mapping) else _NOTHING

    @property
    def place(self) -> str:
        """Its place in the words of Anthropic's errors."""
        return f"messages.{self.message}.content.{self.block}"


@dataclass(frozen=True, slots=True)
class Trail:
    """What the prompt was up to a point: a name for all of it but thinking, and the signature of the last thinking ("" if none)."""

    name: bytes
    thinking: str = ""


@dataclass(slots=True)
class PromptTurn:
    """Parts that one side said in a row. `first` is the first message in it.

    trail: the prompt up to its end, where it was asked for and has not changed since.
    """

    side: Side
    first: int
    parts: list[TurnPart] = field(default_factory=list)
    trail: Trail | None = None


@dataclass(frozen=True, slots=True)
class Bond:
    """What one thinking block is bound to: the prompt it was made for, the thinking before it, and its own bytes (T1, T2, T6, M10)."""

    before: Trail
    words: bytes


@dataclass(frozen=True, slots=True)
class AnswerFacts:
    """What is known of answers that later requests hold again.

    bonds: of thinking blocks, by signature. thoughts: the digests of an answer's thinking, by the id of each call in it.
    reasoning: the reasoning item that an item of a response needs before it; followers: the item that must follow one.
    """

    bonds: Mapping[str, Bond] = field(default_factory=dict)
    thoughts: Mapping[str, tuple[bytes, ...]] = field(default_factory=dict)
    reasoning: Mapping[str, str] = field(default_factory=dict)
    followers: Mapping[str, str] = field(default_factory=dict)


NOTHING_RECEIVED: Final = AnswerFacts()


@dataclass(frozen=True, slots=True)
class Turns:
    """What the rules read. `head` holds tools and system blocks, in this order.

    fields: the other fields of the request. size: its bytes, 0 where not told. from_wire: whether it is a request body, and not
    host-neutral messages, which have no head, no fields and no marks.
    """

    turns: Sequence[PromptTurn]
    head: Sequence[TurnPart] = ()
    fields: Wire = field(default_factory=dict)
    target: ModelTarget = ANYBODY
    received: AnswerFacts = NOTHING_RECEIVED
    size: int = 0
    from_wire: bool = False


def text_at(value: Wire, name: str) -> str:
    """The string under this name, else the empty one."""
    found = value.get(name)
    return found if isinstance(found, str) else ""


def object_at(value: Wire, name: str) -> Wire:
    """The object under this name, else an empty one."""
    found = value.get(name)
    return found if isinstance(found, Mapping) else _NOTHING


def objects_at(value: Wire, name: str) -> list[Wire]:
    """The objects in the list under this name; none where it is no list."""
    found = value.get(name)
    return [one for one in found if isinstance(one, Mapping)] if isinstance(found, list) else []


def recent(turns: Turns, since: int) -> Iterator[tuple[int, PromptTurn]]:
    """The turns from `since` on and the one before: what a request adds, and what that may change for what stood there."""
    for index in range(max(since - 1, 0), len(turns.turns)):
        yield index, turns.turns[index]


def neutral_turns(messages: Iterable[Message], start: int) -> Iterator[PromptTurn]:
    """One turn per message; `start` is the place of the first. System messages before all others are no turns: leave them out."""
    for place, message in enumerate(messages, start=start):
        side: Side = "assistant" if message.role == "assistant" else "user"
        yield PromptTurn(side, place, [_part(block, place, index) for index, block in enumerate(message.blocks)])


def neutral_turns_of(messages: Sequence[Message]) -> list[PromptTurn]:
    """All the turns of a conversation, as they are rendered."""
    head = next((place for place, one in enumerate(messages) if one.role != "system"), len(messages))
    turns: list[PromptTurn] = []
    extend_turns(turns, neutral_turns(messages[head:], head))
    return turns


def extend_turns(turns: list[PromptTurn], more: Iterable[PromptTurn]) -> None:
    """Add turns, those of the user's side to the one before where that is of the same side."""
    for turn in more:
        if turns and turn.side == "user" and turns[-1].side == "user":
            turns[-1].parts.extend(turn.parts)
            turns[-1].trail = None
        else:
            turns.append(turn)


def cut(turns: list[PromptTurn], keep: int) -> None:
    """Take away what came from messages at `keep` and behind."""
    while turns and turns[-1].first >= keep:
        turns.pop()
    if turns:
        parts = turns[-1].parts
        while parts and parts[-1].message >= keep:
            parts.pop()
            turns[-1].trail = None


def _part(block: Block, message: int, index: int) -> TurnPart:
    match block:
        case Text():
            return TurnPart("text", message, index, text=block.text, source=block)
        case Thinking():
            return TurnPart("thinking", message, index, id=block.signature or "", source=block)
        case ToolCall():
            return TurnPart("call", message, index, id=block.id, source=block)
        case ToolResult():
            return TurnPart("result", message, index, id=block.call_id, source=block)
        case Image():
            return TurnPart("image", message, index, source=block)
        case Other():
            return TurnPart("other", message, index, source=block)
