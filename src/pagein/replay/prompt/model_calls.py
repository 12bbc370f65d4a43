"""Model calls and the blocks of their prompts, from recorded messages.

A *model call* is one assistant message. Messages of the model `<synthetic>` come from the host and are no calls;
neither are messages repeated by a rewritten prompt. A call starts when the last tool result or user message before it
was there. Its prompt holds every block since the last compaction; a block is *born* at the first call whose prompt
holds it.
"""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from typing import Literal, TypeAlias

import msgspec

from pagein.model.messages import Block as Said
from pagein.model.messages import (
    HostEvent,
    Image,
    Message,
    Other,
    Recorded,
    Text,
    Thinking,
    ToolCall,
    ToolResult,
    UnreadableLine,
    Usage,
)
from pagein.replay.record.message_shelf import Messages, StoredMessage
from pagein.replay.record.recorded_session import CARRIED_OVER
from pagein.replay.record.usage_tally import is_believable

Kind: TypeAlias = Literal["user", "assistant", "arguments", "result"]

IMAGE_CHARS = 4800  # what pi counts for an image; providers bill 1-2k tokens
_GUTTER = re.compile(r"^\s*\d+(?:→|\t|\||: )", re.MULTILINE)
_FIRST_GUTTER = re.compile(r"\s*\d+(?:→|\t|\||: )")


@dataclass(frozen=True, slots=True)
class Block:
    """One block of the prompt.

    ordinal: number of the block in the session, in order of appearance.
    born: index of the first call whose prompt holds the block.
    chars: size, characters.
    message, place: the message of the block, and the index of the block in it.
    call_id: for arguments and results, the id of the tool call, unique in the session.
    """

    ordinal: int
    kind: Kind
    born: int
    chars: int
    message: StoredMessage
    place: int
    call_id: str = ""
    tool: str = ""
    is_read: bool = False
    is_error: bool = False

    @property
    def text(self) -> str:
        """The text as shown to the model. Read from disk: take it once."""
        match self.message.get().blocks[self.place]:
            case ToolCall() as call:
                return call.arguments
            case ToolResult(text=text) | Text(text=text):
                return text
            case _:
                return ""


@dataclass(frozen=True, slots=True)
class RecordedCall:
    """One model call.

    at, answered_at: start of the request and of its answer as recorded, seconds; never running backwards.
    segment: number of compactions before the call.
    opens_segment: True for the first call of each segment.
    blocks: ordinals first seen by this call, [first, last).
    messages_before: number of messages of `Calls.messages` before the call.
    message: the reply.
    reported: usage of the reply, as recorded.
    output_chars: text, thinking and arguments of the reply, characters.
    thought_chars: recorded thinking of the reply, characters; None for a reply without thinking.
    """

    index: int
    at: float
    answered_at: float
    model: str
    segment: int
    opens_segment: bool
    blocks: tuple[int, int]
    messages_before: int
    message: StoredMessage
    reported: Usage | None
    output_chars: int
    user_turn: bool
    thought_chars: int | None = None

    @property
    def reply(self) -> Message:
        """The assistant message. Read from disk: take it once."""
        return self.message.get()

    @property
    def usage(self) -> Usage | None:
        """The recorded usage, or None without one (an empty prompt counts as no usage)."""
        return self.reported if self.reported is not None and self.reported.prompt > 0 else None


@dataclass(frozen=True, slots=True)
class RecordedCompaction:
    """A compaction by the host before the message with index `messages_before`."""

    messages_before: int
    kept: int = 0


@dataclass(slots=True)
class RecordedCalls:
    """A session as calls and blocks.

    messages: every message in order, with unique call ids.
    absurd: number of usages discarded because no model can produce them.
    """

    calls: list[RecordedCall] = field(default_factory=list)
    blocks: list[Block] = field(default_factory=list)
    messages: Messages = field(default_factory=Messages)
    compactions: list[RecordedCompaction] = field(default_factory=list)
    unreadable: list[UnreadableLine] = field(default_factory=list)
    timed: bool = False
    absurd: int = 0


def without_gutter(text: str) -> str:
    """Return the text without the line numbers that hosts put before each line of a read."""
    return _GUTTER.sub("", text) if _FIRST_GUTTER.match(text) else text


def strings_in(arguments: str) -> Iterator[str]:
    """Yield every string leaf of a call's arguments, in order."""
    try:
        stack: list[object] = [msgspec.json.decode(arguments)]
    except (msgspec.DecodeError, UnicodeError):
        yield arguments
        return
    while stack:
        leaf = stack.pop()
        if isinstance(leaf, str):
            yield leaf
        elif isinstance(leaf, dict):
            stack.extend(reversed(leaf.values()))
        elif isinstance(leaf, list):
            stack.extend(reversed(leaf))


def gather(entries: Iterable[Recorded]) -> RecordedCalls:
    """Fold recorded entries into calls and blocks."""
    gathering = _CallGatherer()
    for entry in entries:
        match entry:
            case Message():
                gathering.message(entry)
            case HostEvent():
                gathering.event(entry)
            case UnreadableLine():
                gathering.into.unreadable.append(entry)
    return gathering.into


