"""The next request in the making: messages in a linked list with a shared beginning, repaired for the provider's rules.

Rules of this file
------------------
1. Each `Cell` is one message after another cell. Branches, epochs and requests with a common beginning share its cells.
   So one more message costs one more cell, and walking back from two ends finds the place where two requests differ.
2. A valid conversation comes out as the very messages that went in.
3. A sent request is never changed again: every repair happens between two requests (law 4). So the messages after an
   assistant message are *held* until the next assistant message, or the next request, settles them.
4. Each call is answered right after its message, once. An unanswered call gets a result with a note.
5. Text is never lost: a result without its call becomes text. See rules M1-M4, M7, M8, C1 and C2 in docs/reference/rules.md.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Final

from pagein.model.entries import TurnsLeft
from pagein.model.messages import Block, Message, Other, Role, Text, Thinking, ToolCall, ToolResult

UNANSWERED: Final = "[no result was recorded for this call]"
NOBODY_SPOKE: Final = "[no message of the user was recorded here]"
_MADE_UP: Final = "repair"
_NOT_THE_MODELS: Final = (ToolResult,)
_NOT_THE_USERS: Final = (ToolCall, Thinking)


@dataclass(frozen=True, slots=True)
class Absent:
    """Removed messages, replaced by a text in this message.

    left: the journal record of the removal.
    said: first and last number of each run of removed messages.
    """

    left: TurnsLeft
    said: tuple[tuple[int, int], ...]


@dataclass(frozen=True, slots=True)
class WindowPiece:
    """A message in the window, with the facts that the eviction policy needs.

    message: the message as the window shows it.
    tokens: the estimate for each tool result, in order; of the provider's own tools in a message of the model.
    born: the first model call that saw the message; None before.
    said: number of the message in the session, from 1.
    weight: estimated tokens of the whole message, as the window shows it.
    absent: removed messages that a text in this message replaces.
    source: the message before results of the provider's own tools left it; None if none left.
    uncited: whether its citations are not sent, because a result that they may point to left.
    """

    message: Message
    tokens: tuple[int, ...] = ()
    born: int | None = None
    said: int = 0
    weight: int = 0
    absent: tuple[Absent, ...] = ()
    source: Message | None = None
    uncited: bool = False


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Cell:
    """A piece and the cells before it; None for the first. Identity of cells means equality of requests.

    length: number of messages up to here.
    tokens: estimated tokens up to here.
    """

    piece: WindowPiece
    before: "Cell | None"
    length: int
    tokens: int = 0


def push(tip: Cell | None, piece: WindowPiece) -> Cell:
    """Append a message to a request."""
    return Cell(piece, tip, length(tip) + 1, size(tip) + piece.weight)


def length(tip: Cell | None) -> int:
    """Return the number of messages."""
    return 0 if tip is None else tip.length


def size(tip: Cell | None) -> int:
    """Return the estimated tokens of the request."""
    return 0 if tip is None else tip.tokens


def shared_length(one: Cell | None, other: Cell | None) -> int:
    """Return the number of leading messages that two requests share, by identity of cells.

    Costs as much as the requests differ.
    """
    while one is not other:
        longer = length(one) - length(other)
        if one is not None and longer >= 0:
            one = one.before
        if other is not None and longer <= 0:
            other = other.before
    return length(one)


def news_of(tip: Cell | None, before: Cell | None) -> tuple[Cell | None, list[WindowPiece]]:
    """Return the last cell shared with an earlier request, and the messages after it."""
    keep = shared_length(tip, before)
    return cut(tip, keep), pieces_since(tip, keep)


def pieces_since(tip: Cell | None, keep: int) -> list[WindowPiece]:
    """Return the messages after the first `keep`, in order."""
    found: list[WindowPiece] = []
    while tip is not None and tip.length > keep:
        found.append(tip.piece)
        tip = tip.before
    return found[::-1]


def cells_of(tip: Cell | None) -> list[Cell]:
    """Return the cells of the request in order."""
    found: list[Cell] = []
    while tip is not None:
        found.append(tip)
        tip = tip.before
    return found[::-1]


def cut(tip: Cell | None, keep: int) -> Cell | None:
    """Return the first `keep` messages of a request."""
    while tip is not None and tip.length > keep:
        tip = tip.before
    return tip


@dataclass(frozen=True, slots=True)
class Repairs:
    """Counts of repaired messages or blocks.

    unanswered: calls that got a result with a note.
    orphans: results turned into text.
    merged: assistant messages joined with the message before.
    fillers: invented user messages.
    emptied: messages dropped as empty.
    moved: results moved in front of text.
    twins: calls turned into text because an earlier call in the message has the same id.
    """

    unanswered: int = 0
    orphans: int = 0
    merged: int = 0
    fillers: int = 0
    emptied: int = 0
    moved: int = 0
    twins: int = 0


NO_REPAIRS: Final = Repairs()


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class _OpenPiece:
    piece: WindowPiece
    before: "_OpenPiece | None"


class _CacheSlots:
    """Instances hold what their cached properties found, beside the slots of a subclass."""


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class RequestDraft(_CacheSlots):
    """Settled messages, and the messages held since the last assistant message.

    tip: the settled messages.
    head: number of leading system messages.
    said: messages so far.
    calls: assistant messages so far.
    repairs: counts of repairs.
    unsettled: the held messages.
    """

    tip: Cell | None = None
    head: int = 0
    said: int = 0
    calls: int = 0
    repairs: Repairs = NO_REPAIRS
    unsettled: _OpenPiece | None = None

    def with_said(self, message: Message, tokens: Sequence[int] = (), weight: int = 0) -> "RequestDraft":
        """Append a message, in amortised O(1); with estimates for each tool result in it, and for the whole."""
        next_draft = self.with_piece(WindowPiece(message, tuple(tokens), None, self.said + 1, weight))
        return replace(next_draft, calls=self.calls + 1) if message.role == "assistant" else next_draft

    def with_piece(self, piece: WindowPiece) -> "RequestDraft":
        """Append a piece. An assistant message settles the held messages."""
        role = piece.message.role
        full, orphans, twins = _clean_piece(piece)
        repairs = _count_repairs(self.repairs, orphans=orphans, twins=twins)
        here = replace(self, said=max(self.said, piece.said), repairs=repairs)
        if full is None:
            return replace(here, repairs=_count_repairs(here.repairs, emptied=1))
        if role == "assistant":
            return _with_answer(here.settle(), full)
        return replace(here, unsettled=_OpenPiece(full, here.unsettled))

    def settle(self) -> "RequestDraft":
        """Move the held messages into the request, in a valid order."""
        calls = _calls(self.tip)
        if self.unsettled is None and not calls:
            return self
        ordered, repairs = _order_answers(calls, list(self.open_pieces()), self.repairs)
        tip, head = self.tip, self.head
        for piece in ordered:
            if piece.message.role == "system" and length(tip) == head:
                head += 1
            tip = push(tip, piece if piece.born is not None else replace(piece, born=self.calls))
        return replace(self, tip=tip, head=head, repairs=repairs, unsettled=None)

    @cached_property
    def ready(self) -> "RequestDraft":
        """The draft settled, and ending with a message that a model can answer. Costs as much as is held, once."""
        draft = self.settle()
        return _with_filler(draft) if _is_answer(draft.tip) or _nobody_spoke(draft) else draft

    @cached_property
    def news(self) -> "list[tuple[int, WindowPiece]]":
        """The messages that `ready` adds to the settled ones, with their numbers in the request."""
        known = length(self.tip)
        return list(enumerate(pieces_since(self.ready.tip, known), start=known))

    def open_pieces(self) -> Iterator[WindowPiece]:
        """Iterate over the held messages in order."""
        link, found = self.unsettled, []
        while link is not None:
            found.append(link.piece)
            link = link.before
        return reversed(found)


def _with_answer(draft: RequestDraft, piece: WindowPiece) -> RequestDraft:
    """Append an assistant message to a draft without held messages."""
    if _nobody_spoke(draft):
        return _with_answer(_with_filler(draft), piece)
    if draft.tip is None or not _is_answer(draft.tip):
        return replace(draft, tip=push(draft.tip, piece))
    # Every sent request ends with a user's message, so the assistant message at the tip was not sent and may still change.
    first = draft.tip.piece
    both = replace(piece.message, blocks=(*first.message.blocks, *piece.message.blocks))
    tip = push(draft.tip.before, replace(piece, message=both, weight=first.weight + piece.weight))
    return replace(draft, tip=tip, repairs=_count_repairs(draft.repairs, merged=1))


def _with_filler(draft: RequestDraft) -> RequestDraft:
    filler = WindowPiece(Message("user", (Text(NOBODY_SPOKE, injected=_MADE_UP),)), born=draft.calls, said=draft.said)
    return replace(draft, tip=push(draft.tip, filler), repairs=_count_repairs(draft.repairs, fillers=1))


def _nobody_spoke(draft: RequestDraft) -> bool:
    return length(draft.tip) == draft.head


def _is_answer(tip: Cell | None) -> bool:
    return tip is not None and tip.piece.message.role == "assistant"


def _calls(tip: Cell | None) -> tuple[ToolCall, ...]:
    """Return the calls of the last message, which need results."""
    if tip is None or not _is_answer(tip):
        return ()
    return tuple(block for block in tip.piece.message.blocks if isinstance(block, ToolCall))


def _clean_piece(piece: WindowPiece) -> tuple[WindowPiece | None, int, int]:
    """Remove blank text, misplaced blocks and duplicate call ids.

    Returns the rest (None if nothing remains), and the numbers of results and of calls that became text.
    """
    blocks = piece.message.blocks
    models = piece.message.role == "assistant"
    wrong = _NOT_THE_MODELS if models else _NOT_THE_USERS
    twins = _twins(blocks) if models else frozenset()
    if not twins and not any(isinstance(block, wrong) or _is_blank(block) for block in blocks):
        return (piece if blocks else None), 0, 0
    kept: list[Block] = []
    for index, block in enumerate(blocks):
        if isinstance(block, wrong) or index in twins:
            kept.extend(_as_text(block))
        elif not _is_blank(block):
            kept.append(block)
    tokens = () if models else piece.tokens
    orphans = sum(isinstance(block, ToolResult) for block in blocks) if models else 0
    message = replace(piece.message, blocks=tuple(kept))
    return (replace(piece, message=message, tokens=tokens) if kept else None), orphans, len(twins)


def _twins(blocks: Sequence[Block]) -> frozenset[int]:
    """Return the indexes of calls whose id an earlier call has."""
    seen: set[str] = set()
    found: set[int] = set()
    for index, block in enumerate(blocks):
        if isinstance(block, ToolCall):
            if block.id in seen:
                found.add(index)
            seen.add(block.id)
    return frozenset(found)


def _is_blank(block: Block) -> bool:
    text = block.text if isinstance(block, Text) else block.json if isinstance(block, Other) else "full"
    return not text or text.isspace()


def _as_text(block: Block) -> tuple[Block, ...]:
    """Return a misplaced call, result or thought as text."""
    match block:
        case ToolResult():
            text = f"[result of call {block.call_id}]\n{block.text}"
            return (Text(text, injected=_MADE_UP, withheld=block.withheld), *block.images)
        case ToolCall():
            text = f"[call {block.id} of {block.name}]\n{block.arguments}"
            return (Text(text, injected=_MADE_UP, withheld=block.withheld),)
        case Thinking(text=text) if text and not text.isspace():
            return (Text(text, injected=_MADE_UP),)
        case _:
            return ()


def _count_repairs(repairs: Repairs, **more: int) -> Repairs:
    grown = {name: getattr(repairs, name) + count for name, count in more.items() if count}
    return replace(repairs, **grown) if grown else repairs


def _is_in_order(calls: Sequence[ToolCall], held: Sequence[WindowPiece]) -> bool:
    """Return whether each call has exactly one result and the results come before text."""
    waiting = {call.id for call in calls}
    text_came = False
    for piece in held:
        for block in piece.message.blocks:
            if not isinstance(block, ToolResult):
                text_came = True
            elif text_came or block.call_id not in waiting:
                return False
            else:
                waiting.discard(block.call_id)
        if text_came and piece.message.role == "tool":
            return False
    return not waiting


def _order_answers(
    calls: Sequence[ToolCall], held: list[WindowPiece], repairs: Repairs
) -> tuple[list[WindowPiece], Repairs]:
    """Order held messages: results first, one result for each call."""
    if _is_in_order(calls, held):
        return held, repairs
    waiting = {call.id: call for call in calls}
    answers: list[WindowPiece] = []
    rest: list[WindowPiece] = []
    for piece in held:
        ours, others = _split_answers(piece, waiting)
        orphans = sum(isinstance(block, ToolResult) for block in piece.message.blocks) - len(ours)
        repairs = _count_repairs(repairs, orphans=orphans, moved=len(ours) if rest else 0)
        if ours:
            blocks, tokens = zip(*ours, strict=True)
            answering = replace(piece.message, blocks=blocks)
            answers.append(replace(piece, message=answering, tokens=tokens, weight=min(sum(tokens), piece.weight)))
        if others:
            role: Role = "user" if piece.message.role == "tool" else piece.message.role
            left = replace(piece.message, role=role, blocks=tuple(others))
            weight = max(0, piece.weight - sum(count for _, count in ours))
            rest.append(replace(piece, message=left, tokens=(), weight=weight))
    if waiting:
        made_up = tuple(ToolResult(call.id, UNANSWERED, call.name) for call in waiting.values())
        said = held[-1].said if held else 0
        answers.append(WindowPiece(Message("tool", made_up), (0,) * len(made_up), said=said))
    return [*answers, *rest], _count_repairs(repairs, unanswered=len(waiting))


def _split_answers(
    piece: WindowPiece, waiting: dict[str, ToolCall]
) -> tuple[list[tuple[ToolResult, int]], list[Block]]:
    """Split a piece into results for waiting calls, with their tokens, and other blocks. Answered calls stop waiting."""
    tokens = iter(piece.tokens)
    ours: list[tuple[ToolResult, int]] = []
    others: list[Block] = []
    for block in piece.message.blocks:
        if not isinstance(block, ToolResult):
            others.append(block)
            continue
        count = next(tokens, 0)
        if waiting.pop(block.call_id, None) is not None:
            ours.append((block, count))
        else:
            others.extend(_as_text(block))
    return ours, others
