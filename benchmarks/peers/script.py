"""A recording as the requests that its agent sent: the input of every program, with the origin of each block.

Conversations are made valid first, as the engine does it, and rendered by the engine's own renderer: what a provider would
have refused anyway must not be held against a peer. Each call's messages are rendered once, so requests only append.
"""

from dataclasses import dataclass

from benchmarks.peers.shapes import Shapes, Shown, wire_text

from pagein.engine.log.request_draft import RequestDraft, length, pieces_since
from pagein.model.messages import Message
from pagein.providers.wire import render
from pagein.replay.prompt.billable_session import BillableSession
from pagein.replay.prompt.model_calls import Block
from pagein.replay.prompt.prompt_sizes import SizedCall

_KINDS = {"user": "text", "assistant": "text", "arguments": "arguments", "result": "result"}
LARGE_WINDOW, USUAL_WINDOW = 1_000_000, 200_000


@dataclass(frozen=True, slots=True)
class Weighed:
    """A block of the recording as messages show it, with its size in tokens and characters. ordinal: -1 for what repair made up."""

    shown: Shown
    tokens: float
    chars: int
    ordinal: int


@dataclass(frozen=True, slots=True)
class Turn:
    """What one call added to its window's messages. Its request is every turn of the window up to it.

    window: number of the window, from 0; `opens` on its first call. unseen: blocks that no wire message shows (an image
    whose data was not recorded, white space): their ordinals and tokens. No peer can touch them.
    """

    sized: SizedCall
    window: int
    opens: bool
    messages: tuple[bytes, ...]
    weighed: tuple[Weighed, ...]
    unseen: tuple[int, ...]
    unseen_tokens: float


@dataclass(frozen=True, slots=True)
class Script:
    """All requests of a recording in the shape of one API. limit: the context window of its model in tokens."""

    recording: BillableSession
    shapes: Shapes
    turns: tuple[Turn, ...]
    limit: int


def write_script(recording: BillableSession, shapes: Shapes) -> Script:
    """The requests of a recording."""
    turns: list[Turn] = []
    draft, said, window = RequestDraft(), 0, -1
    for sized in recording.sized:
        if sized.opens_segment:
            draft, window = RequestDraft(), window + 1
            said = _begin(recording, sized, said)
        before = length(draft.tip)
        for message in recording.calls.messages[said : sized.call.messages_before]:
            draft = draft.with_said(message)
        draft, said = draft.ready, sized.call.messages_before
        new = [piece.message for piece in pieces_since(draft.tip, before)]
        turns.append(_turn(recording, sized, new, shapes, window))
    largest = max((sized.prompt for sized in recording.sized), default=0.0)
    limit = recording.head.window or (USUAL_WINDOW if largest <= USUAL_WINDOW else LARGE_WINDOW)
    return Script(recording, shapes, tuple(turns), limit)


def _begin(recording: BillableSession, sized: SizedCall, said: int) -> int:
    """The first message of a window: behind a recorded compaction; else what came since the call before (the host dropped the rest)."""
    if not sized.call.opens_segment:
        return said
    return max(
        (
            one.messages_before
            for one in recording.calls.compactions
            if one.messages_before <= sized.call.messages_before
        ),
        default=0,
    )


def _turn(recording: BillableSession, sized: SizedCall, new: list[Message], shapes: Shapes, window: int) -> Turn:
    wire = render(new, shapes.api, model="any")["messages"]
    messages = tuple(map(wire_text, wire))
    first, last = sized.call.blocks
    waiting = _Waiting(recording.calls.blocks[first:last], sized.blocks)
    weighed = tuple(waiting.weigh(shown) for message in messages for shown in shapes.shown(message))
    return Turn(
        sized=sized,
        window=window,
        opens=sized.opens_segment,
        messages=messages,
        weighed=weighed,
        unseen=tuple(waiting.left),
        unseen_tokens=sum(tokens for _, tokens in waiting.left.values()),
    )


class _Waiting:
    """The blocks of one call that no message was found for yet."""

    def __init__(self, blocks: list[Block], tokens: tuple[float, ...]) -> None:
        self.left = {block.ordinal: (block, size) for block, size in zip(blocks, tokens, strict=True)}

    def weigh(self, shown: Shown) -> Weighed:
        for ordinal, (block, tokens) in self.left.items():
            if _is(block, shown):
                del self.left[ordinal]
                return Weighed(shown, tokens, block.chars, ordinal)
        return Weighed(shown, 0.0, 0, -1)


def _is(block: Block, shown: Shown) -> bool:
    if _KINDS[block.kind] != shown.kind:
        return False
    return block.text == shown.text if shown.kind == "text" else block.call_id == shown.call