class _CallGatherer:
    """The fold behind `gather`: the state after the entries so far."""

    def __init__(self) -> None:
        self.into = RecordedCalls()
        self.pending_from = 0  # ordinal of the first block not yet in any call
        self.segment = 0
        self.opens_segment = True
        self.clock = 0.0
        self.request_at: float | None = None
        self.user_turn = False
        self.seen_ids: dict[str, int] = {}
        self.current_id: dict[str, str] = {}
        self.called: set[str] = set()
        self.reads: set[str] = set()  # ids of the file reads among the calls of the latest assistant message

    def message(self, said: Message) -> None:
        if said.role == "assistant" and said.model == "<synthetic>":
            return
        if said.usage is not None and not is_believable(said.usage):
            said = replace(said, usage=None)
            self.into.absurd += 1
        said = replace(said, blocks=tuple(self._unique(block) for block in said.blocks))
        if said.at is not None:
            self.into.timed = True
        kept = self.into.messages.append(said)
        if said.role == "assistant" and said.stop != CARRIED_OVER:
            self._call(said, kept)
        else:
            if said.at is not None:
                self.request_at = said.at if self.request_at is None else max(said.at, self.request_at)
            if said.role == "user" and any(isinstance(b, Text) and b.injected is None and b.text for b in said.blocks):
                self.user_turn = True
        for place, block in enumerate(said.blocks):
            self._block(said, kept, place, block)

    def event(self, event: HostEvent) -> None:
        if event.kind != "compaction":
            return
        self.segment += 1
        self.opens_segment = True
        self.pending_from = len(self.into.blocks)
        self.into.compactions.append(RecordedCompaction(len(self.into.messages)))

    def _call(self, reply: Message, kept: StoredMessage) -> None:
        answered = reply.at if reply.at is not None else self.clock
        start = self.request_at if self.request_at is not None else answered
        self.clock = max(self.clock, start)
        index = len(self.into.calls)
        thought = _thinking_size(reply)
        self.into.calls.append(
            RecordedCall(
                index=index,
                at=self.clock,
                answered_at=max(answered, self.clock),
                model=reply.model or "",
                segment=self.segment,
                opens_segment=self.opens_segment,
                blocks=(self.pending_from, len(self.into.blocks)),
                messages_before=len(self.into.messages) - 1,
                message=kept,
                reported=reply.usage,
                output_chars=sum(_weight(block) for block in reply.blocks) + (thought or 0),
                user_turn=self.user_turn,
                thought_chars=thought,
            )
        )
        calls = (block for block in reply.blocks if isinstance(block, ToolCall))
        self.reads = {call.id for call in calls if any(access.op == "read" for access in call.accesses)}
        self.clock = max(self.clock, answered)
        self.pending_from = len(self.into.blocks)
        self.opens_segment = False
        self.request_at = None
        self.user_turn = False

    def _block(self, message: Message, kept: StoredMessage, place: int, said: Said) -> None:
        weight = _weight(said)
        if not weight:
            return
        born = len(self.into.calls)
        ordinal = len(self.into.blocks)
        kind: Kind = "assistant" if message.role == "assistant" else "user"
        match said:
            case ToolCall():
                block = Block(ordinal, "arguments", born, weight, kept, place, said.id, said.name)
                self.called.add(said.id)
            # a result without its call, such as a task that is recorded so, is text of the user's in every valid request
            case ToolResult(call_id=name) if name in self.called:
                read = said.shown is not None or name in self.reads
                block = Block(ordinal, "result", born, weight, kept, place, name, said.name, read, said.is_error)
            case _:
                block = Block(ordinal, kind, born, weight, kept, place)
        self.into.blocks.append(block)

    def _unique(self, block: Said) -> Said:
        """Rename repeated ids of redacted recordings, so that each result still matches a single call."""
        if isinstance(block, ToolCall):
            count = self.seen_ids.get(block.id, 0)
            self.seen_ids[block.id] = count + 1
            name = block.id if count == 0 else f"{block.id}~{count + 1}"
            self.current_id[block.id] = name
            return block if count == 0 else replace(block, id=name)
        if isinstance(block, ToolResult):
            name = self.current_id.get(block.call_id, block.call_id)
            return block if name == block.call_id else replace(block, call_id=name)
        return block


def _weight(block: Said) -> int:
    """Return the characters of a block in a prompt. Thinking is not logged with its true size: it counts as hidden
    growth.
    """
    match block:
        case Text():
            return len(block.text)
        case ToolCall():
            return len(block.arguments) + len(block.name)
        case ToolResult():
            return len(block.text) + IMAGE_CHARS * len(block.images)
        case Image():
            return IMAGE_CHARS
        case Other():
            return len(block.json)
        case Thinking():
            return 0


def _thinking_size(reply: Message) -> int | None:
    sizes = [len(block.text) for block in reply.blocks if isinstance(block, Thinking)]
    return sum(sizes) if sizes else None
