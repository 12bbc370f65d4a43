"""The view of a request for validity rules: turns made of parts, whatever the source.

Host-neutral messages appear as `providers.wire` renders them: everything between two assistant messages is one turn of
the user's side. Wire messages appear one by one, as for the provider (`body_turns`).
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, Literal, TypeAlias

from pagein.model.messages import Block, Image, Message, Other, Text, Thinking, ToolCall, ToolResult
from pagein.providers.validity.target import ANYBODY, ModelTarget

Api: TypeAlias = str
"""The name of a wire format, a key of `providers.wire.formats.FORMATS`."""
PartKind: TypeAlias = Literal[
    "tool", "text", "thinking", "call", "result", "image", "server_call", "server_result", "other"
]
Side: TypeAlias = Literal["user", "assistant", "system"]
Wire: TypeAlias = Mapping[str, Any]

_NOTHING: Final[Wire] = {}


@dataclass(frozen=True, slots=True)
class TurnPart:
    """A block of a request.

    message, block: place of the block in its source, from 0; -1 for tools and system.
    id: id of the call that the block makes or answers; for thinking, its signature ("" without a signature).
    text: the text of a text block.
    mark: TTL of the cache breakpoint on the block (`5m`, `1h`); None without a breakpoint.
    source: the block in its original form.
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
        """The wire block; an empty object for a host-neutral block."""
        return self.source if isinstance(self.source, Mapping) else _NOTHING

    @property
    def place(self) -> str:
        """The place of the block in the words of Anthropic's errors."""
        return f"messages.{self.message}.content.{self.block}"


@dataclass(frozen=True, slots=True)
class Trail:
    """The prompt up to a point.

    name: digest of the prompt without thinking.
    thinking: signature of the last thinking; "" without thinking.
    """

    name: bytes
    thinking: str = ""


@dataclass(slots=True)
class PromptTurn:
    """Consecutive parts of one side.

    first: first message of the turn.
    trail: the prompt up to the end of the turn, if computed and unchanged since.
    """

    side: Side
    first: int
    parts: list[TurnPart] = field(default_factory=list)
    trail: Trail | None = None


@dataclass(frozen=True, slots=True)
class Bond:
    """The bond of a thinking block to the prompt it was made for (T1, T2, T6, M10).

    before: the prompt and the last thinking before the block.
    words: digest of the block itself.
    """

    before: Trail
    words: bytes


@dataclass(frozen=True, slots=True)
class AnswerFacts:
    """Known facts about answers in later requests.

    bonds: of thinking blocks, by signature.
    thoughts: digests of an answer's thinking, by the id of each call in the answer.
    reasoning: by item id, the reasoning item that must come before the item.
    followers: by reasoning id, the item that must follow.
    """

    bonds: Mapping[str, Bond] = field(default_factory=dict)
    thoughts: Mapping[str, tuple[bytes, ...]] = field(default_factory=dict)
    reasoning: Mapping[str, str] = field(default_factory=dict)
    followers: Mapping[str, str] = field(default_factory=dict)


NOTHING_RECEIVED: Final = AnswerFacts()


@dataclass(frozen=True, slots=True)
class Turns:
    """The input of the rules.

    head: tools and system blocks, in this order.
    fields: the remaining fields of the request.
    size: bytes of the request, 0 if unknown.
    from_wire: whether the source is a request body. Host-neutral messages have no head, fields or breakpoints.
    """

    turns: Sequence[PromptTurn]
    head: Sequence[TurnPart] = ()
    fields: Wire = field(default_factory=dict)
    target: ModelTarget = ANYBODY
    received: AnswerFacts = NOTHING_RECEIVED
    size: int = 0
    from_wire: bool = False


def text_at(value: Wire, name: str) -> str:
    """The string under a name, or an empty string."""
    found = value.get(name)
    return found if isinstance(found, str) else ""


def object_at(value: Wire, name: str) -> Wire:
    """The object under a name, or an empty object."""
    found = value.get(name)
    return found if isinstance(found, Mapping) else _NOTHING


def objects_at(value: Wire, name: str) -> list[Wire]:
    """The objects in the list under a name, or an empty list."""
    found = value.get(name)
    return [one for one in found if isinstance(one, Mapping)] if isinstance(found, list) else []


def padded_objects(value: object) -> list[Wire]:
    """The items of a list as objects. An item of a different type becomes an empty object, to keep its place."""
    return [one if isinstance(one, Mapping) else {} for one in value] if isinstance(value, list) else []


def recent(turns: Turns, since: int) -> Iterable[tuple[int, PromptTurn]]:
    """Return the turns from `since` on and the turn before: the new part of a request, and the last old part."""
    start = max(since - 1, 0)
    return enumerate(turns.turns[start:], start)


def neutral_turns(messages: Iterable[Message], start: int) -> Iterator[PromptTurn]:
    """Convert each message to a turn.

    `start` is the place of the first. Leave out leading system messages, which are no turns.
    """
    for place, message in enumerate(messages, start=start):
        side: Side = "assistant" if message.role == "assistant" else "user"
        yield PromptTurn(side, place, [_part(block, place, index) for index, block in enumerate(message.blocks)])


def neutral_turns_of(messages: Sequence[Message]) -> list[PromptTurn]:
    """Convert a conversation to turns, as rendered."""
    head = next((place for place, one in enumerate(messages) if one.role != "system"), len(messages))
    turns: list[PromptTurn] = []
    extend_turns(turns, neutral_turns(messages[head:], head))
    return turns


def extend_turns(turns: list[PromptTurn], more: Iterable[PromptTurn]) -> None:
    """Append turns. Consecutive turns of the user's side are merged."""
    for turn in more:
        if turns and turn.side == "user" and turns[-1].side == "user":
            turns[-1].parts.extend(turn.parts)
            turns[-1].trail = None
        else:
            turns.append(turn)


def remove_from(turns: list[PromptTurn], keep: int) -> None:
    """Remove the parts of messages from number `keep` on."""
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
